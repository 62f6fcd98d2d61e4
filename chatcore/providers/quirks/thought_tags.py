"""Tell thoughts that a model writes in tags, at the beginning of its answer, from the answer.

MiniMax always writes so, and every model that thinks does behind a server that does not know its
marks: `<think>`, Mistral's `[THINK]`, Kimi's `◁think▷`, Cohere's `<|START_THINKING|>`, the channels
of Harmony, also as `analysisHm.assistantfinalHello.`, from which a server has removed the marks.
Only the beginning counts, and what follows a first sentence or line: an answer may speak of such
tags.

Some templates write the opening tag themselves, so that only the closing one arrives. Nobody can
tell such a thought before it ends. So it is learned from one answer how the next ones begin.
"""

import re
from collections.abc import Iterator

_OPENING = re.compile(
    r"(?P<left><\|?|◁)(?P<begin>(?:start_|begin_of_|begin_)?)"
    r"(?P<name>(?:seed:)?(?:think(?:ing)?|thoughts?|reason(?:ing)?))(?P<right>\|?>|▷)"
    r"|\[(?P<word>(?-i:THINK|THINKING|REASONING))\]"
    r"|(?:<\|start\|>assistant)?<\|channel\|>(?:analysis|commentary)\b[^<]{0,80}<\|message\|>"
    r"|(?P<bare>\A(?-i:(?:assistant)?analysis(?=[^\W\da-z_]|[\"'“])))",
    re.IGNORECASE,
)
# What may become one, or the mark of an answer, once more text comes.
_BEGUN = re.compile(
    r"(?:<\|(?:start|channel)\|?[^\n]{0,160}|[<◁][|a-z:_]{0,20}|(?-i:\[[A-Z]{0,9}))\Z",
    re.IGNORECASE,
)
_ANSWER_MARK = re.compile(
    r"(?:<\|start\|>assistant)?<\|channel\|>final\b[^<]{0,40}<\|message\|>"
    r"|<\|(?:start_response|begin_of_solution)\|>|(?-i:assistantfinal)",
    re.IGNORECASE,
)
_HARMONY_END = "<|end|>"
_BARE_END = "assistantfinal"
_BARE_BEGINNINGS = ("assistantanalysis", "analysis", _BARE_END)
_SENTENCE_ENDS = tuple(".!?:…,")
_FIRST_CHARS = 200  # of an answer, which a thought may follow
_TEMPLATE_CLOSING = "</think>"
_LONE_CLOSING = re.compile(r"\n</think>", re.IGNORECASE)


class ThoughtTags:
    """Splits the text of one answer while it arrives.

    `are_over` is True from where no thought can begin any more; nothing more is split then.
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
        self._first_text = ""  # of the answer, so far
        self._closing = _TEMPLATE_CLOSING if begins_inside else ""
        self._pieces: list[str] = []
        self._newest_chars = ""

    @property
    def is_inside(self) -> bool:
        """Whether a thought has begun and not ended yet."""
        return bool(self._closing)

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
            else:
                text = self._open()
                if text:
                    self.watch(text)
                    yield False, text
                if not (self._closing or self.are_over):
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
        has_first_words = bool(self._first_text.strip()) or self._closing == _BARE_END
        text = self._take_held_text()
        if is_thought:
            self._pieces.append(text)
        if text:
            yield is_thought, text
        if not is_thought or is_cut or self._has_closed:
            return
        if self._begins_inside:
            # It was the answer: this time the model has not thought.
            self.should_begin_inside = False
            yield False, "".join(self._pieces)
        elif has_first_words:
            yield False, "".join(self._pieces)  # the answer speaks of a tag
            self._pieces.clear()

    def _open(self) -> str:
        """Enter the tag where one begins, and return the text before it.

        What may become a tag is held back.
        """
        if not self._first_text:
            start = self._held_text.lstrip()
            if mark := _ANSWER_MARK.match(start):
                self._held_text = start[mark.end() :]
        for match in _OPENING.finditer(self._held_text):
            if _may_precede_thought(self._first_text + self._held_text[: match.start()]):
                return self._enter(match)
        if not self._first_text and _may_become_bare_mark(self._held_text.lstrip()):
            return ""
        begun = _BEGUN.search(self._held_text)
        if not self._held_text[: begun.start() if begun else None].strip() and not self._first_text:
            return ""
        text = self._held_text[: begun.start()] if begun else self._held_text
        self._held_text = self._held_text[len(text) :]
        if self._pieces and not self._first_text:
            text = text.lstrip()  # the blank lines between the thoughts and the answer
        self._first_text += text
        if len(self._first_text) > _FIRST_CHARS or "\n" in self._first_text.strip():
            self.are_over = True
        return text

    def _enter(self, opening: re.Match[str]) -> str:
        text = self._held_text[: opening.start()]
        self._held_text = self._held_text[opening.end() :]
        if opening["name"]:
            is_word = opening["begin"].lower().startswith(("start", "begin"))
            begin = re.sub("start|begin", "end", opening["begin"].lower()) if is_word else "/"
            self._closing = opening["left"] + begin + opening["name"] + opening["right"]
        elif opening["word"]:
            self._closing = f"[/{opening['word']}]"
        else:
            self._closing = _BARE_END if opening["bare"] else _HARMONY_END
        if self._first_text.strip() or text.strip():
            self._first_text += text
            self._pieces.append(opening[0])
            return text
        self._pieces.append(text + opening[0])
        return ""

    def _take_thought(self) -> tuple[bool, str]:
        """Remove and return what belongs to the thought, and whether it has ended."""
        start = self._held_text.lower().find(self._closing.lower())
        if start >= 0:
            end = start + len(self._closing)
            thought = self._held_text[:start]
            self._pieces.append(self._held_text[:end])
            self._held_text = self._held_text[end:]
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


def remove_thoughts(text: str) -> str:
    """Return an answer without thoughts that stand in tags at its beginning.

    An answer that is nothing else stays, and so does one whose last thought does not end.
    """
    if not _OPENING.search(text, 0, 2 * _FIRST_CHARS):
        return text
    tags = ThoughtTags()
    pieces = list(tags.split(text))
    is_open = tags.is_inside
    pieces += tags.end(is_cut=False)
    answer = "".join(piece for is_thought, piece in pieces if not is_thought)
    return text if is_open or not answer.strip() else answer


def _may_precede_thought(text: str) -> bool:
    """Return whether a text is nothing but a first sentence or line."""
    words = text.rstrip()
    is_line = len(text) <= _FIRST_CHARS and "\n" not in words.lstrip()
    is_ended = words.endswith(_SENTENCE_ENDS) or "\n" in text[len(words) :]
    return not words or (is_line and is_ended)


def _may_become_bare_mark(text: str) -> bool:
    """Return whether more text may make it the beginning of a Harmony answer without its marks."""
    return bool(text) and any(mark.startswith(text) for mark in _BARE_BEGINNINGS)


def _count_begun(text: str, closing: str) -> int:
    """Return how many characters at a text's end may be the beginning of the closing tag."""
    lower_text, lower_closing = text[-len(closing) :].lower(), closing.lower()
    for count in range(min(len(text), len(closing) - 1), 0, -1):
        if lower_closing.startswith(lower_text[-count:]):
            return count
    return 0
