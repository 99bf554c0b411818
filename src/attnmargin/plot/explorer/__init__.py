"""The explorer: a page on which tokens are dragged and runs are watched."""
