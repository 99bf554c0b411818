"""F: prompt attention with a trained vector, alone and together with the head."""
