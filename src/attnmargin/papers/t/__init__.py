"""T: what is found in texts and sequences whose truth is planted."""
