"""What training can end in: local optimality, the search for it, cones, mixtures."""
