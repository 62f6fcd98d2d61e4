"""Collect a text that comes in pieces and is of use only whole, up to a length."""

from chatcore.providers.errors import ProviderUnavailable

MAX_COLLECTED_CHARS = 16_000_000


class CollectedText:
    """A text that is collected until the answer ends: reasoning, or the arguments of a call."""

    def __init__(self) -> None:
        self.char_count = 0
        self._pieces: list[str] = []

    def add_piece(self, piece: str) -> None:
        """Add a piece. Raises ProviderUnavailable beyond MAX_COLLECTED_CHARS."""
        self.char_count += len(piece)
        if self.char_count > MAX_COLLECTED_CHARS:
            raise ProviderUnavailable(
                "The provider sent reasoning or a tool call of more than"
                f" {MAX_COLLECTED_CHARS // 1_000_000} million characters."
            )
        self._pieces.append(piece)

    def join(self) -> str:
        """Return the whole text."""
        return "".join(self._pieces)
