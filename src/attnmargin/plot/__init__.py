"""Plot data to pictures."""
