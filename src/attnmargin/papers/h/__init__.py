"""H: how fast attention turns to the max-margin direction and becomes one-hot."""
