"""The version, in one place: it works from a plain source tree too."""

VERSION = "0.1.0"
