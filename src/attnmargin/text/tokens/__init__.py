"""Which tokens of a corpus decide: cleaning, counts, trained models (paper D)."""
