"""Rules that a user has lifted from a session to all of them ("always").

They stand beside the summary of each session of the user, under every policy; where the policy has
a ledger they are its first lines. A session gets them with its next request, so a change touches no
session by itself.
"""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, QuerySet

from chatcore.base.databases.person_lock import lock_person
from chatcore.models import Session
from compaction.memory.core.ledger import lines as core_lines
from compaction.memory.ledger import store
from compaction.memory.ledger.changes import NoSuchLine
from compaction.memory.models import LedgerLine, SentRules, StandingRule
from compaction.sessions.background import publish_background
from compaction.sessions.facts import list_session_ids
from compaction.sessions.session_context import load_session_context
from compaction.sessions.source_messages import lock_session

MAX_RULES = 100  # of a user


def load_rules(session_id: UUID) -> Sequence[StandingRule]:
    """Return the rules that hold in a session, in the order in which they were made."""
    owner = Session.objects.filter(pk=session_id).order_by().values("owner")
    rules = StandingRule.objects.filter(owner__in=owner)
    return list(rules.exclude(Exists(_select_choice(session_id))).order_by("id"))


def are_left_out(session_id: UUID) -> bool:
    """Return True if the session does without the rules of its owner."""
    return _select_choice(session_id).exists()


def are_sent(session_id: UUID) -> bool:
    """Return True if rules may stand in the session's context."""
    return SentRules.objects.filter(session=session_id).exclude(fingerprint="").exists()


def list_sessions_without(owner_id: int | None) -> list[Session]:
    """Return the user's sessions that do without the rules, the newest first."""
    choices = SentRules.objects.filter(left_out=True, session__owner=owner_id)
    sessions = Session.objects.filter(pk__in=choices.values("session"))
    return list(sessions.only("id", "title").order_by("-updated_at", "pk"))


def _select_choice(session_id: UUID) -> QuerySet[SentRules]:
    return SentRules.objects.filter(session=session_id, left_out=True)


def to_core_lines(rules: Sequence[StandingRule]) -> list[core_lines.LedgerLine]:
    """Return the rules as lines that belong to no message and come before all others."""
    return [
        core_lines.LedgerLine(
            # The column has no choices: what another version or a hand wrote there stays a rule.
            kind=rule.kind if rule.kind in core_lines.KINDS else "rule",
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


class TooManyRules(Exception):
    """The user has as many rules as anyone may have."""


def add_rule(owner: Any, fields: Mapping[str, object]) -> StandingRule:
    """Store a rule that a user wrote, and return it. Raises TooManyRules."""
    with transaction.atomic():
        lock_person(owner.pk)
        if StandingRule.objects.filter(owner=owner).count() >= MAX_RULES:
            raise TooManyRules
        return StandingRule.objects.create(owner=owner, **fields)


def lift_line(owner: Any, line_id: int) -> StandingRule:
    """Make a line of one of the owner's sessions a rule, once. Raises NoSuchLine, TooManyRules."""
    session_ids = list_session_ids(owner)
    line = LedgerLine.objects.filter(pk=line_id, session__in=session_ids).first()
    if line is None or not store.select_lines(line.session_id).filter(pk=line_id).exists():
        raise NoSuchLine
    rules = StandingRule.objects.filter(owner=owner, line=line)
    with transaction.atomic():
        lock_person(owner.pk)  # another request may lift it at the same moment
        return rules.first() or add_rule(
            owner, {"kind": line.kind, "text": line.text, "line": line}
        )


def set_left_out(session_id: UUID, left_out: bool) -> None:
    """Let a session do without its owner's rules, or not, from its next request on."""
    SentRules.objects.update_or_create(
        session_id=session_id,
        defaults={"left_out": left_out},
        create_defaults={"left_out": left_out, "fingerprint": "", "version": 0},
    )


def refresh_session(session: Session) -> None:
    """Put the owner's rules, as they are now, beside the session's summary."""
    fingerprint = _compute_fingerprint(load_rules(session.pk))
    if not fingerprint and not session.context_version:
        return  # nothing stands beside a summary yet
    sent_rules = SentRules.objects.filter(session=session.pk).first()
    if sent_rules is None:
        is_current = not fingerprint
    else:
        is_current = (sent_rules.fingerprint, sent_rules.version) == (
            fingerprint,
            session.context_version,
        )
    if not is_current:
        _publish_rules(session.pk, fingerprint)


def _publish_rules(session_id: UUID, fingerprint: str) -> None:
    with transaction.atomic():
        if not lock_session(session_id):
            return
        publish_background(session_id)
        context = load_session_context(session_id)
        version = context.facts.live.version if context else 0
        SentRules.objects.update_or_create(
            session_id=session_id, defaults={"fingerprint": fingerprint, "version": version}
        )


def _compute_fingerprint(rules: Sequence[StandingRule]) -> str:
    """Return what differs when any rule differs; empty without rules."""
    if not rules:
        return ""
    values = [(rule.kind, rule.text) for rule in rules]
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()
