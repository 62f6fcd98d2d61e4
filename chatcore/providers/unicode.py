"""Characters that arrive in halves: JSON writes an emoji as two escapes, and a server may cut between them."""


class SurrogateJoiner:
    """Puts the halves of a stream's characters together; a half that stays alone is replaced, for nothing could store it."""

    def __init__(self) -> None:
        self._pending_half = ""

    def join(self, text: str) -> str:
        """What can be said of `text` now; the first half of a character is held back until its other half comes."""
        text = self._pending_half + text
        self._pending_half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return mend_surrogates(text[: len(text) - len(self._pending_half)])


def mend_surrogates(text: str) -> str:
    """The text with its surrogate pairs joined, and lone ones replaced."""
    return (
        text
        if text.isascii()
        else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    )
