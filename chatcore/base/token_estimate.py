"""Estimate tokens of text that no provider has counted, and format counts for people.

The estimate is that of FEAT-011 (docs/origins.md, Token Counting Rules).
"""

CHARS_PER_TOKEN_ESTIMATE = 4


def estimate_tokens(characters: int) -> int:
    """Return the estimated tokens of a text: a quarter of its characters, at least one.

    An empty text has none.
    """
    return max(1, characters // CHARS_PER_TOKEN_ESTIMATE) if characters else 0


def format_tokens(tokens: int) -> str:
    """Return a count of tokens with three digits: 940, 41.2k, 128k, 1.05M."""
    if tokens < 1_000:
        return str(tokens)
    if tokens < 1_000_000:
        number, unit = tokens / 1_000, "k"
    else:
        number, unit = tokens / 1_000_000, "M"
    # The format "g" would write 100 and more as a power of ten when it rounds up to 1,000.
    return f"{number:.3g}{unit}" if number < 100 else f"{number:.0f}{unit}"
