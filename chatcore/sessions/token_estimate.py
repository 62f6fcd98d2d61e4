"""Tokens: the estimate for text no provider has counted yet (FEAT-011, Token Counting Rules), and a count as people read it."""

CHARS_PER_TOKEN_ESTIMATE = 4


def estimate_tokens(characters: int) -> int:
    """Tokens of a text of so many characters: one for every four, rounded down, at least one."""
    return max(1, characters // CHARS_PER_TOKEN_ESTIMATE)


def format_tokens(tokens: int) -> str:
    """940, 41.2k for 41,200, 128k, 1.05M: three digits, or as many as there are."""
    if tokens < 1_000:
        return str(tokens)
    number, unit = (tokens / 1_000, "k") if tokens < 1_000_000 else (tokens / 1_000_000, "M")
    return f"{number:.3g}{unit}" if number < 100 else f"{number:.0f}{unit}"
