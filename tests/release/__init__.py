"""What ``make release`` does: build, check, install where nothing is, list what comes along."""
