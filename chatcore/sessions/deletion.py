"""Delete a session with everything in it, and what nobody sees any more, in short transactions."""

import contextlib
import time
from collections.abc import Callable, Collection, Iterator
from datetime import timedelta
from functools import partial
from uuid import UUID

from django.db import transaction
from django.db.models import F, Model, Q, QuerySet, Value
from django.db.models.expressions import Combinable
from django.db.models.fields.reverse_related import ForeignObjectRel
from django.utils import timezone

from chatcore.base.databases.clock import read_clock
from chatcore.base.databases.outages import StorageAway
from chatcore.base.databases.short_transactions import ShortTransactions, weigh_row
from chatcore.base.row_by_row import try_each
from chatcore.base.runner import turn_runner
from chatcore.base.token_estimate import CHARS_PER_TOKEN_ESTIMATE
from chatcore.extension import exclude_kept, list_kept_owners
from chatcore.files import output_store
from chatcore.models import (
    Attachment,
    ContextEdit,
    ContextRevision,
    Message,
    OutputFile,
    Session,
    SessionEvent,
    Turn,
)

PAGE_SIZE = 1000  # rows whose keys are read at a time
# The tables that may have many rows of one session, in the order in which they are emptied, each
# with the characters of a row.
LARGE_TABLES: tuple[tuple[type[Model], Combinable], ...] = (
    (SessionEvent, Value(0)),
    (ContextEdit, Value(0)),
    (Attachment, F("size")),
    (Message, F("token_estimate") * CHARS_PER_TOKEN_ESTIMATE),
    (Turn, Value(0)),
    (ContextRevision, Value(0)),
)

# How long a request deletes rows. What is left of a long session is deleted in the background.
REQUEST_SECONDS = 1.0
NO_GRACE = timedelta()


def purge_due_sessions() -> int:
    """Delete the sessions that are hidden and due; return how many.

    Those are deleted sessions, and imports and forks whose process has died.
    """
    due_sessions = Session.all_objects.filter(discard_at__lte=read_clock())
    due_sessions = exclude_kept(due_sessions, "owner")
    session_ids = list(due_sessions.values_list("pk", flat=True))
    return sum(try_each(session_ids, purge_session, what="delete the hidden session"))


def is_session_kept(session_id: UUID) -> bool:
    """Return True if nothing of the owner of a session, hidden or not, may be deleted."""
    sessions = Session.all_objects.filter(pk=session_id)
    return any(sessions.filter(owner__in=owners).exists() for owners in list_kept_owners())


def purge_session(session_id: UUID, *, seconds: float | None = None) -> bool:
    """Delete a hidden session with its rows; return True when all is done.

    After so many `seconds` the rest is left to the next call. Two processes may do it at once.
    The session of a user of whom everything is kept stays as it is, hidden.
    """
    if is_session_kept(session_id):
        return False
    deadline = None if seconds is None else time.monotonic() + seconds
    for _ in _purge_step_by_step(session_id):
        if deadline is not None and time.monotonic() >= deadline:
            return False
    return True


def _purge_step_by_step(session_id: UUID) -> Iterator[None]:
    """Delete everything; yield after each transaction."""
    transactions = ShortTransactions()
    yield from _delete_output_files(transactions, session_id)
    for rows in _list_other_rows(session_id):
        yield from _delete_other_rows(transactions, rows)
    yield from _forget_questions(transactions, session_id)
    for model, chars in LARGE_TABLES:
        yield from _empty_table(transactions, model, chars, session_id)
    with transactions.open_transaction(1):
        Session.all_objects.filter(pk=session_id, discard_at__isnull=False).delete()
    yield


def _delete_output_files(transactions: ShortTransactions, session_id: UUID) -> Iterator[None]:
    """Delete the files that hold outputs, each after its row; those of forks stay."""
    rows = OutputFile.objects.filter(session=session_id).order_by("pk")
    while names := dict(rows.values_list("pk", "name")[:PAGE_SIZE]):
        for part in transactions.split(names, lambda _: weigh_row(0)):
            with transactions.open_transaction(weigh_row(0) * len(part)):
                rows.filter(pk__in=part).delete()
            with contextlib.suppress(StorageAway):  # the sweep deletes what has no row
                output_store.delete_unused([names[pk] for pk in part])
            yield


def _list_other_rows(session_id: UUID) -> list[QuerySet[Model]]:
    """Return the session's rows of each table that this app does not know."""
    large_models = {model for model, _ in LARGE_TABLES}
    relations = [
        field
        for field in Session._meta.get_fields(include_hidden=True)
        if isinstance(field, ForeignObjectRel)
        and field.related_model not in large_models | {Session}  # its forks stay
    ]
    return [
        relation.related_model._base_manager.filter(**{relation.field.name: session_id})
        for relation in relations
    ]


