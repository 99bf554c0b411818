"""One large Frobenius problem: block ascent on the multipliers."""
