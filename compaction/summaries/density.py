"""Estimate from samples how many tokens a character of a text is."""

from collections.abc import Sequence

from compaction.core.features import estimate_by_features

SAMPLE_COUNT = 16
SAMPLE_CHARS = 512


def estimate_density(lines: Sequence[str]) -> float:
    """Return the estimated tokens a character, from samples spread over the text; 0 for no text."""
    step = max(1, len(lines) // SAMPLE_COUNT)
    sample = "".join(line[:SAMPLE_CHARS] for line in lines[::step])
    return estimate_by_features(sample) / len(sample) if sample else 0
