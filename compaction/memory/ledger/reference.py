"""Render the ledger as the reference text that stands beside the summary."""

from collections.abc import Collection
from dataclasses import replace
from uuid import UUID

from django.db.models import Q

from chatcore.base.token_estimate import CHARS_PER_TOKEN_ESTIMATE
from chatcore.models import ContextRevision
from compaction.core.budget import Budget, take_share
from compaction.core.policy import Policy
from compaction.memory.core.ledger.corrections import add_changes
from compaction.memory.core.ledger.lines import LedgerLine as CoreLine
from compaction.memory.core.ledger.lines import normalize_text
from compaction.memory.core.ledger.rendering import HEADING, render_ledger
from compaction.memory.ledger import store
from compaction.memory.ledger.rules import load_rules, to_core_lines
from compaction.memory.models import LedgerLine
from compaction.memory.source_messages import find_recent_seq, list_shortened_seqs
from compaction.sessions.memory_app import MemoryApp
from compaction.sessions.session_context import SessionContext
from compaction.sessions.session_memory import list_memories
from compaction.sessions.source_messages import load_days
from textkit.credentials import has_credentials

RULES_RATIO = 0.15  # of the basis: the room of standing rules where the policy has no ledger
UNKNOWN_BASIS = 8_000  # tokens, where the window is not known

Status = LedgerLine.Status


def render_stored_lines(context: SessionContext) -> str:
    """Return the ledger for the context as it is."""
    first_live_seq = context.facts.live.boundary_seq or 0
    shortened_seqs: Collection[int] = ()
    if context.policy.ledger.ratio:
        shortened_seqs = list_shortened_seqs(context.facts.session_id, first_seq=first_live_seq)
    text = render_lines(context, boundary_seq=first_live_seq, shortened_seqs=shortened_seqs)
    imported_text = _load_imported_text(context.facts.session_id)
    return "\n\n".join(part for part in (text, imported_text) if part)


def _load_imported_text(session_id: UUID) -> str:
    """Return the reference text that came with an import, until a compaction writes another.

    That of an export of ours is rendered again from what was imported beside it.
    """
    revisions = ContextRevision.objects.filter(session=session_id).order_by("version")
    rows = list(revisions.values_list("source", "background"))
    texts = [text for source, text in rows if source == ContextRevision.Source.EDIT and text]
    is_compacted = any(source == ContextRevision.Source.COMPACTION for source, _ in rows)
    if is_compacted or not texts or texts[0].startswith(HEADING):
        return ""
    others = [memory for memory in list_memories() if not isinstance(memory, MemoryApp)]
    return "" if any(other.has_text(session_id) for other in others) else texts[0]


def render_lines(
    context: SessionContext,
    *,
    boundary_seq: int | None,
    shortened_seqs: Collection[int] = (),
) -> str:
    """Return standing rules and the ledger as reference text; empty if there is nothing to say.

    The owner's standing rules come first, under every policy. The ledger has the lines of messages
    before the boundary and of messages that are sent in another form, and those that a user wrote
    or changed. All others stand in the messages that are sent.
    """
    lines = to_core_lines(load_rules(context.facts.session_id))
    if context.policy.ledger.ratio:
        standing_texts = {normalize_text(line.text) for line in lines}
        lines += [
            line
            for line in _load_hidden_lines(context, boundary_seq or 0, shortened_seqs)
            if normalize_text(line.text) not in standing_texts
        ]
    return render_ledger(
        lines,
        max_chars=count_ledger_chars(context.policy, context.budget),
        recent_seq=find_recent_seq(context.facts.session_id) if lines else None,
    )


def _load_hidden_lines(
    context: SessionContext, first_live_seq: int, shortened_seqs: Collection[int]
) -> list[CoreLine]:
    """Return the lines of the ledger that the messages which are sent do not say.

    A message that is sent may correct or forget such a line: its own line is among them then, and
    what it forgets is not.
    """
    rows = store.select_lines(context.facts.session_id).exclude(status=Status.DROPPED)
    hidden_filter = Q(seq=None) | Q(is_edited=True) | Q(seq__lt=first_live_seq)
    if shortened_seqs:
        hidden_filter |= Q(seq__gte=min(shortened_seqs))
    hidden_rows = [
        row
        for row in rows.filter(hidden_filter).order_by("seq", "id")
        if _is_out_of_sight(row, first_live_seq, shortened_seqs)
    ]
    days = load_days(context.facts.session_id, {row.seq for row in hidden_rows if row.seq})
    lines = [replace(store.to_core_line(row), day=days.get(row.seq or 0)) for row in hidden_rows]
    sent_rows = rows.filter(seq__gte=first_live_seq).order_by("seq", "id")
    return add_changes(lines, [store.to_core_line(row) for row in sent_rows])


def estimate_growth(context: SessionContext, last_seq: int) -> int:
    """Return the characters that the ledger may grow by if messages up to `last_seq` are compacted.

    A pass counts them before it knows where the boundary will be.
    """
    if not context.policy.ledger.ratio:
        return 0
    present_text = render_lines(context, boundary_seq=context.facts.live.boundary_seq)
    next_text = render_lines(context, boundary_seq=last_seq + 1)
    return max(0, len(next_text) - len(present_text))


def count_ledger_chars(policy: Policy, budget: Budget | None) -> int:
    """Return the most characters that the ledger may take."""
    basis = budget.basis if budget else UNKNOWN_BASIS
    chars_per_token = min(CHARS_PER_TOKEN_ESTIMATE, policy.estimate.chars_per_token)
    return int(take_share(policy.ledger.ratio or RULES_RATIO, basis) * chars_per_token)


def _is_out_of_sight(row: LedgerLine, first_live_seq: int, shortened_seqs: Collection[int]) -> bool:
    """Return True for a line that the messages which are sent do not say, or say otherwise."""
    if row.seq is None or row.is_edited:
        return True
    if row.role == "tool" and has_credentials(row.text):
        return False  # an earlier version took such lines
    if row.seq >= first_live_seq:
        return row.seq in shortened_seqs
    # What superseded it stands in a message that is sent, so the older line says nothing any more.
    return row.superseded_by is None or row.superseded_by < first_live_seq
