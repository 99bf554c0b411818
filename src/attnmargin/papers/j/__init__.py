"""J: self-attention as a Markov chain conditioned on its context."""
