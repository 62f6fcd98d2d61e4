"""Compaction: keep what a model sees inside its context window, and let users undo it."""
