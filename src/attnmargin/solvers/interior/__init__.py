"""The nuclear and ℓp norms: interior-point methods, compiled or in lockstep."""
