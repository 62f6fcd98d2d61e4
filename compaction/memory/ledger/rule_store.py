"""Read the standing rules of a session's owner, and whether the session does without them."""

from collections.abc import Collection, Sequence
from uuid import UUID

from django.db.models import Exists, QuerySet

from compaction.memory.core.ledger import lines as core_lines
from compaction.memory.models import LedgerLine, SentRules, StandingRule
from compaction.sessions.facts import select_owner


def load_rules(session_id: UUID) -> Sequence[StandingRule]:
    """Return the rules that hold in a session, in the order in which they were made."""
    rules = StandingRule.objects.filter(owner__in=select_owner(session_id))
    return list(rules.exclude(Exists(_select_choice(session_id))).order_by("id"))


def are_left_out(session_id: UUID) -> bool:
    """Return True if the session does without the rules of its owner."""
    return _select_choice(session_id).exists()


def _select_choice(session_id: UUID) -> QuerySet[SentRules]:
    return SentRules.objects.filter(session=session_id, left_out=True)


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
