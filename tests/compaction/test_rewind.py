"""Going back to what the model saw before a run, and staying there."""

import threading

import pytest
from django.db import connection, transaction
from rest_framework.test import APIClient

from chatcore.context import revisions
from chatcore.models import Session
from compaction.models import CompactionRun
from compaction.runs import engine
from tests.support.compaction_sessions import (
    LARGE_USAGE,
    SUMMARY,
    list_chat_calls,
    list_event_names,
    say,
    summarize_or_chat,
)
from tests.support.context_usage import load_usage
from tests.support.database import wait_for_blocked_connection
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_brings_back_the_whole_history(full: Session, scripted: ScriptedModel) -> None:
    run = engine.rewind_run(engine.compact_now(full.pk, trigger="manual"))
    full.refresh_from_db()
    assert run.status == "rewound"
    assert (full.compacted_summary, full.compact_boundary_seq, full.context_version) == (
        None,
        None,
        2,
    )
    assert list_event_names(full)[-1] == "session.updated"
    say(full)
    assert (
        len([m for m in list_chat_calls(scripted)[-1].json["messages"] if m["role"] != "system"])
        == 15
    )


def test_by_a_version_of_the_context_it_undoes_the_runs_after_that_one(
    full: Session, api: APIClient
) -> None:
    first = engine.compact_now(full.pk, trigger="manual", up_to_seq=4)
    second = engine.compact_now(full.pk, trigger="manual")
    assert read_statuses(first, second) == ["applied", "applied"]
    url = f"/api/v1/sessions/{full.pk}/context/rewind"
    assert api.post(url, {"version": 1}, format="json").status_code == 200
    assert read_statuses(first, second) == ["applied", "rewound"]
    assert api.post(url, {"version": 2}, format="json").status_code == 200
    assert read_statuses(first, second) == ["applied", "applied"]
    assert api.post(url, {"version": 0}, format="json").status_code == 200
    assert read_statuses(first, second) == ["rewound", "rewound"]


def read_statuses(*runs: CompactionRun) -> list[str]:
    for run in runs:
        run.refresh_from_db()
    return [run.status for run in runs]


def test_what_changed_nothing_or_was_undone_cannot_be_undone(full: Session) -> None:
    run = engine.rewind_run(engine.compact_now(full.pk, trigger="manual"))
    with pytest.raises(engine.NotRewindable, match="The run is rewound"):
        engine.rewind_run(run)
    engine.compact_now(full.pk, trigger="manual")
    skipped = engine.compact_now(full.pk, trigger="manual")
    assert skipped.status == "skipped"
    with pytest.raises(engine.NotRewindable, match="The run is skipped"):
        engine.rewind_run(skipped)


def test_it_undoes_what_came_after_the_run_too(full: Session) -> None:
    first = engine.compact_now(full.pk, trigger="manual", up_to_seq=4)
    second = engine.compact_now(full.pk, trigger="manual")
    engine.rewind_run(first)
    second.refresh_from_db()
    full.refresh_from_db()
    assert second.status == "rewound"
    assert full.compacted_summary is None


def test_the_later_run_alone_goes_back_to_the_earlier_summary(
    full: Session, scripted: ScriptedModel
) -> None:
    engine.compact_now(full.pk, trigger="manual", up_to_seq=4)
    scripted.default = summarize_or_chat(summary=Reply(text=f"{SUMMARY} The trip is to Lisbon."))
    second = engine.compact_now(full.pk, trigger="manual")
    engine.rewind_run(second)
    full.refresh_from_db()
    assert (full.compacted_summary, full.compact_boundary_seq) == (SUMMARY, 5)


@pytest.mark.parametrize("back", ["rewind", "reset"])
def test_the_next_response_does_not_undo_it(
    full: Session, scripted: ScriptedModel, back: str
) -> None:
    run = engine.compact_now(full.pk, trigger="manual")
    engine.rewind_run(run) if back == "rewind" else revisions.reset_context(full.pk)
    scripted.script(Reply(text="Sure.", usage=LARGE_USAGE))
    say(full)
    assert CompactionRun.objects.count() == 1
    usage = load_usage(full.pk)
    assert (usage["automatic"], usage["should_compact"]) == ("waiting", True)


def test_a_run_that_was_already_queued_does_not_undo_it_either(full: Session) -> None:
    done = engine.compact_now(full.pk, trigger="manual", up_to_seq=4)
    queued = engine.request_run(full.pk, trigger="after_response")
    engine.rewind_run(done)
    ended = engine.execute_run(queued.pk)
    assert ended is not None
    assert ended.status == "skipped"
    assert "rewound" in ended.reason


def test_a_run_by_hand_ends_the_waiting(full: Session, scripted: ScriptedModel) -> None:
    engine.rewind_run(engine.compact_now(full.pk, trigger="manual"))
    assert engine.compact_now(full.pk, trigger="manual").status == "applied"
    assert load_usage(full.pk)["automatic"] == "on"


def test_it_locks_the_session_before_the_run_as_a_deletion_does(full: Session) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite locks the whole database, and so in no order.")
    run = engine.compact_now(full.pk, trigger="manual")
    outcomes: list[str] = []

    def rewind() -> None:
        try:
            outcomes.append(engine.rewind_run(run).status)
        finally:
            connection.close()

    rewinding = threading.Thread(target=rewind)
    with transaction.atomic():
        Session.objects.select_for_update().get(pk=full.pk)
        rewinding.start()
        wait_for_blocked_connection()
        # A run that the rewind had locked already would raise here: that was the deadlock.
        CompactionRun.objects.select_for_update(nowait=True).get(pk=run.pk)
    rewinding.join(60)
    assert outcomes == ["rewound"]


def test_a_session_that_is_deleted_meanwhile_has_nothing_to_rewind(full: Session) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite lets nobody wait for a row.")
    run = engine.compact_now(full.pk, trigger="manual")
    refusals: list[str] = []

    def rewind() -> None:
        try:
            with pytest.raises(engine.NotRewindable) as refused:
                engine.rewind_run(run)
            refusals.append(str(refused.value))
        finally:
            connection.close()

    rewinding = threading.Thread(target=rewind)
    with transaction.atomic():
        Session.objects.select_for_update().get(pk=full.pk)
        rewinding.start()
        wait_for_blocked_connection()
        full.delete()
    rewinding.join(60)
    assert refusals == ["The session was deleted."]
