"""Prompts of one's own: texts that `/name` puts into the composer."""
