"""The event log is pruned: deltas and usage after an hour, the rest after days, turns as wholes."""

import random
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chatcore.base.databases import batches
from chatcore.events import retention
from chatcore.models import Message, Session, SessionEvent, Turn
from chatcore.sessions import verification
from chatcore.turns import lifecycle
from tests.support.events import append_events

pytestmark = pytest.mark.django_db(transaction=True)


def store_turn(session: Session, *, days_ago: float, status: str = "completed") -> Turn:
    """Store a turn with its events and one of usage, which ended so many days ago."""
    ended_at = timezone.now() - timedelta(days=days_ago)
    turn = Turn.objects.create(session=session, status=status, lease_until=ended_at)
    data = {"turn": str(turn.pk)}
    last_seq = append_events(
        session.pk,
        ("turn.started", data),
        ("message.created", data),
        ("message.completed", data),
        ("turn.waiting" if status == "waiting" else "turn.completed", data),
        ("context.usage", {}),
    )
    turn.first_event_seq = last_seq - 4
    turn.finished_at = None if status == "waiting" else ended_at
    turn.save()
    SessionEvent.objects.filter(session=session, seq__gt=last_seq - 5).update(at=ended_at)
    return turn


def list_names(session: Session) -> list[str]:
    return list(session.events.order_by("seq").values_list("name", flat=True))


def list_broken_turns(session: Session) -> list[str]:
    """Describe each turn of which the log has the start and not the end, or the other way round."""
    events = list(session.events.values_list("name", "data"))
    parts = {
        part: {data["turn"] for name, data in events if name in names}
        for part, names in {
            "start": ("turn.started",),
            "end": ("turn.completed", "turn.waiting"),
        }.items()
    }
    return sorted(parts["start"] ^ parts["end"])


def test_deltas_go_once_their_message_has_held_the_words_for_an_hour(session: Session) -> None:
    complete = Message.objects.create(session=session, seq=1, role="assistant", content="said")
    streaming = Message.objects.create(session=session, seq=2, role="assistant", status="streaming")
    for message in (complete, streaming):
        append_events(
            session.pk,
            ("message.delta", {"message": message.pk, "offset": 0, "text": "said"}),
            ("message.completed", {}),
        )
    assert retention.prune_events() == 0
    SessionEvent.objects.update(at=timezone.now() - timedelta(hours=2))
    assert retention.prune_events() == 1
    deltas = session.events.filter(name="message.delta")
    assert [event.message for event in deltas] == [streaming.pk]


def test_the_deltas_of_a_message_are_found_by_an_index(session: Session) -> None:
    """PostgreSQL would rather read the whole of a small table; the test forbids it to."""
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")
        old_deltas = SessionEvent.objects.filter(message__isnull=False, at__lt=timezone.now())
        for deltas in (SessionEvent.objects.filter(message=7), old_deltas):
            assert "deltas_of_a_message" in deltas.order_by().explain()


def test_after_an_hour_only_the_newest_usage_of_each_session_is_kept(
    session: Session, user: Any
) -> None:
    other = Session.objects.create(owner=user)
    for number in range(3):
        append_events(session.pk, ("context.usage", {"number": number}), ("session.updated", {}))
    append_events(other.pk, ("context.usage", {"number": 9}))
    assert retention.prune_events() == 0
    SessionEvent.objects.update(at=timezone.now() - timedelta(hours=2))
    append_events(session.pk, ("context.usage", {"number": 3}))
    retention.prune_events()
    usage = SessionEvent.objects.filter(name="context.usage").order_by("pk")
    assert [event.data["number"] for event in usage] == [9, 3]
    assert list_names(session).count("session.updated") == 3


def test_events_of_turns_that_ended_long_ago_go_and_newer_ones_stay(session: Session) -> None:
    store_turn(session, days_ago=4)
    newer = store_turn(session, days_ago=2)
    retention.prune_events()
    assert list_names(session) == [
        "turn.started",
        "message.created",
        "message.completed",
        "turn.completed",
        "context.usage",
    ]
    assert session.events.values_list("data", flat=True)[0] == {"turn": str(newer.pk)}
    assert not list(verification.find_violations(Session.objects.get(pk=session.pk)))


