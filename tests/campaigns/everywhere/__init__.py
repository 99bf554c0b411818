"""The same answers everywhere: threads, batch sizes, versions, with and without compiler, GPU."""
