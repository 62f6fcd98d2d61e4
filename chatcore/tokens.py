"""The estimate for text no provider has counted yet (FEAT-011, Token Counting Rules)."""

CHARS_PER_TOKEN_ESTIMATE = 4


def estimate_tokens(characters: int) -> int:
    """Tokens of a text of so many characters: one for every four, rounded down, at least one."""
    return max(1, characters // CHARS_PER_TOKEN_ESTIMATE)
