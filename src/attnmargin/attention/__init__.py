"""Softmax attention and its gradients, heads, losses, and scores of tokens."""
