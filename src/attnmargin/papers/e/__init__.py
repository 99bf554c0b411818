"""Paper E: next-word prediction with a linear decoder (Thrampoulidis, 2402.18551)."""
