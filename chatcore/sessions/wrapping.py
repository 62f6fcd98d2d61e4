"""Separate what a user wrote from what a program put around it.

A coding program sends its reminders, its surroundings and its own examples as messages of the user.
Nothing of it is changed: a title leaves it out, and the page folds it.
"""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from chatcore.models import Message

# The general rule: a block in tags at the beginning or the end, whose name is made of several
# words. HTML, which people paste, has no such names.
_TAG = r"[A-Za-z][A-Za-z0-9.]*[-_][\w.-]*"
# Known wrappings that the rule does not see: tags of one word, and texts without tags. Each text is
# the beginning of a message or of a paragraph, up to whose end all is the program's.
_KNOWN_TAGS = r"INSTRUCTIONS|environment|context|editor"
_KNOWN_HEADINGS = r"# AGENTS\.md instructions for [^\n]*+\s++"  # Codex, before its tag
_KNOWN_TAILS = (
    r"To suggest changes to a file you MUST return |"  # Aider's reminder of the form of its edits
    r"# (?:\*SEARCH/REPLACE block\*|File editing) Rules"
)
_KNOWN_MESSAGES = (
    r"This is the Qwen Code\. We are setting up the context|"
    r"I switched to a new code base\. Please don't consider the above files|"  # the rest is Aider's
    r"I am not sharing any files that you can edit yet|I have \*added these files to the chat\*|"
    r"Here are summaries of some files present in my git repository"
)
# Everything before this message is an example of the program's.
_END_OF_EXAMPLE = r"I switched to a new code base\. Please don't consider the above files"  # Aider
# Tags of programs around what the user wrote.
_OWN_TAGS = r"task|feedback|user_message|user_query|user_input|command-name|command-args"

_HEAD = re.compile(rf"\s*+(?:{_KNOWN_HEADINGS})?<({_TAG}|{_KNOWN_TAGS})(?: [^<>\n]*)?>")
_END_TAG = re.compile(rf"</({_TAG}|{_KNOWN_TAGS})>\s*\Z")
_OWN = re.compile(rf"\s*+<({_OWN_TAGS})>\s*+(.*?)</\1>\s*+", re.DOTALL)
_TAIL = re.compile(rf"^(?:{_KNOWN_TAILS})", re.MULTILINE)
_MESSAGE = re.compile(_KNOWN_MESSAGES)
_EXAMPLE = re.compile(_END_OF_EXAMPLE)
_QUOTED = re.compile(r'"((?:[^"]|(?<=\\)")+)"')  # opencode
_LINE_END = re.compile(r"\s*\n\s*|\s*\Z")  # behind a block; in a sentence stands no wrapping


class Piece(NamedTuple):
    """A piece of a message: the user's own words, or what a program put around them.

    `mark` is a tag around the words, or space. The texts of all pieces together are the message.
    """

    text: str
    kind: Literal["words", "wrapping", "mark"]


def split_text(text: str) -> list[Piece]:
    """Split the text of a user's message. Without a wrapping it is one piece of words."""
    if _MESSAGE.match(text):
        return [Piece(text, "wrapping")]
    pieces: list[Piece] = []
    at = 0
    end = _find_end(text)
    while at < end:
        own = _OWN.match(text, at, end)
        block_end = None if own else _find_block_end(text, at, end)
        if own:
            words_end = own.start(2) + len(own[2].rstrip())
            pieces.append(Piece(text[at : own.start(2)], "mark"))
            pieces.append(Piece(text[own.start(2) : words_end], "words"))
            pieces.append(Piece(text[words_end : own.end()], "mark"))
            at = own.end()
        elif block_end:
            pieces.append(Piece(text[at:block_end], "wrapping"))
            at = block_end
        else:
            words_end = at + len(text[at:end].rstrip()) if end < len(text) else end
            pieces.append(Piece(text[at:words_end], "words"))
            pieces.append(Piece(text[words_end:end], "mark"))
            at = end
    return _join_wrappings([*pieces, Piece(text[end:], "wrapping")])


def find_words(text: str) -> str:
    """Return the user's own words in a message; empty if a program wrote all of it.

    Some programs put the words of a command line in quotation marks, with marks inside escaped.
    """
    words = " ".join(piece.text for piece in split_text(text) if piece.kind == "words").strip()
    quoted = _QUOTED.fullmatch(words)
    return quoted[1].replace('\\"', '"').strip() if quoted else words


def find_question(texts: Sequence[str]) -> str:
    """Return the first text with words of the user, after an example; empty if there is none."""
    ends = [index for index, text in enumerate(texts) if _EXAMPLE.match(text)]
    return next((text for text in texts[ends[-1] + 1 if ends else 0 :] if find_words(text)), "")


def count_example_messages(messages: Sequence[Message]) -> int:
    """Return how many messages at the beginning are an example that a program sent along."""
    for index, message in enumerate(messages):
        if message.turn_id is not None:
            break
        if message.role == "user" and _EXAMPLE.match(message.content):
            is_answered = messages[index + 1 :][:1]
            has_answer = bool(is_answered) and is_answered[0].role == "assistant"
            return index + 1 + has_answer
    return 0


def _find_block_end(text: str, start: int, end: int) -> int | None:
    """Return where the wrapping that begins at `start` ends; None if none does."""
    head = _HEAD.match(text, start, end)
    if not head:
        return None
    closing = f"</{head[1]}>"
    at = text.find(closing, head.end(), end)
    gap = _LINE_END.match(text, at + len(closing), end) if at >= 0 else None
    return gap.end() if gap else None


def _find_end(text: str) -> int:
    """Return where the wrappings at the end begin."""
    tail = _TAIL.search(text)
    end = tail.start() if tail else len(text)
    while (at := text.rfind("</", 0, end)) >= 0:
        end_tag = _END_TAG.match(text, at, end)
        if not end_tag:
            break
        opening = f"<{end_tag[1]}"
        begin = text.rfind(f"\n{opening}", 0, at) + 1
        is_block = text.startswith((f"{opening}>", f"{opening} "), begin)
        if not is_block or _OWN.match(text, begin, end):
            break
        end = begin
    return end


def _join_wrappings(pieces: Sequence[Piece]) -> list[Piece]:
    """Make one piece of neighbouring wrappings, and leave out what is empty."""
    joined: list[Piece] = []
    for piece in pieces:
        if piece.kind == "wrapping" and joined and joined[-1].kind == "wrapping":
            joined[-1] = Piece(joined[-1].text + piece.text, "wrapping")
        elif piece.text:
            joined.append(piece)
    return joined
