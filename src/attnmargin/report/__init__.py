"""Records and sentences: what is said of a result, once, for terminal and page alike."""
