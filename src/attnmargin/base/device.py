"""Names of devices."""

import torch

from attnmargin.base.errors import InputError


def device_of(name: str) -> str:
    """Check the name of a device; "auto" becomes "cuda" if a GPU is available, else "cpu"."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=name).tolist()
    except (RuntimeError, AssertionError, NotImplementedError):
        raise InputError("device", repr(name), "a device of this machine, or auto") from None
    return name
