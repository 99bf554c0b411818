"""Results as self-contained HTML pages."""
