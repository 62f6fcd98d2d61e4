"""Write the ledger into a text of limited length, the most important lines first."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace

from compaction.memory.core.ledger.corrections import (
    Place,
    Tie,
    find_change,
    find_forgotten,
    get_place,
    list_older_lines,
    list_values,
    tie_corrections,
)
from compaction.memory.core.ledger.languages import LANGUAGES
from compaction.memory.core.ledger.lines import KINDS, LedgerLine, normalize_text
from textkit.calendar import describe_day
from textkit.stems import fold_letters

_WORD = re.compile(r"[^\W\d_]+")
_POLITE_WORDS = frozenset().union(*(each.starters for each in LANGUAGES))

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
VALUES_SHARE = 0.4  # of the room, as far as there are exact values
MIN_ALIKE = 3  # words of lines that may say the same
OMISSION = "({count} more lines of the ledger are left out here.)"


def rank_lines(lines: Iterable[LedgerLine], *, recent_seq: int | None = None) -> list[LedgerLine]:
    """Return the lines, those first that are to be kept if there is room for few.

    The user's own lines and pinned ones come first, then what binds since the message `recent_seq`,
    and then what a model named. What was said several times, and values that stand in several
    lines, come before the others, and what binds an answer before facts. Of the rest the first and
    the newest come before those between: a long conversation keeps what it began with.
    """
    all_lines = sorted(lines, key=lambda line: line.seq)
    counts = Counter(value for line in all_lines for value in list_values(line.text))
    ranks = {
        id(line): _build_rank(
            line, counts, edge=min(place, len(all_lines) - 1 - place), recent_seq=recent_seq
        )
        for place, line in enumerate(all_lines)
    }
    return sorted(all_lines, key=lambda line: ranks[id(line)])


def _build_rank(
    line: LedgerLine, counts: Mapping[str, int], *, edge: int, recent_seq: int | None
) -> tuple[int, ...]:
    mentions = max((counts[value] for value in list_values(line.text)), default=0)
    return (
        not comes_first(line, recent_seq),
        not line.pinned,
        line.status != "current",
        not line.holds,
        -min(mentions, 3),
        line.kind in ("commitment", "fact"),
        edge,
        -line.seq,
    )


def comes_first(line: LedgerLine, recent_seq: int | None) -> bool:
    """Return whether a line has room before all others."""
    is_recent = recent_seq is not None and line.seq >= recent_seq
    return line.pinned or not line.seq or (is_recent and line.kind in ("rule", "preference"))


def render_ledger(
    lines: Iterable[LedgerLine], *, max_chars: int, recent_seq: int | None = None
) -> str:
    """Return the current lines, grouped by kind, in at most `max_chars` characters.

    Which come first says `rank_lines`; exact values have room of their own. Lines are left out
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
    candidates = _merge_alike(candidates)
    room = _Room(notes, max_chars - len(HEADING) - len(OMISSION) - 8)
    ranked_lines = rank_lines(candidates, recent_seq=recent_seq)
    first_lines = [line for line in ranked_lines if comes_first(line, recent_seq)]
    value_lines = [line for line in ranked_lines if line.kind == "value"]
    room.take(first_lines)
    room.take((line for line in ranked_lines if line.kind != "value"), kept_share=VALUES_SHARE)
    room.take(value_lines)
    room.take(ranked_lines)
    chosen_lines = room.lines
    if not chosen_lines:
        return ""
    notes_by_index = _find_notes(chosen_lines, ordered_lines, room.space)
    for index, line in enumerate(chosen_lines):
        if get_place(line) in notes:
            notes_by_index[index] = notes[get_place(line)]
    return _compose(chosen_lines, notes_by_index, len(candidates) - len(chosen_lines))


class _Room:
    """The lines that have been chosen, and the characters that are left."""

    def __init__(self, notes: Mapping[Place, str], space: int) -> None:
        self.notes = notes
        self.space = space
        self.lines: list[LedgerLine] = []
        self._kinds: set[str] = set()
        self._places: set[Place] = set()

    def take(self, lines: Iterable[LedgerLine], *, kept_share: float = 0.0) -> None:
        """Choose lines while there is room, and leave a share of the room."""
        kept_space = self.space * kept_share
        for line in lines:
            size = len(_render_line(line)) + len(self.notes.get(get_place(line), "")) + 1
            if line.kind not in self._kinds:
                size += len(TITLES[line.kind]) + 3
            if get_place(line) in self._places or size > self.space - kept_space:
                continue
            self.space -= size
            self._kinds.add(line.kind)
            self._places.add(get_place(line))
            self.lines.append(line)


def _merge_alike(lines: Sequence[LedgerLine]) -> list[LedgerLine]:
    """Return the lines, and of those that say the same in the same words the newest or pinned."""
    alike: dict[object, LedgerLine] = {}
    for line in lines:
        words = frozenset(_WORD.findall(fold_letters(line.text))) - _POLITE_WORDS
        key = (words, list_values(line.text)) if len(words) >= MIN_ALIKE else get_place(line)
        if key not in alike or not alike[key].pinned:
            alike[key] = line
    return sorted(alike.values(), key=lambda line: line.seq)


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
        if place in corrected:
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
