"""Read the messages that the ledger has not read yet, and store what they say."""

from uuid import UUID

from django.db import transaction

from chatcore.context.live_messages import load_current_seqs
from compaction.memory.core.ledger.corrections import drop_untied, find_change
from compaction.memory.core.ledger.lines import CHANGE_KEY, LedgerLine
from compaction.memory.core.ledger.recognition import recognize_lines
from compaction.memory.ledger import store
from compaction.memory.source_messages import SourceMessage, load_source_messages
from compaction.sessions.background import publish_background
from compaction.sessions.queries import load_session_state
from compaction.sessions.session_context import SessionContext
from compaction.sessions.source_messages import lock_session

# After a response a few messages are new. Of an import the check reads no more than this; the rest
# is read before a pass.
CHECK_MESSAGES = 20
BATCH_MESSAGES = 200


def record_new_lines(context: SessionContext) -> None:
    """Read the newest messages after a response, if the policy has a ledger.

    What they correct or want forgotten of earlier lines holds from the next request on.
    """
    first_seq = context.state.ledger_seq
    if context.policy.ledger.ratio and context.facts.last_seq > first_seq:
        _read_batch(context, after_seq=first_seq, limit=CHECK_MESSAGES)
        if context.facts.live.boundary_seq and _have_changes(context, after_seq=first_seq):
            _publish_changes(context.facts.session_id)


def _have_changes(context: SessionContext, *, after_seq: int) -> bool:
    rows = store.select_lines(context.facts.session_id).filter(seq__gt=after_seq)
    return any(find_change(text) for text in rows.values_list("text", flat=True))


def _publish_changes(session_id: UUID) -> None:
    with transaction.atomic():
        if lock_session(session_id):
            publish_background(session_id)


def record_all_lines(context: SessionContext) -> None:
    """Read every message that is not read yet, if the policy has a ledger.

    A session that was imported, or that had another policy, is caught up. Each batch is stored by
    itself, so that no transaction is long.
    """
    if not context.policy.ledger.ratio:
        return
    ledger_seq = load_session_state(context.facts.session_id).ledger_seq
    while ledger_seq < context.facts.last_seq:
        ledger_seq = _read_batch(context, after_seq=ledger_seq, limit=BATCH_MESSAGES)


def read_up_to(context: SessionContext, *, last_seq: int, limit: int) -> int:
    """Read messages that are not read yet up to `last_seq`, and at most about `limit` of them.

    This is for sessions whose policy has no ledger, too. Returns how far the messages are read.
    """
    ledger_seq = load_session_state(context.facts.session_id).ledger_seq
    for _ in range(0, limit, BATCH_MESSAGES):
        if ledger_seq >= last_seq:
            break
        ledger_seq = _read_batch(context, after_seq=ledger_seq, limit=BATCH_MESSAGES)
    return ledger_seq


def _read_batch(context: SessionContext, *, after_seq: int, limit: int) -> int:
    """Read some messages; return the number of the last one that is read now."""
    session_id = context.facts.session_id
    messages = load_source_messages(
        session_id, after_seq=after_seq, up_to_seq=context.facts.last_seq, limit=limit
    )
    lines = [line for message in messages for line in _recognize_lines(message)]
    last_seq = messages[-1].seq if len(messages) == limit else context.facts.last_seq
    if lines:
        _store_lines(session_id, lines, after_seq=after_seq, last_seq=last_seq)
    else:
        store.move_ledger_seq(session_id, from_seq=after_seq, to_seq=last_seq)
    return last_seq


def _recognize_lines(message: SourceMessage) -> tuple[LedgerLine, ...]:
    return recognize_lines(message.text, role=message.role, seq=message.seq)


def _store_lines(
    session_id: UUID, lines: list[LedgerLine], *, after_seq: int, last_seq: int
) -> None:
    with transaction.atomic():
        # The messages were read without a lock. What was deleted or superseded since then must not
        # be written down any more.
        if not lock_session(session_id):
            return
        current_seqs = load_current_seqs(session_id, lines[0].seq, lines[-1].seq)
        current_lines = [line for line in lines if line.seq in current_seqs]
        if any(CHANGE_KEY in line.key.split() for line in current_lines):
            current_lines = drop_untied(current_lines, store.load_lines(session_id))
        for start in range(0, len(current_lines), store.BATCH_SIZE):
            lines_of_batch = current_lines[start : start + store.BATCH_SIZE]
            store.add_recognized_lines(session_id, lines_of_batch)
        store.move_ledger_seq(session_id, from_seq=after_seq, to_seq=last_seq)
