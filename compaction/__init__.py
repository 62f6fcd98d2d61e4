"""Compaction: keep what a model sees inside its context window, and let people undo it."""
