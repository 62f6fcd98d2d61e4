"""Lota: structured state and a memory block, kept beside the summary."""
