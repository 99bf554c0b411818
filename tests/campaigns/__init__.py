"""Campaigns: long runs that try to break what users rely on; their tables are committed."""
