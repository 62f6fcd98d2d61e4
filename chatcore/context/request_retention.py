"""Delete what the requests of answers sent, after CHATCORE["REQUEST_RETENTION_DAYS"]; 0 keeps it.

The days count from the upgrade on that brought this: `Installation.retention_since`. A text goes
when no request of its session that is left has it. What is on hold stays.
"""

import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction

from chatcore.base.databases.clock import read_clock
from chatcore.extension import exclude_kept
from chatcore.models import Installation, SentRequest, SentText, Session, Turn

SCAN_ROWS = 1_000  # read at once
BATCH_ROWS = 100  # deleted in one transaction, which blocks SQLite's other writers
TEXT_NAMES = ("system", "preface", "tools", "params")  # of a layout, each with a digest


def prune_requests() -> int:
    """Delete all requests whose time is over, and texts that they alone had. Returns how many.

    Between two transactions other writers get as much time as the first one took.
    """
    days = settings.CHATCORE["REQUEST_RETENTION_DAYS"]
    cutoff = read_clock() - timedelta(days=days)
    if not days or Installation.load().retention_since > cutoff:
        return 0
    count = 0
    for rows in _find_old_requests(cutoff):
        answers: dict[UUID, list[int]] = defaultdict(list)
        for answer, session_id in rows:
            answers[session_id].append(answer)
        for session_id, session_answers in answers.items():
            count += _delete_requests(session_answers)
            _delete_unused_texts(session_id, cutoff)
    return count


def _find_old_requests(cutoff: datetime) -> Iterator[list[tuple[int, UUID]]]:
    """Yield answers and their sessions. Keys rise with time: the first page without one ends it."""
    last_pk = 0
    while True:
        requests = SentRequest.objects.filter(pk__gt=last_pk).order_by("pk")
        rows = list(requests.values_list("pk", "answer__created_at")[:SCAN_ROWS])
        old_pks = [pk for pk, created_at in rows if created_at < cutoff]
        if not old_pks:
            return
        last_pk = rows[-1][0]
        old_requests = exclude_kept(SentRequest.objects.filter(pk__in=old_pks), "session__owner")
        yield list(old_requests.order_by("pk").values_list("pk", "session_id"))


def _delete_requests(pks: list[int]) -> int:
    count = 0
    for start in range(0, len(pks), BATCH_ROWS):
        start_time = time.perf_counter()
        with transaction.atomic():
            rows = SentRequest.objects.filter(pk__in=pks[start : start + BATCH_ROWS])
            count += rows.delete()[0]
        time.sleep(time.perf_counter() - start_time)
    return count


def _delete_unused_texts(session_id: UUID, cutoff: datetime) -> None:
    """Delete the old texts that no request of the session has any more.

    While an answer is written they stay: its request may have one that is not stored anew.
    """
    with transaction.atomic():
        # No turn begins while the session's row is locked.
        session = Session.objects.select_for_update().filter(pk=session_id).only("pk").first()
        open_turns = Turn.objects.filter(session=session_id, status__in=Turn.OPEN_STATUSES)
        if session is None or open_turns.exists():
            return
        old_texts = SentText.objects.filter(session=session_id, created_at__lt=cutoff)
        digests = dict(old_texts.values_list("digest", "pk"))
        if not digests:
            return
        layouts = SentRequest.objects.filter(session=session_id).values_list("layout", flat=True)
        for layout in layouts.iterator():
            for part in (*layout["messages"], *(layout[name] for name in TEXT_NAMES)):
                if isinstance(part, str):
                    digests.pop(part, None)
        SentText.objects.filter(pk__in=digests.values()).delete()
