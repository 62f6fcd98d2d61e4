"""OpenRouter's `reasoning_details`: the thoughts of models that sign them, which come in pieces.

They go back as one list on the same answer, each whole and unchanged, or its tools are refused.
"""

from collections.abc import Mapping

from chatcore.providers.answer_reader import CollectedText
from chatcore.providers.base import mend_surrogates

_TEXT_MEMBERS = ("text", "summary")


class ReasoningDetails:
    """Collects the details of one answer while their pieces arrive."""

    def __init__(self) -> None:
        self._details: list[_Detail] = []

    def add_pieces(self, pieces: object) -> None:
        """Add the pieces of one chunk; anything that has another form is left out."""
        for piece in pieces if isinstance(pieces, list) else ():
            if not isinstance(piece, dict):
                continue
            if not (self._details and self._details[-1].goes_on_with(piece)):
                self._details.append(_Detail(piece))
            self._details[-1].add_piece(piece)

    def join(self) -> list[dict[str, object]]:
        """Return the whole details."""
        return [detail.join() for detail in self._details]


class _Detail:
    """One detail; its members are those of its pieces, and its texts are joined."""

    def __init__(self, piece: Mapping[str, object]) -> None:
        self._kind = (piece.get("type"), piece.get("index"))
        self._members: dict[str, object] = {}
        self._texts: dict[str, CollectedText] = {}

    def goes_on_with(self, piece: Mapping[str, object]) -> bool:
        """Return True if a piece belongs to this detail. Encrypted ones come whole."""
        kind = (piece.get("type"), piece.get("index"))
        return kind == self._kind and any(name in piece for name in (*_TEXT_MEMBERS, "signature"))

    def add_piece(self, piece: Mapping[str, object]) -> None:
        """Add a piece. Raises ProviderUnavailable for an endless text."""
        for name, value in piece.items():
            if name in _TEXT_MEMBERS and isinstance(value, str):
                self._texts.setdefault(name, CollectedText()).add_piece(value)
            elif value is not None or name not in self._members:
                self._members[name] = value

    def join(self) -> dict[str, object]:
        """Return the whole detail."""
        texts = {name: mend_surrogates(text.join()) for name, text in self._texts.items()}
        return self._members | texts
