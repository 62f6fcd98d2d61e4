"""Versions before the boundary: no superseded message is sent, neither itself nor in a summary."""

import json
from typing import Any

import pytest
from django.db import connections
from rest_framework.test import APIClient

from chatcore.context import builder, revisions
from chatcore.models import Message, Session
from chatcore.sessions import verification
from chatcore.turns import versions
from compaction.runs import engine
from tests.support.compaction_sessions import SUMMARY, fill_session
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.version_requests import (
    edit,
    list_texts,
    read_sent_texts,
    regenerate,
    restore,
    say,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def sound(session: Session) -> Any:
    """Whatever a test does, the stored session holds what must hold."""
    yield
    session.refresh_from_db()
    assert list(verification.find_violations(session)) == []


def compacted(session: Session, boundary: int, summary: str) -> None:
    session.refresh_from_db()
    revisions.install_revision(
        session.pk,
        base_version=session.context_version,
        summary=summary,
        boundary_seq=boundary,
        source="compaction",
    )


def test_after_an_edit_before_the_boundary_nothing_superseded_is_sent_nor_any_summary_of_it(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    said = say(
        api,
        session,
        scripted,
        ("alpha?", "ALPHA"),
        ("beta?", "BETA"),
        ("gamma?", "GAMMA"),
        ("delta?", "DELTA"),
    )
    compacted(session, said[2].seq, "They spoke of the first letter.")
    compacted(session, said[6].seq, "They spoke of three letters.")
    scripted.script(Reply(text="OMEGA"))
    edit(api, said[2], "omega?")
    request = json.dumps(scripted.requests[-1].json)
    assert "first letter" in request
    assert not any(
        word in request for word in ("beta", "BETA", "gamma", "GAMMA", "DELTA", "three letters")
    )
    assert list_texts(api, session) == ["alpha?", "ALPHA", "omega?", "OMEGA"]


def test_an_answer_whose_question_is_in_the_summary_is_given_anew_to_the_question_itself(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    said = say(api, session, scripted, ("alpha?", "ALPHA"), ("beta?", "BETA"))
    compacted(session, said[3].seq, "They spoke of letters.")
    scripted.script(Reply(text="BETA!"))
    regenerate(api, said[3])
    assert read_sent_texts(scripted) == ["alpha?", "ALPHA", "beta?"]


def test_a_restored_version_is_not_covered_by_the_summary_of_the_other(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    said = say(api, session, scripted, ("alpha?", "ALPHA"))
    scripted.script(Reply(text="AAA"))
    regenerate(api, said[1])
    later = say(api, session, scripted, ("beta?", "BETA"), ("gamma?", "GAMMA"))
    compacted(session, later[-2].seq, "They said AAA and BETA.")
    restore(api, said[1])
    say(api, session, scripted, ("delta?", "DELTA"))
    assert read_sent_texts(scripted) == ["alpha?", "ALPHA", "delta?"]
    assert "AAA" not in json.dumps(scripted.requests[-1].json)


def test_a_summary_that_was_being_written_of_what_is_superseded_is_not_installed(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session)
    edited: list[Message] = []

    def summarize(_: Any) -> Reply:
        if not edited:
            edited.append(versions.edit_answer(session.messages.get(seq=2), "Let us begin anew."))
            connections.close_all()
        return Reply(text=SUMMARY)

    scripted.default = summarize
    run = engine.compact_now(session.pk, trigger="manual")
    session.refresh_from_db()
    assert edited
    assert (run.status, session.compacted_summary, session.compact_boundary_seq) == (
        "skipped",
        None,
        None,
    )
    sent = builder.build_request(session).messages
    assert [message.seq for message in sent] == [1, edited[0].seq]
