"""Long imports, forks and deletions: nobody sees them half done, and nobody waits for the whole."""

import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection, transaction
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from chatcore.base.databases import short_transactions
from chatcore.base.databases.clock import read_clock
from chatcore.models import Message, Session
from chatcore.search.query import search_messages
from chatcore.sessions import deletion, drafts, verification
from chatcore.sessions.deletion import purge_due_sessions
from chatcore.sessions.drafts import DraftLost, SessionDraft
from chatcore.transfer import importer
from chatcore.turns.forks import fork_session
from tests.support.stored_talk import talk  # noqa: F401
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

WORDS = "The swordfish is the password. "
LONG_HISTORY = [{"role": "user", "content": f"{number}: {WORDS * 40}"} for number in range(120)]


@pytest.fixture
def long_session(session: Session) -> Session:
    importer.import_messages(session, LONG_HISTORY)
    session.refresh_from_db()
    return session


@pytest.fixture
def small_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin with a few messages a transaction, and let the speed of the machine change nothing."""
    monkeypatch.setattr(short_transactions, "FIRST_WEIGHT", 6_000)
    monkeypatch.setattr(short_transactions.ShortTransactions, "_learn", lambda *_: None)


def import_history(session: Session) -> None:
    importer.import_messages(session, LONG_HISTORY)


def import_file(session: Session) -> None:
    importer.import_session(
        session.owner, {"format": "chatcore-session-1", "messages": LONG_HISTORY}
    )


def fork_history(session: Session) -> None:
    newest_message = session.messages.order_by("seq").last()
    assert newest_message
    fork_session(newest_message)


def delete_history(session: Session) -> None:
    deletion.delete_session(session.pk)
    purge_due_sessions()


class Rival:
    """Another writer, which writes whenever it is called."""

    def __init__(self) -> None:
        self.is_over = False
        self._calls = threading.Semaphore(0)
        self.is_idle = threading.Event()
        self.is_idle.set()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def call(self) -> None:
        self.is_idle.clear()
        self._calls.release()

    def stop(self) -> None:
        self.is_over = True
        self._calls.release()
        self._thread.join(30)

    def _work(self) -> None:
        while self._calls.acquire() and not self.is_over:
            with transaction.atomic():
                pass
            self.is_idle.set()
        connection.close()


@pytest.fixture
def rival() -> Iterator[Rival]:
    rival = Rival()
    yield rival
    rival.stop()


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL has many writers at once.")
@pytest.mark.parametrize("act", [import_history, import_file, fork_history, delete_history])
def test_another_writer_comes_through_after_each_short_transaction(
    long_session: Session,
    small_transactions: None,
    rival: Rival,
    act: Callable[[Session], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []

    def rest(seconds: float) -> None:
        # Nothing is held meanwhile, or the rival would wait in vain.
        rival.call()
        wait_until(rival.is_idle.is_set)
        pauses.append(seconds)

    clock = SimpleNamespace(sleep=rest, perf_counter=time.perf_counter)
    monkeypatch.setattr(short_transactions, "time", clock)
    act(long_session)
    assert len(pauses) > 20
    assert all(seconds > 0 for seconds in pauses)


def test_transactions_become_as_large_as_their_time_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    transactions = short_transactions.ShortTransactions()
    clock = [0.0]
    monkeypatch.setattr(short_transactions.time, "perf_counter", lambda: clock[0])

    def work(items: list[int], seconds_each: float) -> list[int]:
        sizes = []
        for part in transactions.split(items, lambda _: 1_000):
            with transactions.open_transaction(1_000 * len(part)):
                clock[0] += seconds_each * len(part)
            sizes.append(len(part))
        return sizes

    fast_sizes = work([0] * 2_000, 0.00001)
    assert fast_sizes[0] == 50
    assert max(fast_sizes) > 400
    slow_sizes = work([0] * 2_000, 0.001)
    assert all(size <= 50 for size in slow_sizes[1:])


def test_nobody_sees_an_import_or_a_fork_before_it_is_complete(
    user: User, session: Session, api: APIClient, admin_client: Client
) -> None:
    with SessionDraft(owner=user, title="Swordfish draft") as draft:
        row = Message.objects.create(session=draft.session, seq=1, role="user", content=WORDS)
        listed_ids = [each["id"] for each in api.get("/api/v1/sessions").json()["results"]]
        assert listed_ids == [str(session.pk)]
        assert api.get(f"/api/v1/sessions/{draft.session.pk}").status_code == 404
        assert api.get(f"/api/v1/sessions/{draft.session.pk}/messages").status_code == 404
        assert api.delete(f"/api/v1/sessions/{draft.session.pk}").status_code == 404
        assert api.post(f"/api/v1/messages/{row.pk}/fork").status_code == 404
        assert search_messages(user, "swordfish") == []
        assert list(Session.objects.all()) == [session]
        admin_page = admin_client.get(reverse("admin:chatcore_session_changelist"))
        assert "being written" in admin_page.content.decode()
        with draft.open_transaction(1):
            draft.show(message_count=1, last_seq=1)
    assert api.get(f"/api/v1/sessions/{draft.session.pk}").status_code == 200
    assert [hit.message_id for hit in search_messages(user, "swordfish")] == [row.pk]
    assert list(verification.find_violations(draft.session)) == []


def test_a_deleted_session_is_gone_at_once_and_its_rows_soon(
    long_session: Session, api: APIClient, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    Session.objects.filter(pk=long_session.pk).update(external_id="their name")
    monkeypatch.setattr(deletion, "REQUEST_SECONDS", 0.0)
    assert api.delete(f"/api/v1/sessions/{long_session.pk}").status_code == 204
    assert Message.objects.filter(session=long_session.pk).exists()
    assert api.get(f"/api/v1/sessions/{long_session.pk}").status_code == 404
    assert api.get("/api/v1/sessions").json()["results"] == []
    assert search_messages(user, "swordfish") == []
    Session.objects.create(owner=user, external_id="their name")
    assert purge_due_sessions() == 1
    assert not Message.objects.filter(session=long_session.pk).exists()
    assert not Session.all_objects.filter(pk=long_session.pk).exists()


def test_an_import_that_fails_leaves_nothing(
    session: Session, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OperationalError("disk full")

    monkeypatch.setattr(drafts.SessionDraft, "show", fail)
    with pytest.raises(OperationalError, match="disk full"):
        importer.import_session(
            user, {"format": "chatcore-session-1", "messages": LONG_HISTORY[:3]}
        )
    assert list(Session.all_objects.all()) == [session]
    assert not Message.objects.exists()


def test_messages_that_came_during_an_import_come_before_it(
    session: Session, small_transactions: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_messages = importer.store_messages

    def store_while_another_message_comes(draft: SessionDraft, rows: list[Message]) -> None:
        store_messages(draft, rows)
        importer.import_messages(session, [{"role": "user", "content": "Meanwhile"}])

    monkeypatch.setattr(importer, "store_messages", store_while_another_message_comes)
    rows = importer.import_messages(session, LONG_HISTORY)
    stored_rows = list(session.messages.order_by("seq"))
    assert [row.content for row in stored_rows] == [
        "Meanwhile",
        *(item["content"] for item in LONG_HISTORY),
    ]
    assert [row.seq for row in stored_rows] == list(range(1, 122))
    assert [(row.pk, row.seq) for row in rows] == [(row.pk, row.seq) for row in stored_rows[1:]]
    session.refresh_from_db()
    assert (session.message_count, session.last_seq) == (121, 121)
    assert list(verification.find_violations(session)) == []
    assert Session.all_objects.count() == 1


def test_a_draft_whose_writer_was_silent_too_long_is_not_shown(user: User) -> None:
    draft = SessionDraft(owner=user)
    with draft:
        moment_ago = read_clock() - timedelta(seconds=1)
        Session.all_objects.update(discard_at=moment_ago)
        assert purge_due_sessions() == 1
        with pytest.raises(DraftLost):
            draft.show()
    assert not Session.all_objects.exists()


def test_a_fork_of_what_is_edited_meanwhile_begins_anew(
    api: APIClient,
    talk: Session,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from chatcore.turns import forks

    deleted_message = talk.messages.get(seq=2)
    copy_files = forks._copy_files
    calls: list[int] = []

    def copy_while_a_message_is_deleted(*args: Any) -> None:
        copy_files(*args)
        if not calls:
            api.delete(f"/api/v1/messages/{deleted_message.pk}")
        calls.append(1)

    monkeypatch.setattr(forks, "_copy_files", copy_while_a_message_is_deleted)
    fork = forks.fork_session(talk.messages.get(seq=6))
    assert len(calls) == 2
    assert list(fork.messages.order_by("seq").values_list("seq", flat=True)) == [1, 3, 4, 5, 6]
    assert list(verification.find_violations(fork)) == []
    assert Session.all_objects.count() == 2
