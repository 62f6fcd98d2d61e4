"""What a language tells about rules, preferences, decisions, commitments and values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from compaction.memory.core.ledger.lines import Kind


@dataclass(frozen=True, kw_only=True, slots=True)
class Language:
    """A language's tables. Words are lower-case; patterns see lower-case text without quotations.

    The cues are a small precise net: what a summary model would name is not looked for with more
    patterns. `rule_starts` match where a clause begins, or behind a starter; `cues` anywhere.
    """

    code: str
    starters: frozenset[str]  # words before an order: "please", "and"
    rule_starts: str
    cues: Mapping[Kind, str]
    one_off: str  # what is asked for once: "this time"
    requests: str  # how a question asks for something: "could you"
    reports: str  # someone else's words: "he said"
    list_titles: str  # what a list of rules is called: "ground rules:"
    foreign_titles: str  # what stands above the text of someone else: "Anna wrote:"
    units: str  # an alternation of words and signs
    plain_words: frozenset[str]  # beside STOP_WORDS: say nothing of what a sentence is about
    negations: frozenset[str]
    feelings: str  # a negation of no consequence: "I don't know", "not bad"


def join_rows(table: str, *, languages: str = "") -> str:
    """Return the patterns of a table as one; a row goes on in lines that are indented.

    `<languages>` stands for the names of languages.
    """
    rows = re.sub(r"\n {4,}", "", table.strip()).replace("<languages>", languages)
    return "|".join(rows.splitlines())
