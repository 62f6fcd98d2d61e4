"""Write the new deltas of all answers of this process together, several times a second.

Each commit waits for the disk, so commits must not grow with the number of answers. What a killed
process loses of an answer is what arrived since the last write: WRITE_SECONDS, and the time of the
write itself.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from django.db import OperationalError, close_old_connections, connections, transaction

from chatcore.base.databases.outages import DATABASE_LOCKED, find_outage
from chatcore.base.threads import outlive_errors, use_own_connection
from chatcore.events import log as event_log
from chatcore.models import Message, Turn
from chatcore.models.statements import NewRows, lock_free_turns, reserve_numbers
from chatcore.turns.leases import TurnLost

if TYPE_CHECKING:
    from chatcore.turns.recorder import AnswerRecorder, NewDelta

logger = logging.getLogger(__name__)

WRITE_SECONDS = 0.05  # from the beginning of a write to that of the next one
FIRST_SECONDS = 0.03  # the same for the first words of an answer, for which people wait
LONGEST_PAUSE_SECONDS = 0.15  # after a write that took long
IDLE_SECONDS = 5.0  # after that the thread ends
# Who waits for SQLite's lock sleeps up to 0.1 s between two looks, and longer the longer it has
# waited. Under a hundred turns that begin at once, this thread would come last; so it begins its
# wait anew again and again, and looks every few milliseconds.
LOCK_SECONDS = 0.02
LONGEST_WAIT_SECONDS = 20.0


class DeltaWriter:
    """One thread that writes for all answers of a process, in one transaction at a time.

    The database being away costs nothing: the deltas stay in memory and are written later.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[AnswerRecorder, None] = {}
        self._has_work = threading.Event()
        self._has_beginning = threading.Event()
        self._thread: threading.Thread | None = None

    def submit(self, recorder: "AnswerRecorder") -> None:
        """Have the recorder's new deltas written soon. Any thread may call this."""
        if recorder in self._waiting:
            return
        with self._lock:
            self._waiting[recorder] = None
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="delta-writer", daemon=True)
                self._thread.start()
        self._has_work.set()
        if recorder.message is None:
            self._has_beginning.set()

    def _run(self) -> None:
        # It holds the locks of answers while it writes, so it must wait for no other's connection.
        use_own_connection(lock_seconds=LOCK_SECONDS)
        began_at, ended_at = 0.0, 0.0  # of the last write
        while self._has_work.wait(IDLE_SECONDS) or not self._has_ended():
            self._has_work.clear()
            next_at = ended_at + _choose_pause(ended_at - began_at)
            if self._has_beginning.wait(max(next_at - time.monotonic(), 0)):
                time.sleep(max(began_at + FIRST_SECONDS - time.monotonic(), 0))
            self._has_beginning.clear()
            began_at = time.monotonic()
            # Without this thread no answer would be stored.
            with outlive_errors("the writer of deltas goes on after an error"):
                self._write_waiting()
            ended_at = time.monotonic()
        connections.close_all()

    def _has_ended(self) -> bool:
        with self._lock:
            if self._waiting:
                return False
            # Under the lock, so that an answer which comes now starts another thread.
            self._thread = None
            return True

    def _write_waiting(self) -> None:
        with self._lock:
            recorders = list(self._waiting)
            self._waiting.clear()
        try:
            self._write(recorders)
        except Exception as error:
            if find_outage(error):
                logger.warning("deltas were not written, and are tried again: %s", error)
                self._retry_later(recorders)
            else:
                logger.exception("deltas of %d answers were not written", len(recorders))
                self._write_one_by_one(recorders)
        finally:
            close_old_connections()

    def _write_one_by_one(self, recorders: Sequence["AnswerRecorder"]) -> None:
        """Write each answer in a transaction of its own, so that one that fails stops no other."""
        for recorder in recorders:
            try:
                self._write([recorder])
            except Exception as error:  # noqa: BLE001 - the turn's task raises it and fails
                if find_outage(error):
                    self._retry_later([recorder])
                else:
                    recorder.failure = error

    def _retry_later(self, recorders: Sequence["AnswerRecorder"]) -> None:
        time.sleep(LONGEST_PAUSE_SECONDS)
        for recorder in recorders:
            self.submit(recorder)

    def _write(self, recorders: Sequence["AnswerRecorder"]) -> None:
        # An answer whose lock is taken is being closed, and its end stores these deltas too.
        locked_recorders = [
            recorder for recorder in recorders if recorder.write_lock.acquire(blocking=False)
        ]
        try:
            open_recorders = [item for item in locked_recorders if not item.is_closed]
            if open_recorders:
                self._write_locked(open_recorders)
        finally:
            for recorder in locked_recorders:
                recorder.write_lock.release()

    def _write_locked(self, recorders: Sequence["AnswerRecorder"]) -> None:
        """Write the deltas in one transaction, and note afterwards what is stored."""
        messages = {recorder: recorder.message for recorder in recorders}
        written_deltas: dict[AnswerRecorder, list[NewDelta]] = {}
        with contextlib.ExitStack() as undo:
            # The error may come after the commit, so the log may have these deltas. Noted under the
            # lock, because the end of the answer may be the next to write.
            undo.callback(_note_doubt, messages)
            with _open_transaction():
                locked_turns = lock_free_turns([recorder.turn.pk for recorder in recorders])
                for recorder in recorders:
                    if recorder.turn.pk in locked_turns:
                        recorder.read_back_if_uncertain()
                        written_deltas[recorder] = recorder.collect_new_deltas()
                _store({recorder: deltas for recorder, deltas in written_deltas.items() if deltas})
            for recorder, deltas in written_deltas.items():
                recorder.mark_stored(deltas)
            undo.pop_all()
        unlocked_recorders = [item for item in recorders if item not in written_deltas]
        if unlocked_recorders:
            self._settle_unlocked(unlocked_recorders)

    def _settle_unlocked(self, recorders: Sequence["AnswerRecorder"]) -> None:
        """Stop the answers whose turns have ended; try again those whose rows are in use."""
        running_turns = set(
            Turn.objects.filter(
                pk__in=[recorder.turn.pk for recorder in recorders], status=Turn.Status.RUNNING
            ).values_list("pk", flat=True)
        )
        for recorder in recorders:
            if recorder.turn.pk in running_turns:
                self.submit(recorder)
            else:
                recorder.failure = TurnLost(str(recorder.turn.pk))


