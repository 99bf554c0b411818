"""Members that floating point leaves open, solved to many digits."""
