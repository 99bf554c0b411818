"""N: which norm each optimiser reaches, on linear classifiers and on attention."""