def _choose_pause(write_seconds: float) -> float:
    """Return how long to collect deltas after a write that took so long.

    Under load the pause grows with the writes, so that others have the database and the processor
    for a third of the time at least.
    """
    pause = max(WRITE_SECONDS - write_seconds, write_seconds / 2)
    return min(pause, LONGEST_PAUSE_SECONDS)


def _note_doubt(messages: Mapping["AnswerRecorder", Message | None]) -> None:
    for recorder, message in messages.items():
        recorder.message = message
        recorder.is_uncertain = True


@contextlib.contextmanager
def _open_transaction() -> Iterator[None]:
    """Open a transaction; on SQLite, keep asking for its lock."""
    deadline = time.monotonic() + LONGEST_WAIT_SECONDS
    with contextlib.ExitStack() as stack:
        while True:
            try:
                stack.enter_context(transaction.atomic())
                break
            except OperationalError as error:
                if find_outage(error) is not DATABASE_LOCKED or time.monotonic() > deadline:
                    raise
        yield


def _store(deltas: Mapping["AnswerRecorder", list["NewDelta"]]) -> None:
    """Store new deltas, and the messages of the answers that begin with them.

    Three statements, however many answers there are. Nothing is stored for a deleted session, whose
    turn is closed as well.
    """
    new_recorders = [recorder for recorder in deltas if recorder.message is None]
    numbers = reserve_numbers(
        {
            recorder.turn.session_id: NewRows(
                events=len(new_deltas) + (recorder.message is None),
                messages=int(recorder.message is None),
            )
            for recorder, new_deltas in deltas.items()
        }
    )
    Message.objects.bulk_create(
        recorder.begin_message(numbers[recorder.turn.session_id])
        for recorder in new_recorders
        if recorder.turn.session_id in numbers
    )
    event_log.store_numbered_events(
        {
            recorder.turn.session_id: recorder.build_events(
                new_deltas, is_new=recorder in new_recorders
            )
            for recorder, new_deltas in deltas.items()
            if recorder.turn.session_id in numbers
        },
        numbers,
    )


delta_writer = DeltaWriter()
