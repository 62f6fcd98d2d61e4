"""Read the standing rules of a session's owner."""

from collections.abc import Collection, Sequence
from uuid import UUID

from compaction.memory.core.ledger import lines as core_lines
from compaction.memory.models import LedgerLine, StandingRule
from compaction.sessions.facts import select_owner


def load_rules(session_id: UUID) -> Sequence[StandingRule]:
    """Return the rules of the session's owner, in the order in which they were made."""
    owners = select_owner(session_id)
    return list(StandingRule.objects.filter(owner__in=owners).order_by("id"))


def to_core_lines(rules: Sequence[StandingRule]) -> list[core_lines.LedgerLine]:
    """Return the rules as lines that belong to no message and come before all others."""
    return [
        core_lines.LedgerLine(
            kind=rule.kind,  # type: ignore[arg-type]  # the choices are the core's kinds
            text=rule.text,
            seq=0,
            role="user",
            key="",
            pinned=True,
        )
        for rule in rules
    ]


def map_rule_ids(lines: Collection[LedgerLine]) -> dict[int, int]:
    """Return the ids of the rules that were made of these lines, by the ids of the lines."""
    rules = StandingRule.objects.filter(line__in=[line.pk for line in lines])
    return {line_id: pk for line_id, pk in rules.values_list("line", "pk") if line_id}