def test_a_turn_that_has_waited_for_days_keeps_its_events_and_all_after_them(
    session: Session,
) -> None:
    store_turn(session, days_ago=30)
    waiting = store_turn(session, days_ago=20, status="waiting")
    append_events(session.pk, ("session.updated", {}))
    SessionEvent.objects.filter(name="session.updated").update(
        at=timezone.now() - timedelta(days=10)
    )
    retention.prune_events()
    assert session.events.values_list("data", flat=True)[0] == {"turn": str(waiting.pk)}
    assert list_names(session)[-1] == "session.updated"
    with transaction.atomic():
        lifecycle.end_turn(waiting, Turn.Status.CANCELLED)
    retention.prune_events()
    assert list_names(session)[0] == "turn.started"
    assert list_names(session)[-1] == "turn.cancelled"


def test_words_that_only_their_deltas_have_are_kept_however_old(session: Session) -> None:
    turn = store_turn(session, days_ago=30)
    left = Message.objects.create(
        session=session, turn=turn, seq=1, role="assistant", status="streaming"
    )
    delta = {"message": left.pk, "offset": 0, "text": "said"}
    append_events(session.pk, ("message.delta", delta))
    SessionEvent.objects.update(at=timezone.now() - timedelta(days=30))
    retention.prune_events()
    assert "message.delta" in list_names(session)
    lifecycle.mend_streaming_messages()
    left.refresh_from_db()
    assert left.content == "said"
    retention.prune_events()
    assert list_names(session) == ["message.completed"]


def test_no_replay_shows_half_a_turn_whenever_turns_ended(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "SCAN_ROWS", 7)
    monkeypatch.setattr(batches, "BATCH_ROWS", 3)
    source = random.Random(7)
    for _ in range(30):
        store_turn(session, days_ago=source.choice([1, 2, 2.99999, 3.00001, 4, 9]))
    while list_names(session):
        count = len(list_names(session))
        retention.prune_events()
        assert not list_broken_turns(session)
        seqs = list(session.events.exclude(name="context.usage").order_by("seq").values_list("seq"))
        assert len(seqs) % 4 == 0
        SessionEvent.objects.update(at=timezone.now() - timedelta(days=9))
        Turn.objects.update(finished_at=timezone.now() - timedelta(days=9))
        assert len(list_names(session)) <= count


def test_nothing_but_deltas_and_usage_goes_where_events_are_kept_for_good(
    session: Session, settings: Any
) -> None:
    settings.CHATCORE = {**settings.CHATCORE, "EVENT_RETENTION_DAYS": 0}
    store_turn(session, days_ago=400)
    store_turn(session, days_ago=300)
    retention.prune_events()
    assert len(list_names(session)) == 9  # of ten, one usage


def test_a_transaction_deletes_few_rows_so_that_writers_need_not_wait(session: Session) -> None:
    append_events(session.pk, *[("session.updated", {})] * 1_000)
    SessionEvent.objects.update(at=timezone.now() - timedelta(days=5))
    with CaptureQueriesContext(connection) as queries:
        assert retention.prune_events() == 1_000
    deletions = [query for query in queries if query["sql"].startswith("DELETE")]
    commits = [query for query in queries if query["sql"] == "COMMIT"]
    assert len(deletions) == 1_000 // batches.BATCH_ROWS
    assert len(commits) >= len(deletions)


def test_events_that_somebody_else_is_deleting_are_not_waited_for(session: Session) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite locks no rows.")
    append_events(session.pk, *[("session.updated", {})] * 10)
    SessionEvent.objects.update(at=timezone.now() - timedelta(days=5))
    counts: list[int] = []

    def prune() -> None:
        counts.append(retention.prune_events())
        connection.close()

    with transaction.atomic():
        session.events.filter(seq__lte=4).delete()
        pruner = threading.Thread(target=prune)
        pruner.start()
        pruner.join(20)
        assert counts == [6]
    assert not list_names(session)


@pytest.mark.parametrize(
    ("after_seq", "dropped_seq"), [(0, 5), (4, 5), (5, None), (9, None), (10, None), (99, None)]
)
def test_a_reader_is_told_what_is_gone_only_if_it_has_not_seen_it(
    session: Session, after_seq: int, dropped_seq: int | None
) -> None:
    store_turn(session, days_ago=4)
    store_turn(session, days_ago=1)
    retention.prune_events()
    session.refresh_from_db()
    assert retention.find_dropped_seq(session, after_seq) == dropped_seq


def test_a_log_that_is_empty_now_has_lost_all_of_its_events(session: Session) -> None:
    assert retention.find_dropped_seq(session, 0) is None
    store_turn(session, days_ago=4)
    retention.prune_events()
    session.refresh_from_db()
    assert retention.find_dropped_seq(session, 2) == 5
    assert retention.find_dropped_seq(session, 5) is None
