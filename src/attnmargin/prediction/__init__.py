"""The main job: predict what attention selects, train, and compare."""
