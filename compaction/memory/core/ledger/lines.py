"""One line of the ledger: what was said, by whom, where, and what it is about."""

import zlib
from dataclasses import dataclass
from datetime import date
from typing import Literal

Kind = Literal["rule", "preference", "decision", "commitment", "fact", "value"]
Status = Literal["current", "superseded", "dropped"]
Holds = Literal["answer", "task", "always"]

KINDS: tuple[Kind, ...] = ("rule", "preference", "decision", "commitment", "fact", "value")
LINE_CHARS = 400  # the most characters of one line
KEY_CHARS = 120  # the most characters of a key

# A word of the key of a sentence that takes something back and says nothing else by itself.
CHANGE_KEY = "(change)"


@dataclass(frozen=True, kw_only=True, slots=True)
class LedgerLine:
    """A sentence or clause of a message, word for word, with single spaces between its words.

    `seq` is the number of the message, `role` who said it (user or tool). `key` says what it is
    about, normalized: a newer line of the same kind and key supersedes the older one, and
    `superseded_by` is then the number of the newer message. `day` is that of the message, if known.
    `holds` says how long, where the summary model said it; a line that holds for one answer is not
    sent. `replaces` is the place of the line that this one replaces, see `name_place`.
    """

    kind: Kind
    text: str
    seq: int
    role: str
    key: str
    status: Status = "current"
    superseded_by: int | None = None
    pinned: bool = False
    day: date | None = None
    holds: Holds | Literal[""] = ""
    replaces: str = ""


def normalize_text(text: str) -> str:
    """Return the form by which texts are compared: no case, single spaces, no end mark."""
    return " ".join(text.casefold().split()).rstrip(".! ")


def name_place(line: LedgerLine) -> str:
    """Return the number of a line's message and a hash of its text: enough to find it again."""
    return f"{line.seq}:{zlib.crc32(normalize_text(line.text).encode()):08x}"
