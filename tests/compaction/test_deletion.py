"""Nothing that compaction stores outlives its session, because a summary repeats its content."""

import logging
import threading
from typing import Any
from uuid import uuid4

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from chatcore.context import revisions
from chatcore.models import Session, SessionEvent
from chatcore.sessions.deletion import purge_due_sessions
from compaction.models import CompactionRun, SessionState
from compaction.runs import engine, queue
from compaction.sessions import session_context
from tests.support.compaction_sessions import (
    SUMMARY,
    compact_long_session,
    fill_session,
    summarize_or_chat,
)
from tests.support.events import append_events
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def remembered(session: Session, scripted: ScriptedModel) -> Session:
    """Return a session with a row of every kind that can belong to one."""
    scripted.default = summarize_or_chat()
    compact_long_session(session, scripted)
    edit = revisions.MessageEdit(message_seq=1, kind="pruned", replacement="gone")
    revisions.install_revision(
        session.pk, base_version=1, summary=SUMMARY, boundary_seq=11, edits=[edit], source="edit"
    )
    engine.request_run(session.pk, trigger="manual")
    assert all(left_of(session).values())
    return session


def left_of(session: Session) -> dict[str, int]:
    """Return how many rows of each kind belong to the session."""
    kinds = (
        "chatcore.Message",
        "chatcore.SessionEvent",
        "chatcore.ContextRevision",
        "chatcore.ContextEdit",
        "chatcore.Turn",
    )
    models = [
        apps.get_model(kind)
        for kind in (*kinds, "compaction.CompactionRun", "compaction.SessionState")
    ]
    return {
        model.__name__: model._default_manager.filter(session_id=session.pk).count()
        for model in models
    }


def test_deleting_a_session_by_rest_leaves_nothing(remembered: Session, api: APIClient) -> None:
    run = CompactionRun.objects.earliest("created_at")
    assert api.delete(f"/api/v1/sessions/{remembered.pk}").status_code == 204
    purge_due_sessions()  # what a slow machine leaves for later
    assert not any(left_of(remembered).values())
    assert api.get(f"/api/v1/compactions/{run.pk}").status_code == 404


def test_deleting_sessions_in_the_admin_leaves_nothing(remembered: Session, client: Client) -> None:
    client.force_login(User.objects.create_superuser("operator"))
    chosen = {"action": "delete_selected", "_selected_action": [str(remembered.pk)], "post": "yes"}
    assert client.post(reverse("admin:chatcore_session_changelist"), chosen).status_code == 302
    purge_due_sessions()  # what a slow machine leaves for later
    assert not any(left_of(remembered).values())


def test_deleting_the_user_leaves_nothing(remembered: Session, user: User) -> None:
    user.delete()
    assert not any(left_of(remembered).values())


def test_a_run_forgets_its_instructions_and_reasons_with_a_message(
    full: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="xyzzy" * 3), Reply(status=500, body=b"xyzzy is out of order"))
    for instructions in ("remember xyzzy", "and xyzzy"):
        engine.compact_now(full.pk, trigger="manual", instructions=instructions)
    assert "xyzzy" in str(list(CompactionRun.objects.values()))
    message = full.messages.order_by("seq").first()
    assert message is not None
    assert api.delete(f"/api/v1/messages/{message.pk}").status_code == 204
    assert "xyzzy" not in str(list(CompactionRun.objects.values()))


def test_a_run_whose_session_is_deleted_while_a_summary_is_written_ends_quietly(
    session: Session, scripted: ScriptedModel, api: APIClient, caplog: pytest.LogCaptureFixture
) -> None:
    def delete(_: dict[str, Any]) -> Reply:
        api.delete(f"/api/v1/sessions/{session.pk}")
        connection.close()
        return Reply(text=SUMMARY)

    fill_session(session)
    run = engine.request_run(session.pk, trigger="manual")
    scripted.script(delete)
    with caplog.at_level(logging.WARNING, "compaction"):
        assert engine.execute_run(run.pk) is None
    assert not caplog.records
    purge_due_sessions()  # what a slow machine leaves for later
    assert not any(left_of(session).values())


def test_whoever_waits_for_a_run_learns_that_its_session_was_deleted(
    session: Session, scripted: ScriptedModel
) -> None:
    def delete(_: dict[str, Any]) -> Reply:
        Session.objects.get(pk=session.pk).delete()
        connection.close()
        return Reply(text=SUMMARY)

    fill_session(session)
    scripted.script(delete)
    with pytest.raises(session_context.NoSuchSession):
        engine.compact_now(session.pk, trigger="manual")


def test_asking_for_a_run_of_a_session_that_was_just_deleted_ends(session: Session) -> None:
    with pytest.raises(session_context.NoSuchSession):
        queue._insert_run(CompactionRun(session_id=uuid4(), trigger="manual", policy="oneclaw"))


def test_the_database_itself_holds_runs_and_states_to_their_sessions(session: Session) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        SessionState.objects.create(session_id=uuid4())
    with pytest.raises(IntegrityError), transaction.atomic():
        CompactionRun.objects.create(session_id=uuid4(), trigger="manual", policy="oneclaw")


def test_a_session_is_deleted_while_events_are_written_to_it(
    session: Session, api: APIClient
) -> None:
    """With many writers and one deletion, no writer is refused and no row remains."""
    stop, refused = threading.Event(), []

    def write() -> None:
        try:
            while not stop.is_set():
                append_events(session.pk, ("session.updated", {}))
        except DatabaseError as error:
            refused.append(error)
        finally:
            connection.close()

    writers = [threading.Thread(target=write) for _ in range(3)]
    for writer in writers:
        writer.start()
    status = api.delete(f"/api/v1/sessions/{session.pk}").status_code
    stop.set()
    for writer in writers:
        writer.join()
    assert (status, refused) == (204, [])
    assert not any(left_of(session).values())


def test_why_a_run_failed_quotes_no_message_that_was_deleted_meanwhile(
    session: Session, scripted: ScriptedModel, api: APIClient
) -> None:
    def delete_and_refuse(_: dict[str, Any]) -> Reply:
        newest = session.messages.latest("seq")
        assert api.delete(f"/api/v1/messages/{newest.pk}").status_code == 204
        connection.close()
        return Reply(
            text="Es tut mir leid, den Schatz auf der Insel Malta fasse ich nicht zusammen."
        )

    fill_session(session)
    run = engine.request_run(session.pk, trigger="manual")
    scripted.default = delete_and_refuse
    engine.execute_run(run.pk)
    run.refresh_from_db()
    assert run.status in ("failed", "fell_back")
    assert "Malta" not in f"{run.reason} {run.error}"
    events = SessionEvent.objects.filter(session=session)
    assert events.filter(name="compaction.failed").exists()
    assert "Malta" not in str(list(events.values_list("data", flat=True)))
