"""Leave settings, extensions and programs of the site to `make docs`; tests run the pages."""

collect_ignore_glob = ["*.py"]
