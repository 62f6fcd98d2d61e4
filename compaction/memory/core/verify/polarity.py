"""Whether a clause affirms or denies, and which clauses of the sources say the opposite."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from compaction.memory.core.verify.words import list_ordered_stems
from textkit.sentences import split_clauses

MATCH = 0.6  # of a clause's words must stand in the clause that says the opposite
ORDER_MATCH = 0.8  # the same, where the words stand in the same order
MARGIN = 0.25  # by which no clause that says the same may match as well
SOURCE_SHARE = 0.34  # of the source clause's words must stand in the summary's clause
MIN_STEMS = 2
SCOPE_STEMS = 2  # words after a negation that it is about
GAP_STEMS = 2  # other words that may stand between those in the same order

_NOT = re.compile(
    r"\b(?:not|never|no|none|nobody|nothing|neither|nor|cannot|\w+n['’]t|no longer|"
    r"nicht|nie|niemals|kein(?:e[nmrs]?)?|nichts|niemand|weder|keinesfalls|nirgends)\b",
    re.IGNORECASE,
)
# Bounds are no negations: "no more than three" is "at most three".
_UPPER = re.compile(
    r"\b(?:at most|up to|(?:no|not|never) (?:more|longer|later|higher|larger) than|"
    r"höchstens|maximal|(?:nicht|nie|niemals) (?:mehr|länger|später|höher) als|bis zu)\b",
    re.IGNORECASE,
)
_LOWER = re.compile(
    r"\b(?:at least|(?:no|not|never) (?:less|fewer|earlier|lower) than|more than|over|mindestens|"
    r"(?:nicht|nie|niemals) (?:weniger|früher) als|mehr als|über)\b",
    re.IGNORECASE,
)
# Words that deny without one of those above. A reworded prohibition has them.
_DENYING = re.compile(
    r"\b(?:avoid\w*|forb\w+|prohibit\w*|refus\w+|reject\w*|declin\w+|exclud\w+|without|stop\w*|"
    r"cancel\w*|fail\w*|lack\w*|except|instead|rather|only|against|dislik\w*|hat(?:e|es|ed)|"
    r"disabl\w*|remov\w*|den(?:y|ies|ied)|unable|impossible|missing|absent|free|off|"
    r"ruled? out|skip\w*|drop\w*|omit\w*|leave out|left out|allerg\w+|"
    r"un(?:allowed|available|wanted|necessary|safe|likely|supported|finished|resolved)|"
    r"verbot\w*|verbiet\w*|untersag\w*|vermeid\w*|vermied\w*|ablehn\w*|abgelehnt|lehnt\w*|"
    r"weiger\w*|verweiger\w*|ausschließ\w*|ausgeschlossen|stornier\w*|statt|anstatt|außer|"
    r"nur|gegen|fehlt\w*|fehlen|un(?:möglich|zulässig|erwünscht|nötig)|verzicht\w*|ohne|frei|"
    r"entfern\w*|deaktivier\w*|erst)\b",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"\A\W*(?:no|nope|nein|nö)\s*[,.!:–—-]|\b(?:not only|nicht nur|do(?:es)?n['’]t forget|"
    r"do not forget|nicht vergessen|vergiss nicht|no (?:problem|worries|doubt|matter)|"
    r"kein problem|keine sorge|ohne zweifel|can['’]t wait|why not|warum nicht|not sure|"
    r"nicht sicher|(?:don['’]t|do not) (?:know|mind|care|hesitate)|weiß nicht)\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\?|\b(?:yet|still|if|unless|whether|until|maybe|perhaps|might|otherwise|would|could|"
    r"noch|bisher|falls|wenn|ob|sofern|bis|vielleicht|sonst|eventuell|würde\w*|könnte\w*)\b",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"\b(?:please|can you|could you|would like|want|wants|need to|let['’]?s|should|todo|plan|"
    r"bitte|kannst du|können sie|möchte\w*|soll|sollte\w*|will|wollen)\b",
    re.IGNORECASE,
)
_VALUE = re.compile(
    r"(?:\b(?:is|are|was|were|ist|sind|war|beträgt|gilt|lautet)\b|:)[^.!?]{0,30}\d", re.IGNORECASE
)
_STATUS = re.compile(
    r"\b(?:has|have|had|was|were|is|are|did|didn['’]t|hasn['’]t|haven['’]t|isn['’]t|wasn['’]t|"
    r"hat|haben|hatte\w*|wurde\w*|ist|sind|war\w*)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Clause:
    """What a clause is about, in order, and whether it denies it.

    `scope` has the words that the negation is about, and `bound` what `_find_bound` returns. A
    clause is open if it says neither that something holds nor that it does not: a question, a
    condition, a state that may change.
    """

    stems: tuple[str, ...]
    denies: bool
    scope: frozenset[str]
    is_open: bool
    is_request: bool
    is_status: bool
    denies_in_words: bool
    is_value: bool
    bound: int


def parse_clauses(text: str) -> list[Clause]:
    """Return the clauses of a sentence or of a message that have enough words to compare."""
    # The mark of a question belongs to its clause, which the division would take away.
    marked_text = re.sub(r"(?<![^.!?\n])([^.!?\n]*+)\?", r"\1 whether ?", text)
    clauses = (_parse_clause(clause) for clause in split_clauses(marked_text))
    return [clause for clause in clauses if len(clause.stems) >= MIN_STEMS]


def find_opposite(clauses: Iterable[Clause], source_clauses: Iterable[Clause]) -> bool:
    """Return whether a clause says the opposite of a source, and no source says the same."""
    sources = list(source_clauses)
    return any(_is_opposite(clause, sources) for clause in clauses)


def _parse_clause(text: str) -> Clause:
    bare_text = _HARMLESS.sub(" ", text)
    bound = _find_bound(bare_text)
    bare_text = _LOWER.sub(" ", _UPPER.sub(" ", bare_text))
    denial = _NOT.search(bare_text)
    return Clause(
        tuple(list_ordered_stems(bare_text)),
        denial is not None,
        _find_scope(bare_text, denial) if denial else frozenset(),
        is_open=bool(_OPEN.search(bare_text)),
        is_request=bool(_REQUEST.search(bare_text)),
        is_status=bool(_STATUS.search(bare_text)),
        denies_in_words=bool(_DENYING.search(bare_text)),
        is_value=bool(_VALUE.search(bare_text)),
        bound=bound,
    )


def _find_bound(text: str) -> int:
    """Return 1 if a clause says how much something is at most, -1 if how much at least, else 0."""
    if _UPPER.search(text):
        return 1
    return -1 if _LOWER.search(text) else 0


def _find_scope(text: str, denial: re.Match[str]) -> frozenset[str]:
    following_stems = list_ordered_stems(text[denial.end() :])[:SCOPE_STEMS]
    return frozenset(following_stems or list_ordered_stems(text[: denial.start()])[-1:])


def _is_opposite(clause: Clause, sources: list[Clause]) -> bool:
    stems = set(clause.stems)
    best_same = best_opposite = 0.0
    for source in sources:
        match = len(stems.intersection(source.stems)) / len(stems)
        if source.bound * clause.bound < 0:
            best_opposite = max(best_opposite, match)
        elif source.denies == clause.denies:
            best_same = max(best_same, match)
        elif _contradicts(source, clause, match):
            best_opposite = max(best_opposite, match)
        elif source.denies_in_words or clause.denies_in_words:
            best_same = max(best_same, match)
    return best_opposite >= MATCH and best_same <= best_opposite - MARGIN


def _contradicts(source: Clause, clause: Clause, match: float) -> bool:
    """Return whether both cannot hold. What was requested may still have not been done."""
    denying, other = (source, clause) if source.denies else (clause, source)
    # A value is not denied by what else is denied of its thing.
    if denying.scope.isdisjoint(other.stems) or (clause.is_value and source.denies):
        return False
    if match >= ORDER_MATCH and _has_same_order(clause.stems, source.stems):
        return True
    is_unclear = source.is_open or clause.is_open
    if is_unclear or source.denies_in_words or clause.denies_in_words:
        return False
    if clause.denies and source.is_request and clause.is_status:
        return False
    return match * len(set(clause.stems)) >= SOURCE_SHARE * len(set(source.stems))


def _has_same_order(stems: Sequence[str], source_stems: Sequence[str]) -> bool:
    """Return whether the words that both have stand together, in the same order."""
    positions = [source_stems.index(stem) for stem in stems if stem in source_stems]
    if positions != sorted(positions):
        return False
    return positions[-1] - positions[0] < len(positions) + GAP_STEMS
