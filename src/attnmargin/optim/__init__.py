"""PyTorch optimisers whose norm is known: ℓp mirror descent."""
