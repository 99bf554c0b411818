"""The Frobenius norm: a dual active-set method, compiled or in lockstep."""
