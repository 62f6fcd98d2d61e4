"""Deleting, forking and pinning messages, and histories in other systems' formats, over REST."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from chatcore.context import builder, revisions
from chatcore.files import intake
from chatcore.models import Message, Session, SessionEvent
from chatcore.search import query as search_query
from chatcore.sessions import verification
from chatcore.transfer import importer
from chatcore.turns import versions
from compaction.models import CompactionRun, WorkingState
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)  # turns are answered in another thread
CALL = {"id": "c1", "name": "look", "arguments": '{"at": "the swordfish"}'}


@pytest.fixture
def talk(session: Session) -> Session:
    """Six messages, of which the first two are summarized."""
    said = [
        {"role": "user", "content": "The swordfish is the password."},
        {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": "Look it up."},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "content": "Found.", "tool_call_id": "c1", "tool_name": "look"},
        {"role": "assistant", "content": "It is there."},
    ]
    importer.import_messages(session, said)
    session.refresh_from_db()
    return session


def summarize(session: Session, summary: str, boundary_seq: int, **fields: Any) -> None:
    session.refresh_from_db()
    version = session.context_version
    revisions.install_revision(
        session.pk,
        base_version=version,
        summary=summary,
        boundary_seq=boundary_seq,
        source="compaction",
        **fields,
    )


def message(session: Session, seq: int) -> Message:
    return session.messages.get(seq=seq)


def sent(session: Session) -> str:
    session = Session.objects.select_related("model__provider").get(pk=session.pk)
    request = builder.build_request(session)
    return "\n".join(
        [request.system, request.preface, *(each.content for each in request.messages)]
    )


def spoken(session: Session) -> list[tuple[Any, ...]]:
    return list(
        session.messages.order_by("seq").values_list(
            "role", "content", "tool_calls", "tool_call_id"
        )
    )


def sound(session: Session) -> list[str]:
    return list(verification.find_violations(Session.objects.get(pk=session.pk)))


def test_a_deleted_message_is_gone_from_everywhere(api: APIClient, talk: Session) -> None:
    summarize(talk, "The password is swordfish.", 3)
    run = CompactionRun.objects.create(
        session=talk,
        trigger="manual",
        policy="oneclaw",
        status="applied",
        boundary_after=3,
        summary_after="The password is swordfish.",
    )
    WorkingState.objects.create(session=talk, memory=["swordfish"])
    pk = message(talk, 1).pk
    SessionEvent.objects.create(
        session=talk,
        seq=9_000,
        name="message.delta",
        message=pk,
        data={"message": pk, "text": "swordfish"},
    )
    Session.objects.filter(pk=talk.pk).update(
        title="The swordfish is the password.", last_event_seq=9_000
    )
    assert api.delete(f"/api/v1/messages/{message(talk, 1).pk}").status_code == 204
    run.refresh_from_db()
    talk.refresh_from_db()
    rows = [
        *talk.revisions.values_list("summary", flat=True),
        run.summary_after,
        talk.title,
        talk.compacted_summary,
    ]
    rows += [json.dumps(data) for data in talk.events.values_list("data", flat=True)]
    rows += [json.dumps(WorkingState.objects.get().memory), sent(talk)]
    assert "swordfish" not in "".join(row or "" for row in rows).replace(CALL["arguments"], "")
    assert search_query.search_messages(talk.pk, "password") == []
    assert talk.message_count == 5
    assert sound(talk) == []


def test_a_title_that_was_made_of_a_deleted_question_is_made_of_the_next(
    api: APIClient, session: Session
) -> None:
    for seq, (role, content) in enumerate(
        [("user", "My secret"), ("assistant", "Yes?"), ("user", "W" * 100)], start=1
    ):
        Message.objects.create(session=session, seq=seq, role=role, content=content)
    Session.objects.filter(pk=session.pk).update(title="My secret", last_seq=3, message_count=3)
    api.delete(f"/api/v1/messages/{message(session, 1).pk}")
    session.refresh_from_db()
    assert session.title == "W" * 60
    api.delete(f"/api/v1/messages/{message(session, 3).pk}")
    session.refresh_from_db()
    assert session.title == ""


def test_an_answer_is_deleted_with_the_results_of_its_calls(api: APIClient, talk: Session) -> None:
    assert api.delete(f"/api/v1/messages/{message(talk, 4).pk}").status_code == 204
    assert list(talk.messages.order_by("seq").values_list("seq", flat=True)) == [1, 2, 3, 6]
    assert sound(talk) == []


def test_the_boundary_moves_on_when_its_message_is_deleted(api: APIClient, talk: Session) -> None:
    summarize(talk, "Small talk.", 3)
    api.delete(f"/api/v1/messages/{message(talk, 3).pk}")
    talk.refresh_from_db()
    assert talk.compact_boundary_seq == 4
    assert talk.compacted_summary == "Small talk."
    assert sound(talk) == []


def test_a_deletion_waits_for_no_one_and_interrupts_no_one(
    api: APIClient, talk: Session, as_user: Callable[[User], APIClient], scripted: ScriptedModel
) -> None:
    other = as_user(User.objects.create_user("bob"))
    for act in (
        other.delete,
        lambda url: other.post(f"{url}/fork"),
        lambda url: other.post(f"{url}/pin", {}),
    ):
        assert act(f"/api/v1/messages/{message(talk, 1).pk}").status_code == 404
    talk.turns.create(status="waiting", lease_until="2020-01-01T00:00Z")
    answer = api.delete(f"/api/v1/messages/{message(talk, 1).pk}")
    assert (answer.status_code, answer.json()["type"]) == (409, "turn_waiting")


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


def test_a_pin_is_sent_word_for_word_whatever_was_summarized(api: APIClient, talk: Session) -> None:
    summarize(talk, "Small talk.", 6)
    url = f"/api/v1/messages/{message(talk, 1).pk}/pin"
    assert api.post(url, {}).json() == {"id": message(talk, 1).pk, "pinned": True}
    assert "The swordfish is the password." in sent(talk)
    assert api.post(url, {"pinned": False}).json()["pinned"] is False
    assert "The swordfish is the password." not in sent(talk)
    assert api.post(url, {"pinned": "yes"}).status_code == 400


@pytest.mark.parametrize("format", ["openai", "anthropic"])
def test_a_history_goes_out_and_comes_back_in_another_systems_form(
    api: APIClient, talk: Session, format: str
) -> None:
    out = api.get(f"/api/v1/sessions/{talk.pk}/export", {"format": format}).json()
    copy = api.post("/api/v1/sessions", {}).json()["id"]
    back = api.post(
        f"/api/v1/sessions/{copy}/messages/import", {"messages": out["messages"], "format": format}
    )
    assert back.status_code == 201, back.json()
    made = Session.objects.get(pk=copy)
    assert spoken(made) == spoken(talk)


def test_the_other_forms_are_what_the_other_apis_take(api: APIClient, talk: Session) -> None:
    Session.objects.filter(pk=talk.pk).update(system_prompt="Be brief.")
    openai = api.get(f"/api/v1/sessions/{talk.pk}/export?format=openai").json()["messages"]
    assert openai[0] == {"role": "system", "content": "Be brief."}
    assert openai[4]["tool_calls"] == [
        {
            "id": "c1",
            "type": "function",
            "function": {"name": "look", "arguments": CALL["arguments"]},
        }
    ]
    anthropic = api.get(f"/api/v1/sessions/{talk.pk}/export?format=anthropic").json()
    assert anthropic["system"] == "Be brief."
    assert [each["role"] for each in anthropic["messages"]] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
        "assistant",
    ]
    assert anthropic["messages"][4]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": "Found.", "is_error": False}
    ]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"messages": [], "format": "xml"}, "format"),
        ({"messages": [{"role": "user", "content": 5}], "format": "openai"}, "messages[0].content"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image"}]}], "format": "anthropic"},
            "messages[0].content[0].type",
        ),
        (
            {"messages": [{"role": "user", "content": [{"image_url": {}}]}], "format": "openai"},
            "messages[0].content[0]",
        ),
        ({"messages": [7], "format": "openai"}, "messages[0]"),
        (
            {"messages": [{"role": "assistant", "tool_calls": 1}], "format": "openai"},
            "messages[0].tool_calls",
        ),
    ],
)
def test_a_history_that_cannot_be_read_is_refused_by_its_place(
    api: APIClient, session: Session, body: dict[str, Any], field: str
) -> None:
    answer = api.post(f"/api/v1/sessions/{session.pk}/messages/import", body)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, field)
    assert session.messages.count() == 0


def test_a_whole_session_goes_out_and_in_with_versions_files_and_summary(
    api: APIClient, talk: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Another answer."))
    api.post(f"/api/v1/messages/{message(talk, 6).pk}/regenerate", {})
    summarize(
        talk,
        "Small talk.",
        4,
        kept_seqs=[1],
        background="Known.",
        placement={"place": "first_user", "after_seq": 7},
    )
    out = api.get(f"/api/v1/sessions/{talk.pk}/export").json()
    answer = api.post("/api/v1/sessions/import", out)
    assert answer.status_code == 201, answer.json()
    made = Session.objects.get(pk=answer.json()["id"])
    assert sent(made) == sent(talk)
    assert made.message_count == Session.objects.get(pk=talk.pk).message_count
    assert (
        made.messages.exclude(branch=None).count() == talk.messages.exclude(branch=None).count() > 0
    )
    assert sound(made) == []


def test_the_tools_of_a_reply_are_forgotten_with_it(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(
        Reply(tool_calls=[make_tool_call("calculate", {"expression": "4711+1"})]),
        Reply(text="4712"),
    )
    answer = api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": "What is it?"}).json()
    calling = session.messages.exclude(tool_calls=[]).get()
    assert api.delete(f"/api/v1/messages/{calling.pk}").status_code == 204
    assert not any(
        "4711" in json.dumps(data) for data in session.events.values_list("data", flat=True)
    )
    assert answer["assistant_message"]["content"] == "4712"
    assert sound(session) == []


def test_a_call_that_waited_for_the_client_is_forgotten_too(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(tool_calls=[make_tool_call("look", {"at": "swordfish"})]))
    tools = [{"name": "look", "parameters": {}}]
    api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": "Look.", "tools": tools})
    api.post(f"/api/v1/sessions/{session.pk}/cancel")
    calling = session.messages.exclude(tool_calls=[]).get()
    assert api.delete(f"/api/v1/messages/{calling.pk}").status_code == 204
    assert not any(
        "swordfish" in json.dumps(data) for data in session.events.values_list("data", flat=True)
    )
    assert sound(session) == []


def test_versions_stay_versions_when_one_between_is_deleted(api: APIClient, talk: Session) -> None:
    first = message(talk, 6)
    second = versions.edit_answer(first, "It was there.")
    third = versions.edit_answer(second, "It will be there.")
    assert api.delete(f"/api/v1/messages/{second.pk}").status_code == 204
    assert versions.map_message_versions(talk.pk) == {
        first.pk: [first.pk, third.pk],
        third.pk: [first.pk, third.pk],
    }
    assert sound(talk) == []


def test_the_newest_message_may_be_deleted_at_the_boundary(api: APIClient, talk: Session) -> None:
    summarize(talk, "Small talk.", 6)
    api.delete(f"/api/v1/messages/{message(talk, 6).pk}")
    assert sound(talk) == []
    assert "Small talk." in sent(talk)
    again = api.post(
        "/api/v1/sessions/import", api.get(f"/api/v1/sessions/{talk.pk}/export").json()
    )
    assert again.status_code == 201, again.json()
    assert sound(Session.objects.get(pk=again.json()["id"])) == []


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


def test_what_is_exported_for_others_has_a_result_for_every_call(
    api: APIClient, talk: Session
) -> None:
    message(talk, 5).delete()
    openai = api.get(f"/api/v1/sessions/{talk.pk}/export?format=openai").json()["messages"]
    assert [said["role"] for said in openai] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    anthropic = api.get(f"/api/v1/sessions/{talk.pk}/export?format=anthropic").json()["messages"]
    assert anthropic[4]["content"][0]["tool_use_id"] == "c1"


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"tools": ["none"]}, "session.tools"),
        ({"params": {"n": 5}}, "session.params.n"),
        ({"policy": "none"}, "session.policy"),
    ],
)
def test_an_imported_session_has_no_settings_that_none_could_have(
    api: APIClient, talk: Session, settings: dict[str, Any], field: str
) -> None:
    out = api.get(f"/api/v1/sessions/{talk.pk}/export").json()
    answer = api.post("/api/v1/sessions/import", out | {"session": settings})
    assert answer.status_code == 400
    assert [error["field"].partition("[")[0] for error in answer.json()["errors"]] == [field]
