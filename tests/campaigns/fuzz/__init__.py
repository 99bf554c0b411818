"""Readers under fuzz."""
