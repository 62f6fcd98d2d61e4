"""Importing another system's history over REST."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from rest_framework.test import APIClient

from chatcore.files import output_store
from chatcore.models import Message, Session, Turn
from chatcore.sessions import verification
from chatcore.transfer import exporter, importer
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply
from tests.support.slow_params import mark_others_slow

CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "c1", "name": "look", "arguments": '{"at": 1}'}],
}
RESULT = {"role": "tool", "content": "seen", "tool_call_id": "c1", "tool_name": "look"}


@pytest.fixture(autouse=True)
def sound(session: Session) -> Iterator[None]:
    """Check that the stored session is consistent after whatever a test imported."""
    yield
    session.refresh_from_db()
    assert list(verification.find_violations(session)) == []


@pytest.fixture
def imports(session: Session) -> str:
    return f"/api/v1/sessions/{session.pk}/messages/import"


def build_message(text: str = "Hi", **fields: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **fields}


def test_messages_are_appended_in_order_without_calling_a_model(
    api: APIClient, imports: str, session: Session, scripted: ScriptedModel
) -> None:
    first = api.post(
        imports, {"messages": [build_message("one"), {"role": "assistant", "content": "two"}]}
    )
    assert (first.status_code, first.json()) == (
        201,
        {"imported": 2, "first_seq": 1, "last_seq": 2, "message_count": 2},
    )
    assert api.post(imports, {"messages": [build_message("three")]}).json()["first_seq"] == 3
    assert [m.content for m in session.messages.order_by("seq")] == ["one", "two", "three"]
    assert scripted.requests == []


def test_a_call_and_its_result_keep_their_pair(
    api: APIClient, imports: str, session: Session
) -> None:
    assert api.post(imports, {"messages": [build_message(), CALL, RESULT]}).status_code == 201
    call, result = session.messages.order_by("seq")[1:]
    assert call.tool_calls == CALL["tool_calls"]
    assert (result.tool_call_id, result.tool_name, result.content) == ("c1", "look", "seen")


def test_a_result_may_answer_a_call_of_an_earlier_import(api: APIClient, imports: str) -> None:
    assert api.post(imports, {"messages": [build_message(), CALL]}).status_code == 201
    assert api.post(imports, {"messages": [RESULT]}).status_code == 201


def test_arguments_may_be_an_object(api: APIClient, imports: str, session: Session) -> None:
    call = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "name": "look", "arguments": {"at": "ü"}}],
    }
    assert api.post(imports, {"messages": [call]}).status_code == 201
    assert session.messages.get().tool_calls[0]["arguments"] == '{"at": "ü"}'


def test_times_are_kept(api: APIClient, imports: str, session: Session) -> None:
    api.post(
        imports,
        {
            "messages": [
                build_message(created_at="2020-01-02T03:04:05+01:00"),
                build_message(created_at="2020-01-02T03:04:05"),
            ]
        },
    )
    assert [m.created_at.isoformat() for m in session.messages.order_by("seq")] == [
        "2020-01-02T02:04:05+00:00",
        "2020-01-02T03:04:05+00:00",
    ]


def test_a_long_tool_result_is_cut_as_anywhere(
    api: APIClient, imports: str, session: Session
) -> None:
    api.post(imports, {"messages": [CALL, RESULT | {"content": "x" * 30_001}]})
    result = session.messages.get(seq=2)
    assert (len(result.content), result.original_chars) == (30_076, 30_001)


@pytest.mark.django_db(transaction=True)  # whole outputs go into the store, as in a real request
@pytest.mark.parametrize("many", mark_others_slow([False, True]))
@pytest.mark.parametrize(
    "policy", mark_others_slow(["oneclaw", "wolffish", "neurolink", "lota", "chatcore"], first=2)
)
def test_an_imported_result_is_stored_as_a_live_one(
    api: APIClient, session: Session, scripted: ScriptedModel, policy: str, many: bool
) -> None:
    live, other = session, Session.objects.create(owner=session.owner, model=session.model)
    Session.objects.update(policy=policy)
    output = "".join(f"line {number:05d}\n" for number in range(6_000))  # 66,000 characters
    scripted.script(Reply(tool_calls=[make_tool_call("look", {}, id="c1")]))
    address = f"/api/v1/sessions/{live.pk}"
    api.post(f"{address}/messages", {"content": "Look.", "tools": [{"name": "look"}]})
    result = {"tool_call_id": "c1", "content": output}
    assert api.post(f"{address}/tool_results", {"results": [result]}).status_code == 201
    # The number of the message stands in the note about the whole output.
    messages = [build_message("Look."), CALL, RESULT | {"content": output}]
    messages += [RESULT | {"content": output, "tool_call_id": "c1"}] * 5 * many
    imports = f"/api/v1/sessions/{other.pk}/messages/import"
    assert api.post(imports, {"messages": messages}).status_code == 201
    stored, imported = (each.messages.get(seq=3) for each in (live, other))
    for name in ("content", "original_chars", "tool_result_limit", "token_estimate"):
        assert getattr(imported, name) == getattr(stored, name), name
    kept = [
        [
            (file.size, output_store.read_text(file), bool(file.text))
            for file in each.attachments.all()
        ]
        for each in (stored, imported)
    ]
    assert kept[0] == kept[1] == [(66_000, output, False)] * (policy in ("wolffish", "chatcore"))
    for message in other.messages.filter(role="tool"):
        assert message.attachments.count() == len(kept[0])
    other.refresh_from_db()
    assert list(verification.find_violations(other)) == []


@pytest.mark.django_db(transaction=True)
def test_notes_name_their_messages_though_another_came_first(session: Session) -> None:
    session.policy = "wolffish"
    session.save()
    is_sent = False

    def send_another_first(execute: Any, sql: str, *arguments: Any) -> Any:
        nonlocal is_sent
        if not is_sent and sql.startswith(f'INSERT INTO "{Message._meta.db_table}"'):
            is_sent = True
            importer.import_messages(session, [build_message("First!")])
        return execute(sql, *arguments)

    results = [RESULT | {"content": "word " * 20_000}] * 5
    with connection.execute_wrapper(send_another_first):
        importer.import_messages(session, [CALL, *results])
    assert session.messages.get(seq=1).content == "First!"
    for seq in range(3, 8):
        result = session.messages.get(seq=seq)
        assert f"with message {seq} reads it" in result.content
        assert result.attachments.get().session == session


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("policy", ["neurolink", "wolffish"])
def test_an_export_is_imported_without_another_cut(
    api: APIClient, session: Session, policy: str
) -> None:
    session.policy = policy
    session.save()
    imports = f"/api/v1/sessions/{session.pk}/messages/import"
    output = "word " * 20_000
    api.post(imports, {"messages": [CALL, RESULT | {"content": output}]})
    exported = exporter.export_session(session)
    copies = [importer.import_session(session.owner, exported)]
    # Whoever writes such a file by hand says nothing of an earlier cut.
    fields = ("seq", "role", "content", "tool_calls", "tool_call_id")
    exported["messages"] = [
        {name: message[name] for name in fields} for message in exported["messages"]
    ]
    exported["messages"][1]["content"] = output
    copies.append(importer.import_session(session.owner, exported))
    stored = session.messages.get(seq=2)
    for copy in copies:
        result = copy.messages.get(seq=2)
        assert (result.content, result.original_chars) == (stored.content, 100_000)
        texts = [output_store.read_text(file) for file in result.attachments.all()]
        assert texts == [output] * (policy == "wolffish")
        assert list(verification.find_violations(copy)) == []


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"role": "robot", "content": "Hi"}, "role"),
        ({"content": "Hi"}, "role"),
        ({"role": ["user"], "content": "Hi"}, "role"),
        (build_message(5), "content"),  # type: ignore[arg-type]
        (build_message(""), "content"),
        (build_message(colour="blue"), "colour"),
        (build_message(is_error="no"), "is_error"),
        (build_message(created_at="yesterday"), "created_at"),
        (build_message(created_at=5), "created_at"),
        (build_message(created_at="0001-01-01T00:00:00+14:00"), "created_at"),
        (build_message(tool_calls=CALL["tool_calls"]), "tool_calls"),
        (build_message(tool_call_id="c1"), "tool_call_id"),
        (RESULT, "tool_call_id"),
        (RESULT | {"tool_call_id": ""}, "tool_call_id"),
        (CALL | {"tool_calls": [{"id": "c1", "name": "look"}]}, "tool_calls[0]"),
        (CALL | {"tool_calls": [{"id": "c1", "name": 5, "arguments": ""}]}, "tool_calls[0].name"),
        (CALL | {"tool_calls": "c1"}, "tool_calls"),
        ("Hi", ""),
        (None, ""),
    ],
)
def test_one_wrong_message_refuses_all_of_them(
    api: APIClient, imports: str, wrong: Any, field: str
) -> None:
    refusal = api.post(imports, {"messages": [build_message(), wrong]})
    assert refusal.status_code == 400
    assert refusal.json()["errors"][0]["field"] == f"messages[1].{field}".rstrip(".")
    assert not Message.objects.exists()


@pytest.mark.parametrize(
    "body", [[], {}, {"messages": {}}, {"messages": None}, {"messages": [], "stream": True}]
)
def test_a_wrong_body_is_refused(api: APIClient, imports: str, body: Any) -> None:
    assert api.post(imports, body).json()["errors"][0]["field"] == "messages"


@pytest.mark.slow
def test_ten_thousand_messages_are_taken_and_one_more_is_413(
    api: APIClient, imports: str, session: Session
) -> None:
    assert api.post(imports, {"messages": [build_message()] * 10_001}).status_code == 413
    assert api.post(imports, {"messages": [build_message()] * 10_000}).json()["last_seq"] == 10_000
    assert session.messages.count() == 10_000


def test_a_message_over_256_kb_is_413(api: APIClient, imports: str) -> None:
    assert (
        api.post(imports, {"messages": [build_message("x" * (256 * 1024 + 1))]}).status_code == 413
    )


def test_nothing_is_put_between_a_question_and_its_answer(
    api: APIClient, imports: str, session: Session
) -> None:
    turn = Turn.objects.create(session=session, lease_until=timezone.now() + timedelta(seconds=30))
    refusal = api.post(imports, {"messages": [build_message()]})
    assert (refusal.status_code, refusal.json()["turn"]) == (409, str(turn.pk))


def test_nothing_to_import_is_no_error(api: APIClient, imports: str) -> None:
    assert api.post(imports, {"messages": []}).json() == {
        "imported": 0,
        "first_seq": None,
        "last_seq": None,
        "message_count": 0,
    }
