"""I: topics as sets of token-priority graphs, and when a mixture changes the topic."""
