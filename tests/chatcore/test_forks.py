"""Forks: a new session that begins as the conversation was at one of its messages."""

from datetime import timedelta

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from chatcore.context import builder, revisions
from chatcore.files import intake
from chatcore.models import Session
from chatcore.turns import versions
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.stored_talk import message, sent, sound, summarize, talk

__all__ = ["talk"]

pytestmark = pytest.mark.django_db(transaction=True)  # turns are answered in another thread


def test_a_fork_begins_as_the_conversation_was(api: APIClient, talk: Session) -> None:
    summarize(talk, "Of a password.", 3)
    before = list(talk.messages.order_by("seq").values("seq", "content", "created_at", "role"))
    answer = api.post(f"/api/v1/messages/{message(talk, 4).pk}/fork")
    assert answer.status_code == 201
    assert api.get(answer["Location"]).json() == answer.json()
    made = Session.objects.get(pk=answer.json()["id"])
    copies = list(made.messages.order_by("seq").values("seq", "content", "created_at", "role"))
    assert copies == before[:5]
    assert (
        made.message_count,
        made.last_seq,
        made.compacted_summary,
        made.compact_boundary_seq,
    ) == (5, 5, "Of a password.", 3)
    assert sent(made) == sent(talk).removesuffix("\nIt is there.")
    assert sound(made) == []
    assert talk.messages.count() == 6


def test_a_fork_takes_the_newest_summary_its_messages_support(
    api: APIClient, talk: Session
) -> None:
    summarize(talk, "One.", 2)
    summarize(talk, "One to five.", 6)
    made = Session.objects.get(
        pk=api.post(f"/api/v1/messages/{message(talk, 3).pk}/fork").json()["id"]
    )
    assert (made.compacted_summary, made.compact_boundary_seq) == ("One.", 2)
    first = Session.objects.get(
        pk=api.post(f"/api/v1/messages/{message(talk, 1).pk}/fork").json()["id"]
    )
    assert (first.compacted_summary, first.context_version) == (None, 0)


def test_a_fork_goes_on_by_itself(api: APIClient, talk: Session, scripted: ScriptedModel) -> None:
    made = api.post(f"/api/v1/messages/{message(talk, 2).pk}/fork").json()["id"]
    scripted.script(Reply(text="Here."))
    assert api.post(f"/api/v1/sessions/{made}/messages", {"content": "And now?"}).status_code == 201
    assert Session.objects.get(pk=made).message_count == 4
    assert talk.messages.count() == 6


def test_a_superseded_message_is_not_forked(
    api: APIClient, talk: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Another."))
    api.post(f"/api/v1/messages/{message(talk, 2).pk}/regenerate", {})
    answer = api.post(f"/api/v1/messages/{message(talk, 2).pk}/fork")
    assert (answer.status_code, answer.json()["type"]) == (409, "superseded")


def fork_at(api: APIClient, talk: Session, seq: int) -> Session:
    answer = api.post(f"/api/v1/messages/{message(talk, seq).pk}/fork")
    assert answer.status_code == 201, answer.json()
    made = Session.objects.get(pk=answer.json()["id"])
    assert sound(made) == []
    return made


def test_a_fork_before_the_place_of_the_summary_has_it_at_its_end(
    api: APIClient, talk: Session
) -> None:
    summarize(
        talk, "Small talk.", 3, placement={"place": "last_user", "after_seq": 6, "nudge": "Go on."}
    )
    made = fork_at(api, talk, 3)
    assert builder.build_request(made).messages[-1].content.endswith("Go on.")


def test_a_fork_of_what_was_reset_or_rewound_brings_no_older_summary_back(
    api: APIClient, talk: Session
) -> None:
    summarize(talk, "One.", 2)
    summarize(talk, "One to three.", 4)
    revisions.rewind_context(talk.pk, to_version=1)
    assert fork_at(api, talk, 6).compacted_summary == "One."
    revisions.reset_context(talk.pk)
    assert fork_at(api, talk, 6).compacted_summary is None


def test_a_fork_where_an_edit_took_the_place_of_the_boundary(api: APIClient, talk: Session) -> None:
    pruned = revisions.MessageEdit(message_seq=6, kind="pruned", replacement="[gone]")
    summarize(talk, "Small talk.", 6)
    summarize(talk, "Small talk.", 6, edits=[pruned])
    other = versions.edit_answer(message(talk, 6), "It is here.")
    made = fork_at(api, talk, other.seq)
    assert made.compacted_summary == "Small talk."
    assert sent(made) == sent(talk)


def test_a_fork_takes_its_own_files_and_edits_and_no_others(api: APIClient, talk: Session) -> None:
    for seq in (1, 6):
        taken = intake.store_file(talk, name=f"{seq}.txt", data=b"A text.")
        intake.bind_files(message(talk, seq), [taken.pk])
    hidden = [
        revisions.MessageEdit(message_seq=seq, kind="pruned", replacement="[gone]")
        for seq in (3, 6)
    ]
    summarize(talk, "Of a password.", 2, edits=hidden)
    made = fork_at(api, talk, 4)
    assert list(made.attachments.values_list("name", "text", "message__seq")) == [
        ("1.txt", "A text.", 1)
    ]
    assert list(made.context_edits.values_list("message__seq", flat=True)) == [3]


def test_a_fork_is_made_while_an_answer_is_given(api: APIClient, talk: Session) -> None:
    turn = talk.turns.create(status="running", lease_until=timezone.now() + timedelta(minutes=1))
    talk.messages.create(seq=7, role="assistant", content="I am", status="streaming", turn=turn)
    Session.objects.filter(pk=talk.pk).update(last_seq=7, message_count=7)
    assert fork_at(api, talk, 7).message_count == 6
