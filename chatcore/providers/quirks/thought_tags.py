"""Tell thoughts that a model writes in tags, at the beginning of its answer, from the answer.

MiniMax always writes so, and every model that thinks does behind a server that does not know its
marks. Only the beginning counts: an answer may speak of such tags.

Some templates write the opening tag themselves, so that only the closing one arrives. Nobody can
tell such a thought before it ends. So it is learned from one answer how the next ones begin.
"""

import re
from collections.abc import Iterator

_OPENING = re.compile(r"\s*<(think|thinking|thought|thoughts|reasoning)>", re.IGNORECASE)
_MAX_OPENING_CHARS = 12  # of the longest tag
_TEMPLATE_CLOSING = "</think>"
_LONE_CLOSING = re.compile(r"\n</think>", re.IGNORECASE)
_NAMES = ("<think>", "<thinking>", "<thought>", "<thoughts>", "<reasoning>")


class ThoughtTags:
    """Splits the text of one answer while it arrives.

    `are_over` is True from the answer's first word on; nothing more is split then.
    `tagged_thoughts` is what stood in tags, with them, as its provider may want it back. With
    `begins_inside` the answer begins with a thought whose opening tag does not arrive.
    `should_begin_inside` tells at the end whether the next answer is to be read so; None if this
    one does not tell.
    """

    def __init__(self, *, begins_inside: bool = False) -> None:
        self.are_over = False
        self.should_begin_inside: bool | None = None
        self._begins_inside = begins_inside
        self._has_closed = False
        self._held_text = ""
        self._closing = _TEMPLATE_CLOSING if begins_inside else ""
        self._pieces: list[str] = []
        self._newest_chars = ""

    @property
    def tagged_thoughts(self) -> str:
        return "" if self._begins_inside else "".join(self._pieces)

    def split(self, text: str) -> Iterator[tuple[bool, str]]:
        """Yield what is known by now: whether it is a thought, and its text."""
        self._held_text += text
        while self._held_text and not self.are_over:
            if self._closing:
                ended, thought = self._take_thought()
                if thought:
                    yield True, thought
                if not ended:
                    return
            elif not self._open():
                return
        if self._held_text:
            self.watch(self._held_text)
            yield False, self._take_held_text()

    def watch(self, text: str) -> None:
        """Look for a closing tag on a line of its own in what follows the answer's first word."""
        text = self._newest_chars + text
        self._newest_chars = text[-len(_TEMPLATE_CLOSING) - 1 :]
        if _TEMPLATE_CLOSING in text and not self._pieces and _LONE_CLOSING.search(text):
            self.should_begin_inside = True

    def note_separate_thoughts(self) -> None:
        """Note that the server tells thoughts apart itself: none stands in the answer."""
        if self._begins_inside and not self._pieces:
            self._begins_inside, self._closing = False, ""

    def end(self, *, is_cut: bool) -> Iterator[tuple[bool, str]]:
        """Yield what was held back; `is_cut` if the model was stopped before its own end."""
        is_thought = bool(self._closing)
        text = self._take_held_text()
        if is_thought:
            self._pieces.append(text)
        if text:
            yield is_thought, text
        if is_thought and self._begins_inside and not is_cut and not self._has_closed:
            # It was the answer: this time the model has not thought.
            self.should_begin_inside = False
            yield False, "".join(self._pieces)

    def _open(self) -> bool:
        """Enter the tag at the beginning; return False while more text is needed to know."""
        match = _OPENING.match(self._held_text)
        if match:
            self._pieces.append(match[0])
            self._closing = f"</{match[1]}>"
            self._held_text = self._held_text[match.end() :]
            return True
        start = self._held_text.lstrip()
        if len(start) < _MAX_OPENING_CHARS and any(
            name.startswith(start.lower()) for name in _NAMES
        ):
            return False
        if self._pieces:
            self._held_text = start  # the blank lines between the thoughts and the answer
        self.are_over = True
        return True

    def _take_thought(self) -> tuple[bool, str]:
        """Remove and return what belongs to the thought, and whether it has ended."""
        end = self._held_text.lower().find(self._closing.lower())
        if end >= 0:
            thought, self._held_text = (
                self._held_text[:end],
                self._held_text[end + len(self._closing) :],
            )
            self._pieces += (thought, self._closing)
            self._closing, self._has_closed = "", True
            return True, thought
        kept = _count_begun(self._held_text, self._closing)
        cut = len(self._held_text) - kept
        thought, self._held_text = self._held_text[:cut], self._held_text[cut:]
        self._pieces.append(thought)
        return False, thought

    def _take_held_text(self) -> str:
        text, self._held_text = self._held_text, ""
        return text


def _count_begun(text: str, closing: str) -> int:
    """Return how many characters at a text's end may be the beginning of the closing tag."""
    lower_text, lower_closing = text[-len(closing) :].lower(), closing.lower()
    for count in range(min(len(text), len(closing) - 1), 0, -1):
        if lower_closing.startswith(lower_text[-count:]):
            return count
    return 0
