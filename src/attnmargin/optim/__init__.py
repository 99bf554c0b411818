"""PyTorch optimisers with a known implied norm: ℓp mirror descent."""