def _delete_other_rows(transactions: ShortTransactions, rows: QuerySet[Model]) -> Iterator[None]:
    """Delete rows with what depends on them."""
    while pks := list(rows.order_by("pk").values_list("pk", flat=True)[:PAGE_SIZE]):
        for part in transactions.split(pks, lambda _: weigh_row(0)):
            with transactions.open_transaction(weigh_row(0) * len(part)):
                rows.filter(pk__in=part).delete()
            yield


def _forget_questions(transactions: ShortTransactions, session_id: UUID) -> Iterator[None]:
    """Clear what turns say of messages: each refers to the other, so neither could go first."""
    turns = Turn.objects.filter(session=session_id).order_by("pk")
    pks = list(turns.exclude(question=None, replaces=None).values_list("pk", flat=True))
    for part in transactions.split(pks, lambda _: weigh_row(0)):
        with transactions.open_transaction(weigh_row(0) * len(part)):
            Turn.objects.filter(pk__in=part).update(question=None, replaces=None)
        yield


def _empty_table(
    transactions: ShortTransactions, model: type[Model], chars: Combinable, session_id: UUID
) -> Iterator[None]:
    # The newest rows first, because later versions of a message refer to earlier ones.
    rows: QuerySet[Model] = model._default_manager.filter(session=session_id).order_by("-pk")
    weighed_rows = rows.annotate(chars=chars).values_list("pk", "chars")
    while page := list(weighed_rows[:PAGE_SIZE]):
        for part in transactions.split(page, lambda row: weigh_row(row[1])):
            part_rows = rows.filter(pk__in=[pk for pk, _ in part]).order_by()
            with transactions.open_transaction(sum(weigh_row(size) for _, size in part)):
                part_rows.only("pk").delete()  # nothing is left that refers to them
            yield


def delete_session(
    session_id: UUID,
    *,
    check: Callable[[Session], None] | None = None,
    grace: timedelta = NO_GRACE,
) -> None:
    """Delete a session and all its rows; an answer that is being generated is stopped.

    The sessions of its subagents are deleted with it: no list shows them without their parent.
    The session is gone for everyone at once. Its rows follow in short transactions; those of a long
    session are deleted by `purge_due_sessions`. With `grace` they stay so long, and staff may bring
    the session back. `check` is called with the locked session, and what it raises keeps it.
    """
    is_hidden = False
    while not is_hidden:
        is_hidden = _hide_session(session_id, check, grace)
    for subagent_id in list(Session.objects.filter(parent=session_id).values_list("pk", flat=True)):
        delete_session(subagent_id, grace=grace)
    if grace:
        return
    # Not inside a transaction of the caller, which would make one long one of the short ones.
    transaction.on_commit(lambda: purge_session(session_id, seconds=REQUEST_SECONDS))


def bring_back(session_ids: Collection[UUID]) -> int:
    """Show sessions again that retention has hidden; return how many. They count as just used."""
    now = read_clock()
    expired_sessions = Session.all_objects.filter(
        Q(pk__in=session_ids) | Q(parent__in=session_ids),  # with their subagents
        expired_at__isnull=False,
        discard_at__gt=now,
    )
    return expired_sessions.update(discard_at=None, expired_at=None, updated_at=now)


def _hide_session(
    session_id: UUID, check: Callable[[Session], None] | None, grace: timedelta
) -> bool:
    """Close and hide the session unless a turn has begun meanwhile; return False in that case."""
    with transaction.atomic():
        open_turns = Turn.objects.filter(session=session_id, status__in=Turn.OPEN_STATUSES)
        locked_turn_count = open_turns.lock()
        try:
            session = Session.objects.lock(session_id)
        except Session.DoesNotExist:
            return True
        # A turn that began between the two locks is not locked. Its writer may already hold the
        # turn and wait for the session, so closing the turn now would make both wait forever.
        # Leaving the transaction releases the locks; the next attempt locks that turn first.
        if open_turns.count() != locked_turn_count:
            return False
        if check:
            check(session)
        # Who waits for the answer must find no session, not a cancelled turn, so generating is
        # stopped only when the session is hidden. Another process notices that the turn is over.
        for turn_id in open_turns.values_list("pk", flat=True):
            transaction.on_commit(partial(turn_runner.cancel, turn_id))
        Message.objects.filter(turn__in=open_turns, status=Message.Status.STREAMING).update(
            status=Message.Status.INTERRUPTED
        )
        open_turns.update(status=Turn.Status.CANCELLED, finished_at=timezone.now())
        # The client's own name is free again.
        session.external_id = None
        now = read_clock()
        session.discard_at = now + grace
        session.expired_at = now if grace else None
        session.save(update_fields=["external_id", "discard_at", "expired_at"])
        return True
