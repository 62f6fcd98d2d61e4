"""Characters that arrive in halves.

JSON may write an emoji as two escapes (surrogates), and a server may cut its stream between them.
"""


class SurrogateJoiner:
    """Joins the halves of a stream's characters; a half that stays alone becomes U+FFFD."""

    def __init__(self) -> None:
        self._pending_half = ""

    def join(self, text: str) -> str:
        """Return the complete characters; a first half at the end waits for the second."""
        text = self._pending_half + text
        self._pending_half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return mend_surrogates(text[: len(text) - len(self._pending_half)])


def mend_surrogates(text: str) -> str:
    """Return the text with surrogate pairs joined, and lone surrogates replaced by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
