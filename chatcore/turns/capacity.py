"""Bound the answers that are written at once, in this process and for one user.

Beyond its bounds the process refuses at once, before anything is stored, so that the answers it has
begun go on at their pace.
"""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from django.conf import settings

from chatcore.accounts.spending import check_call
from chatcore.base.databases.compiled_queries import CompiledQuery
from chatcore.base.databases.literals import Literal
from chatcore.base.metrics import counts
from chatcore.base.runner import turn_runner
from chatcore.base.slots import ProcessFull, Slot, Slots, UserFull
from chatcore.models import Session, Turn

RETRY_SECONDS = 5  # after which a place may be free; many answers take about as long


class OverCapacity(Exception):
    """No further answer can begin now; the text is for the user, `reason` for who counts."""

    reason = "overloaded"


class ProcessOverloaded(OverCapacity):
    """This process writes as many answers as it may."""

    def __init__(self) -> None:
        super().__init__("The server writes as many answers as it can at the moment.")


class ProcessStopping(ProcessOverloaded):
    """This process was asked to stop: it ends the answers that it has begun, and begins none."""

    reason = "stopping"

    def __init__(self) -> None:
        OverCapacity.__init__(self, "This process of the server is about to stop.")


class TooManyTurnsAtOnce(OverCapacity):
    """The user has as many answers in progress as a user may."""

    reason = "user_limit"

    def __init__(self) -> None:
        limit = settings.CHATCORE["TURNS_AT_ONCE_PER_USER"]
        super().__init__(f"You have {limit} answers in progress, and no more are allowed at once.")


# Answers that are about to begin, and those without a session, which are no turns.
_slots = Slots()
_thread = threading.local()
_is_closed = threading.Event()


def close_admission() -> None:
    """Begin no further answer in this process, which was asked to stop."""
    _is_closed.set()


def is_admitting() -> bool:
    """Return False once this process was asked to stop."""
    return not _is_closed.is_set()


def count_answers() -> int:
    """Return how many answers this process writes, or is about to begin."""
    # In this order: an answer that begins now is a turn before it gives its place back.
    slot_count = _slots.count()
    return slot_count + turn_runner.count()


def take_slot(user_id: object) -> Slot:
    """Take a place for an answer that is no turn, until the place is released.

    Raises ProcessOverloaded, ProcessStopping, TooManyTurnsAtOnce and CallRefused.
    """
    try:
        return _take_slot(user_id)
    except OverCapacity as error:
        counts.count_refused_turn(error.reason)
        raise


def _take_slot(user_id: object) -> Slot:
    check_call(user_id)
    user_limit = settings.CHATCORE["TURNS_AT_ONCE_PER_USER"]
    try:
        slot = _slots.take(
            user_id,
            process_limit=settings.CHATCORE["TURNS_AT_ONCE"],
            user_limit=user_limit,
            count_others=turn_runner.count,
        )
    except ProcessFull:
        raise ProcessOverloaded from None
    except UserFull:
        raise TooManyTurnsAtOnce from None
    with contextlib.ExitStack() as undo:
        undo.callback(slot.release)
        # After the place is taken: whoever closes the admission either is seen here, or counts it.
        if not is_admitting():
            raise ProcessStopping
        # After the place is taken: two requests at once then count each other, here or there.
        if _count_running_turns(user_id) + slot.user_position > user_limit:
            raise TooManyTurnsAtOnce
        undo.pop_all()
    return slot


@contextlib.contextmanager
def reserve_turn(user_id: object) -> Iterator[None]:
    """Hold a place while this thread begins a turn; the runner counts the turn from then on.

    Inside another reservation of the thread it does nothing. Raises what `take_slot` raises; then
    nothing may have been stored yet.
    """
    if getattr(_thread, "has_reservation", False):
        yield
        return
    with take_slot(user_id):
        _thread.has_reservation = True
        try:
            yield
        finally:
            _thread.has_reservation = False


@contextlib.contextmanager
def reserve_new_turn(session: Session, idempotency_key: str | None) -> Iterator[bool]:
    """Reserve a place for a new turn of the session, and yield whether it is one.

    A repeated request begins no turn and needs no place.
    """
    if idempotency_key and session.turns.filter(idempotency_key=idempotency_key).exists():
        yield False
    else:
        with reserve_turn(session.owner_id):
            yield True


# Compared here, because running turns are few. As a literal, the status lets SQLite use the index
# of running turns.
_OWNERS_OF_RUNNING_TURNS = CompiledQuery(
    lambda: Turn.objects.filter(status=Literal(Turn.Status.RUNNING)).values_list("owner_id")
)


def _count_running_turns(user_id: Any) -> int:
    """Return how many turns of the user run in all processes."""
    return _OWNERS_OF_RUNNING_TURNS.fetch().count((user_id,))
