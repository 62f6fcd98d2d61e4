"""What the checks of a summary found, as it is stored with the run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

Check = Literal[
    "numbers",
    "identifiers",
    "dates",
    "names",
    "language",
    "speakers",
    "continuation",
    "orders",
    "ending",
    "negations",
    "ledger",
    "grounding",
    "missing",
    "length",
]
Action = Literal["refused", "dropped", "added", "shortened"]
CHECKS: tuple[Check, ...] = tuple(name for name in get_args(Check) if name != "missing")
FINDING_CHARS = 300  # of a finding's text
MAX_FINDINGS = 50  # of a record

_REASONS: dict[Check, str] = {
    "numbers": "It states a number that stands nowhere in the conversation",
    "identifiers": "It states an address, a path or an id that stands nowhere in the conversation",
    "dates": "It states a date that stands nowhere in the conversation",
    "names": "It names somebody or something that the conversation does not name",
    "language": "It is written in another language than the conversation",
    "speakers": "It exchanges what the user and the assistant said",
    "continuation": "It continues or answers the conversation",
    "orders": "It gives orders to its reader",
    "ending": "It breaks off",
    "negations": "It turns a statement into its opposite",
    "ledger": "It contradicts what was said word for word",
    "grounding": "It says something that the conversation does not say",
    "missing": "It leaves something out",
    "length": "It is much longer than it may be",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One sentence that a check objects to; `start` and `end` are its place in the summary."""

    check: Check
    text: str
    start: int
    end: int

    @property
    def reason(self) -> str:
        """What is wrong, in one sentence for the model and for users."""
        return f"{_REASONS[self.check]}: {shorten_text(self.text)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Verification:
    """A summary after its checks. `objection` says why it cannot be used; empty if it can."""

    summary: str
    records: tuple[dict[str, object], ...] = ()
    objection: str = ""


def build_record(check: Check, text: str, action: Action) -> dict[str, object]:
    """Return a finding as it is stored."""
    return {"check": check, "text": shorten_text(text), "action": action}


def build_report(records: Iterable[Mapping[str, object]]) -> dict[str, object]:
    """Return what a run stores: the names of the checks, and what was done about each finding."""
    return {"checks": list(CHECKS), "findings": list(records)[-MAX_FINDINGS:]}


def shorten_text(text: str) -> str:
    """Return a text in one line of at most FINDING_CHARS characters."""
    line = " ".join(text.split())
    return line if len(line) <= FINDING_CHARS else line[: FINDING_CHARS - 1] + "…"
