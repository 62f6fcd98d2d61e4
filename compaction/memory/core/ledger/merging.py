"""Merge new lines into the ledger: a newer line supersedes its twin, and both say so."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from compaction.memory.core.ledger.lines import LedgerLine, normalize_text


def merge_lines(
    lines: Sequence[LedgerLine], new_lines: Iterable[LedgerLine]
) -> tuple[LedgerLine, ...]:
    """Return the ledger with the new lines, ordered by message.

    An exact repetition is not added twice, so merging the same lines again changes nothing. Of
    lines of one kind that are about the same thing, the newest is current and each older one is
    superseded by the next; what a tool says never supersedes what a user said. A line that was
    dropped stays dropped, and does not come back by a repetition.
    """
    merged_lines = list(lines)
    new_lines = list(new_lines)
    new_keys = {line.key for line in new_lines}
    rivals = [line for line in lines if line.key in new_keys]
    places = {_identify(line) for line in rivals}
    sayings = {
        (line.kind, line.role, line.key, normalize_text(line.text))
        for line in rivals
        if line.status != "superseded"
    }
    for line in new_lines:
        place = _identify(line)
        saying = (line.kind, line.role, line.key, normalize_text(line.text))
        if place in places or saying in sayings:
            continue
        places.add(place)
        sayings.add(saying)
        merged_lines.append(line)
    merged_lines.sort(key=lambda line: line.seq)
    return _supersede_twins(merged_lines)


def _identify(line: LedgerLine) -> tuple[str, str, str, int]:
    return (line.kind, line.key, normalize_text(line.text), line.seq)


def _supersede_twins(lines: list[LedgerLine]) -> tuple[LedgerLine, ...]:
    """Return the lines, of which each current one is the newest about its thing."""
    newest_lines: dict[tuple[str, str, frozenset[str]], LedgerLine] = {}
    reversed_lines = []
    for line in reversed(lines):
        if line.status == "dropped" or not line.key:
            reversed_lines.append(line)
            continue
        subject = frozenset(line.key.split())
        newer_line = newest_lines.get((line.kind, "user", subject))
        if newer_line is None and line.role != "user":
            newer_line = newest_lines.get((line.kind, line.role, subject))
        if newer_line and line.status == "current" and newer_line.text != line.text:
            line = replace(line, status="superseded", superseded_by=newer_line.seq)
        newest_lines[line.kind, line.role, subject] = line
        reversed_lines.append(line)
    return tuple(reversed_lines[::-1])
