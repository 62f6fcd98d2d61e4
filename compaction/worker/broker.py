"""Read the shared queue in the database, and before it a lane of this cluster's own.

For django-q2's sake: its status cannot be trusted, so the watchdog sends canaries, and a canary
must pass through this cluster and no other, ahead of any backlog. Its ORM broker has one queue
for all clusters and no order of precedence.
"""

import os
import socket
import uuid
from datetime import timedelta
from time import monotonic, sleep

from django.db.models import Case, Q, Value, When
from django.utils import timezone
from django_q.brokers.orm import ORM
from django_q.conf import Conf
from django_q.models import OrmQ
from django_q.tasks import async_task

from compaction.worker.tasks import CANARY_TASK

CANARY_LIFETIME = timedelta(hours=1)
STATISTICS_INTERVAL = 5.0  # seconds
CLOCK_TOLERANCE = timedelta(minutes=5)


class LaneBroker(ORM):
    """django-q2's queue in the database, with a lane for canaries in front of it."""

    def __init__(self, list_key: str | None = None) -> None:
        super().__init__(list_key)
        self.lane = f"{self.list_key}@{socket.gethostname()[:40]}:{os.getpid()}"
        self._next_statistics = 0.0

    def dequeue(self) -> list[tuple[int, str]] | None:
        """Take one message: from the lane if it holds one, otherwise the oldest of the queue.

        Return None when there is none, after a pause, or when another cluster was faster.
        """
        is_in_lane = Case(When(key=self.lane, then=Value(0)), default=Value(1))
        waiting_rows = self.get_connection().filter(
            self._is_free(), key__in=(self.lane, self.list_key)
        )
        row = waiting_rows.order_by(is_in_lane, "id").first()
        if row is None:
            sleep(Conf.POLL)
            return None
        # The condition on the old lock makes this UPDATE the one that takes the message.
        row_count = (
            self.get_connection().filter(pk=row.pk, lock=row.lock).update(lock=self.timeout(row))
        )
        return [(row.pk, row.payload)] if row_count else None

    @staticmethod
    def _is_free() -> Q:
        """Return the condition under which nobody works on a message.

        No clock that is right sets a lock further ahead than the time of a try. Such a lock is
        from a clock that was wrong, and waiting for it could take days. A message taken twice does
        no harm: a run is claimed by its own fence.
        """
        now = timezone.now()
        latest = now + timedelta(seconds=Conf.RETRY) + CLOCK_TOLERANCE
        return Q(lock__lt=now) | Q(lock__gt=latest)

    def set_stat(self, key: str, value: str, timeout: int) -> None:
        """Store statistics every 5 seconds at most.

        django-q2 asks for it several times a second, and where the cache is a table of the
        database each time is a durable write.
        """
        if monotonic() >= self._next_statistics:
            self._next_statistics = monotonic() + STATISTICS_INTERVAL
            super().set_stat(key, value, timeout + int(STATISTICS_INTERVAL))

    def send_canary(self) -> None:
        """Send a canary through this cluster."""
        async_task(CANARY_TASK, uuid.uuid4().hex, cluster=self.lane)

    def is_canary_out(self) -> bool:
        """Return True while a canary has not come back."""
        return OrmQ.objects.filter(key=self.lane).exists()

    def delete_canaries(self) -> None:
        """Delete the canaries of an earlier cluster in this lane, and of clusters long gone."""
        cutoff = timezone.now() - CANARY_LIFETIME
        OrmQ.objects.filter(key=self.lane).delete()
        OrmQ.objects.filter(key__startswith=f"{self.list_key}@", lock__lt=cutoff).delete()
