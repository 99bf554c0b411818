"""Paper G: weight decay of factors makes their product low-rank (Kobayashi et al., 2410.23819)."""
