"""Write the ledger into a text of limited length, the most important lines first."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import lru_cache

from compaction.memory.core.ledger.corrections import (
    Place,
    Tie,
    find_change,
    find_forgotten,
    get_place,
    list_older_lines,
    tie_corrections,
)
from compaction.memory.core.ledger.lines import CHANGE_KEY, KINDS, LedgerLine, normalize_text
from compaction.memory.core.ledger.values import find_names, find_values
from textkit.calendar import describe_day

_WORD = re.compile(r"[^\W\d_]+")

TITLES = {
    "rule": "Rules",
    "preference": "Preferences",
    "decision": "Decisions",
    "commitment": "Commitments",
    "fact": "Facts",
    "value": "Exact values",
}
HEADING = "What was said, word for word, with the number of its message:"
FORGETTING_NOTE = (
    " (Left out of this list since then. The messages still say it: only deleting them removes it.)"
)
OMISSION = "({count} more lines of the ledger are left out here.)"


def rank_lines(lines: Iterable[LedgerLine]) -> list[LedgerLine]:
    """Return the lines, those first that are to be kept if there is room for few.

    Pinned lines come first, then the kinds in the order of KINDS. Within a kind those with an exact
    value come before those without one. Then come those whose values stand in several lines, and
    then the newest.
    """
    all_lines = list(lines)
    counts = Counter(value for line in all_lines for value in set(_list_values(line.text)))
    return sorted(all_lines, key=lambda line: _build_rank(line, counts))


def _build_rank(line: LedgerLine, counts: Mapping[str, int]) -> tuple[int, ...]:
    values = _list_values(line.text)
    most_mentions = max((counts[value] for value in values), default=0)
    has_value = bool(values) or any(find_names(line.text, set(_WORD.findall(line.text.lower()))))
    return (
        not line.pinned,
        KINDS.index(line.kind),
        line.status != "current",
        not has_value,
        -min(most_mentions, 3),
        -line.seq,
    )


# A pass renders the same lines several times, and looking for values takes most of it.
@lru_cache(maxsize=4_096)
def _list_values(text: str) -> tuple[str, ...]:
    return tuple(value.text for value in find_values(text))


def render_ledger(lines: Iterable[LedgerLine], *, max_chars: int) -> str:
    """Return the current lines, grouped by kind, in at most `max_chars` characters.

    Pinned lines come first, then rules, then the others: see `rank_lines`. Lines are left out
    whole, and the text says how many. Where there is room, behind a line stands what was said
    before it about the same, or in which message a part of it was changed. A correction and what it
    corrects are one line, or are left out together. What the user wants forgotten is left out. The
    text is empty if there is nothing to say or not even one line fits.
    """
    all_lines = sorted(lines, key=lambda line: line.seq)
    ordered_lines = drop_forgotten(all_lines)
    obsolete_texts = _find_obsolete_texts(ordered_lines)
    candidates = _drop_repetitions(
        line
        for line in ordered_lines
        if _is_pinned(line)
        or (
            line.status == "current"
            and line.holds != "answer"
            and not _is_obsolete(line, obsolete_texts)
        )
    )
    ties = tie_corrections(ordered_lines)
    forgetting_seqs = set(find_forgotten(all_lines).values())
    candidates, notes = _join_corrections(candidates, ties, forgetting_seqs)
    ranked_lines = rank_lines(candidates)
    space = max_chars - len(HEADING) - len(OMISSION) - 8
    chosen_lines: list[LedgerLine] = []
    kinds: set[str] = set()
    for line in ranked_lines:
        size = len(_render_line(line)) + len(notes.get(get_place(line), "")) + 1
        if line.kind not in kinds:
            size += len(TITLES[line.kind]) + 3
        if size <= space:
            space -= size
            kinds.add(line.kind)
            chosen_lines.append(line)
    if not chosen_lines:
        return ""
    notes_by_index = _find_notes(chosen_lines, ordered_lines, space)
    for index, line in enumerate(chosen_lines):
        if get_place(line) in notes:
            notes_by_index[index] = notes[get_place(line)]
    return _compose(chosen_lines, notes_by_index, len(candidates) - len(chosen_lines))


def drop_forgotten(lines: Sequence[LedgerLine]) -> list[LedgerLine]:
    """Return the lines without what the user wants forgotten."""
    forgotten = find_forgotten(lines)
    return [line for line in lines if get_place(line) not in forgotten]


def _join_corrections(
    lines: Sequence[LedgerLine], ties: Mapping[Place, Tie], forgetting_seqs: Set[int]
) -> tuple[list[LedgerLine], dict[Place, str]]:
    """Return the lines without those that others correct, and the notes that tell these.

    A correction stands where what it corrects would stand: it may be about a rule.
    """
    corrected = {get_place(tie.line) for tie in ties.values()}
    joined_lines: list[LedgerLine] = []
    notes: dict[Place, str] = {}
    for line in lines:
        place = get_place(line)
        if place in corrected or (place not in ties and _says_nothing_alone(line)):
            continue
        if find_change(line.text) == "forgetting":
            if line.seq in forgetting_seqs:
                notes[place] = FORGETTING_NOTE
        elif place in ties:
            older_lines = list_older_lines(line, ties)
            kind = min((line, *older_lines), key=lambda each: KINDS.index(each.kind)).kind
            pinned = any(each.pinned for each in (line, *older_lines))
            line = replace(line, kind=kind, pinned=pinned)
            notes[place] = _write_older_lines(older_lines, is_certain=ties[place].is_certain)
        joined_lines.append(line)
    return joined_lines, notes


def _says_nothing_alone(line: LedgerLine) -> bool:
    is_turn = CHANGE_KEY in line.key.split() and find_change(line.text) == "turn"
    return is_turn and not line.holds


def _write_older_lines(lines: Sequence[LedgerLine], *, is_certain: bool) -> str:
    texts = "; ".join(f"“{join_text_lines(line.text)}” [{_name_place(line)}]" for line in lines)
    return f" (was: {texts})" if is_certain else f" (said after: {texts})"


def _find_obsolete_texts(lines: Iterable[LedgerLine]) -> set[tuple[int, str]]:
    """Return the sentences of which every value was changed since: also as a decision."""
    statuses: dict[tuple[int, str], set[str]] = {}
    for line in lines:
        if line.kind == "value":
            statuses.setdefault((line.seq, line.text), set()).add(line.status)
    return {place for place, all_statuses in statuses.items() if all_statuses == {"superseded"}}


def _is_obsolete(line: LedgerLine, obsolete_texts: Set[tuple[int, str]]) -> bool:
    """Return whether a decision or commitment speaks of values that were changed since."""
    return line.kind in {"decision", "commitment"} and (line.seq, line.text) in obsolete_texts


def _is_pinned(line: LedgerLine) -> bool:
    return line.pinned and line.status != "dropped"


def _rank(line: LedgerLine) -> tuple[bool, int, int]:
    return (not line.pinned, KINDS.index(line.kind), -line.seq)


def _drop_repetitions(lines: Iterable[LedgerLine]) -> list[LedgerLine]:
    """Return the lines of which none repeats the text of another in the same message."""
    first_lines: dict[tuple[int, str], LedgerLine] = {}
    for line in lines:
        place = (line.seq, normalize_text(line.text))
        other = first_lines.get(place)
        if other is None or _rank(line) < _rank(other):
            first_lines[place] = line
    return list(first_lines.values())


def _render_line(line: LedgerLine) -> str:
    # A line that a user wrote belongs to no message, and its number is 0.
    text = join_text_lines(line.text)
    return f"- [{_name_place(line)}] {text}" if line.seq else f"- {text}"


def _name_place(line: LedgerLine) -> str:
    return f"{line.seq}, {describe_day(line.day)}" if line.day else str(line.seq)


def _find_notes(
    chosen_lines: Sequence[LedgerLine], lines: Sequence[LedgerLine], space: int
) -> dict[int, str]:
    """Return what lines were before, by the place of the line, as far as there is room."""
    notes: dict[int, str] = {}
    older_lines = {
        (line.kind, line.superseded_by, frozenset(line.key.split())): line
        for line in lines
        if line.status == "superseded"
    }
    changed_parts = {
        (line.seq, line.text): line.superseded_by for line in lines if line.status == "superseded"
    }
    for place, line in enumerate(chosen_lines):
        older_line = older_lines.get((line.kind, line.seq, frozenset(line.key.split())))
        newer_seq = changed_parts.get((line.seq, line.text))
        note = ""
        if newer_seq is not None:
            note = f" (changed in part, see [{newer_seq}])"
        elif older_line is not None and older_line.text != line.text:
            note = f" (was: “{join_text_lines(older_line.text)}” [{_name_place(older_line)}])"
        if note and len(note) <= space:
            notes[place] = note
            space -= len(note)
    return notes


def _compose(lines: Sequence[LedgerLine], notes: dict[int, str], omitted_count: int) -> str:
    parts = [HEADING]
    for kind in KINDS:
        places = [place for place, line in enumerate(lines) if line.kind == kind]
        if places:
            places.sort(key=lambda place: lines[place].seq)
            parts.append(f"{TITLES[kind]}:")
            parts.extend(_render_line(lines[place]) + notes.get(place, "") for place in places)
    if omitted_count:
        parts.append(OMISSION.format(count=omitted_count))
    return "\n".join(parts)


def join_text_lines(text: str) -> str:
    """Return the text in one line, so that no part of it looks like a line of its own."""
    return " ".join(text.splitlines())
