"""English: its table is in `words`, its patterns are in `rules` and `statements`."""
