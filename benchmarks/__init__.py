"""Speed, as ratios against the rivals in one run. ``make bench`` runs all and saves results."""
