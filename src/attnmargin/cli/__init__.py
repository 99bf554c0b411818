"""The command line: parse, make one library call, show the result."""
