"""Forks: a new session that begins as the conversation was at one of its messages."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
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


def read_tree(browser: Client, session: Session) -> str:
    return browser.get(f"/c/{session.pk}/branches/").content.decode()


def test_the_tree_shows_forks_where_they_leave_and_a_fork_where_it_comes_from(
    api: APIClient, client: Client, user: User, talk: Session
) -> None:
    client.force_login(user)
    Session.objects.filter(pk=talk.pk).update(title="Birds <b>")
    fork = fork_at(api, talk, 2)
    row = api.get(f"/api/v1/sessions/{fork.pk}").json()
    assert (row["forked_from"], row["forked_from_seq"]) == (str(talk.pk), 2)
    tree = read_tree(client, talk)
    words = ("The swordfish", f'href="/c/{fork.pk}/"', "Fork of Birds &lt;b&gt;", "Look it up.")
    assert [*map(tree.index, words)] == sorted(map(tree.index, words))
    tree_of_fork = read_tree(client, fork)
    assert f'href="/c/{talk.pk}/?at=2"' in tree_of_fork
    assert ">Birds &lt;b&gt;<" in tree_of_fork

    api.delete(f"/api/v1/messages/{message(talk, 2).pk}")
    tree = read_tree(client, talk)
    assert tree.index("The swordfish") < tree.index(str(fork.pk)) < tree.index("Look it up.")
    api.delete(f"/api/v1/sessions/{fork.pk}")
    assert str(fork.pk) not in read_tree(client, talk)


def test_a_fork_outlives_what_it_comes_from(
    api: APIClient, client: Client, user: User, talk: Session
) -> None:
    client.force_login(user)
    fork = fork_at(api, talk, 6)
    assert api.delete(f"/api/v1/sessions/{talk.pk}").status_code == 204
    assert not Session.all_objects.filter(pk=talk.pk).exists()
    assert api.get(f"/api/v1/sessions/{fork.pk}").json()["forked_from"] is None
    assert fork.messages.count() == 6
    assert str(talk.pk) not in read_tree(client, fork)


def test_nobody_else_sees_where_a_fork_comes_from(
    api: APIClient, client: Client, user: User, talk: Session
) -> None:
    bob = User.objects.create_user("bob")
    client.force_login(user)
    fork = fork_at(api, talk, 6)
    Session.objects.filter(pk=talk.pk).update(title="Secret birds", owner=bob)
    assert "Secret birds" not in read_tree(client, fork)
    client.force_login(bob)
    assert str(fork.pk) not in read_tree(client, talk)
