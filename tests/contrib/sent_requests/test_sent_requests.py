"""What each answer's request has sent: stored in little room, and shown as it was."""

import base64
import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.backends.utils import CursorWrapper
from django.utils import timezone
from rest_framework.test import APIClient

from chatcore.context import revisions
from chatcore.contrib.holds.models import Hold
from chatcore.contrib.sent_requests import records
from chatcore.contrib.sent_requests.models import SentRequest, SentText
from chatcore.models import (
    ContextEdit,
    Installation,
    Message,
    Session,
    Turn,
)
from chatcore.projects.changes import add_file, create_project
from chatcore.sessions import deletion as session_deletion
from chatcore.sessions.changes import record_session_change
from chatcore.transfer import importer
from chatcore.turns import control, deletion
from compaction.runs import engine
from tests.support.compaction_sessions import (
    list_chat_calls,
    read_message_texts,
    read_system_text,
    say,
    use_anthropic,
)
from tests.support.sample_files import build_png
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply
from tests.support.stored_talk import summarize
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def list_answers(session: Session) -> list[Message]:
    return list(session.messages.filter(role="assistant").order_by("seq"))


def fetch_request(api: APIClient, answer: Message) -> dict[str, Any]:
    response = api.get(f"/api/v1/messages/{answer.pk}/request")
    assert response.status_code == 200, response.content
    shown: dict[str, Any] = response.json()
    return shown


def read_shown(shown: dict[str, Any]) -> str:
    """All texts of a request, as the provider's log has them too."""
    return "\n\n".join([shown["system"], *(each["content"] for each in shown["messages"])])


def read_sent(scripted: ScriptedModel, index: int) -> str:
    call = list_chat_calls(scripted)[index]
    return "\n\n".join([read_system_text(call).strip(), *read_message_texts(call)])


def test_every_answer_shows_the_request_that_the_provider_got(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    Session.objects.filter(pk=session.pk).update(system_prompt="Be brief.")
    for text in ("Tea?", "With milk?", "And sugar?"):
        say(session, text)
    answers = list_answers(session)
    for index, answer in enumerate(answers):
        shown = fetch_request(api, answer)
        assert read_shown(shown) == read_sent(scripted, index)
        assert [each["seq"] for each in shown["messages"]] == list(range(1, 2 * index + 2))
        sent_tools = list_chat_calls(scripted)[index].json["tools"]
        assert shown["tools"] == [tool["function"] for tool in sent_tools]
        assert shown["model"] == "test-model"
        assert shown["tokens"] == answer.token_count_input
        assert (shown["left_out"], shown["missing_parts"]) == ([], 0)


def attach(api: APIClient, session: Session, *files: tuple[str, bytes, str]) -> list[str]:
    address = f"/api/v1/sessions/{session.pk}/attachments"
    bodies = [{"file": SimpleUploadedFile(*file)} for file in files]
    return [api.post(address, body, format="multipart").json()["id"] for body in bodies]


def list_parts(body: dict[str, Any]) -> list[Any]:
    """Every text, call, result and image of a request of either protocol, in order."""
    system = body.get("system") or []
    blocks = [{"text": system}] if isinstance(system, str) else [*system]
    for message in body["messages"]:
        content = message["content"]
        if isinstance(content, list):
            blocks += content
        elif content:
            blocks.append({"text": content})
        blocks += [call["function"] for call in message.get("tool_calls") or ()]
    return put_images_last([read_block(block) for block in blocks])


def read_block(block: dict[str, Any]) -> Any:
    if "image_url" in block:
        head, data = block["image_url"]["url"].split(";base64,")
        return (head.removeprefix("data:"), len(base64.b64decode(data)))
    if "source" in block:
        source = block["source"]
        return (source["media_type"], len(base64.b64decode(source["data"])))
    if "name" in block:
        return (block["name"], block.get("input") or json.loads(block["arguments"]))
    return block.get("text") or block["content"]


def put_images_last(parts: list[Any]) -> list[Any]:
    """The protocols differ in where an image stands beside its text."""
    return sorted(parts, key=lambda part: isinstance(part, tuple) and isinstance(part[1], int))


def list_shown_parts(shown: dict[str, Any]) -> list[Any]:
    parts: list[Any] = [text for text in (shown["system"], shown["preface"]) if text]
    for message in shown["messages"]:
        images = [(image["media_type"], image["size"]) for image in message["images"]]
        calls = message["tool_calls"]
        parts += [message["content"]] if message["content"] else []
        parts += images
        parts += [(call["name"], json.loads(call["arguments"])) for call in calls]
    return put_images_last(parts)


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
def test_in_ten_situations_it_is_to_the_byte_what_the_provider_got(
    api: APIClient, session: Session, scripted: ScriptedModel, protocol: str
) -> None:
    assert session.model
    session.model.supports_images = True
    session.model.save()
    if protocol == "anthropic":
        use_anthropic(session, scripted)
    say(session, "Plain.")
    Session.objects.update(system_prompt="Be brief. <&> \u202e ß")
    say(session, "With a prompt.")
    sum_up = make_tool_call("calculate", {"expression": "1 + 1"})
    scripted.script(Reply(tool_calls=[sum_up]), Reply(text="Two."))
    say(session, "With tools.")
    image = build_png(8, 8)
    ids = attach(api, session, ("a.txt", b"Four.", "text/plain"), ("a.png", image, "image/png"))
    address = f"/api/v1/sessions/{session.pk}"
    api.post(f"{address}/messages", {"content": "With a file and an image.", "attachments": ids})
    project = create_project(session.owner, {"name": "Lisbon", "instructions": "Say where."})
    add_file(project, name="trains.txt", data=b"Porto 9:00")
    record_session_change(session.pk, {"project": project})
    say(session, "With a project.")
    pruned = revisions.MessageEdit(message_seq=5, kind="pruned", replacement="[tools]")
    summarize(session, "They try things.", boundary_seq=5, edits=[pruned])
    say(session, "After compaction.")
    revisions.rewind_context(session.pk, to_version=0)
    say(session, "After a rewind.")
    answer = list_answers(session)[-1]
    assert api.post(f"/api/v1/messages/{answer.pk}/regenerate", {}).status_code == 201
    scripted.default = Reply(status=500, text="out of order")
    pair = [{"role": role, "content": "Lisbon. " * 900} for role in ("user", "assistant")]
    importer.import_messages(session, pair * 6)
    engine.compact_now(session.pk, trigger="manual")
    scripted.script(Reply(text="Fine."))
    say(session, "Trimmed.")
    requests = [fetch_request(api, answer) for answer in list_answers(session) if answer.turn_id]
    calls = list_chat_calls(scripted)
    assert len(requests) == len(calls) == 10
    for shown, call in zip(requests, calls, strict=True):
        assert list_shown_parts(shown) == list_parts(call.json)
    assert requests[-1]["left_out"]


def test_what_requests_share_is_stored_once(session: Session, scripted: ScriptedModel) -> None:
    Session.objects.filter(pk=session.pk).update(system_prompt="Be brief. " * 100)
    for number in range(5):
        say(session, f"Ostrich {number}?")
    assert SentRequest.objects.count() == 5
    assert SentText.objects.count() == 2  # the system text, and the tools
    newest_layout = SentRequest.objects.order_by("pk").last().layout  # type: ignore[union-attr]
    assert newest_layout["messages"] == [[1, 9]]
    assert not SentText.objects.filter(text__contains="Ostrich").exists()


def test_a_request_without_a_new_text_takes_one_statement(
    session: Session, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements: list[str] = []
    execute = CursorWrapper.execute

    def note(self: Any, sql: str, params: Any = None) -> Any:
        if "chatcore_sentrequest" in sql or "chatcore_senttext" in sql:
            statements.append(sql)
        return execute(self, sql, params)

    Session.objects.filter(pk=session.pk).update(system_prompt="Be brief.")
    say(session, "Tea?")
    monkeypatch.setattr(CursorWrapper, "execute", note)
    say(session, "With milk?")
    assert len(statements) == 1, statements


def test_an_answer_still_shows_the_context_that_it_had(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    say(session, "I like tea.")
    summarize(session, "They like tea.", boundary_seq=3)
    say(session, "What do I like?")
    revisions.reword_summary(session.pk, base_version=1, summary="They like coffee.")
    say(session, "And now?")
    first, second, third = (fetch_request(api, answer) for answer in list_answers(session))
    assert "summary" not in first["system"]
    assert "They like tea." in second["system"]
    assert "They like coffee." in third["system"]
    assert [shown["context_version"] for shown in (first, second, third)] == [0, 1, 2]
    for index, shown in enumerate((first, second, third)):
        assert read_shown(shown) == read_sent(scripted, index)


def test_each_round_of_tools_has_its_own_request(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(tool_calls=[make_tool_call("current_time")]), Reply(text="It is noon."))
    say(session, "What time is it?")
    calling, final = (fetch_request(api, answer) for answer in list_answers(session))
    assert [each["role"] for each in calling["messages"]] == ["user"]
    assert [each["role"] for each in final["messages"]] == ["user", "assistant", "tool"]
    assert final["messages"][1]["tool_calls"][0]["name"] == "current_time"
    assert read_shown(final) == read_sent(scripted, 1)


def test_what_did_not_fit_is_named(api: APIClient, full: Session, scripted: ScriptedModel) -> None:
    scripted.default = Reply(status=500, text="out of order")
    engine.compact_now(full.pk, trigger="manual")
    scripted.script(Reply(text="Fine."))
    say(full)
    shown = fetch_request(api, list_answers(full)[-1])
    assert read_shown(shown) == read_sent(scripted, -1)
    assert shown["left_out"][:2] == [1, 2]
    assert len(shown["left_out"]) + len(shown["messages"]) == 15
    assert shown["context_version"] is None


def test_files_stand_in_the_request_and_images_by_their_size(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    assert session.model
    session.model.supports_images = True
    session.model.save()
    image = build_png(8, 8)
    notes = ("notes.txt", b"The locker is 4711.", "text/plain")
    ids = attach(api, session, notes, ("dot.png", image, "image/png"))
    address = f"/api/v1/sessions/{session.pk}"
    api.post(f"{address}/messages", {"content": "Read this.", "attachments": ids})
    say(session, "Again?")
    for index, answer in enumerate(list_answers(session)):
        shown = fetch_request(api, answer)
        assert read_shown(shown) == read_sent(scripted, index)
        question = shown["messages"][0]
        assert "The locker is 4711." in question["content"]
        assert question["images"] == [{"media_type": "image/png", "size": len(image)}]
    assert SentText.objects.filter(text__contains="4711").count() == 1


def test_a_message_in_another_form_is_shown_in_that_form(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    importer.import_messages(
        session,
        [{"role": "user", "content": "A long story."}, {"role": "assistant", "content": "Oh."}],
    )
    summarize(session, "", boundary_seq=1)
    ContextEdit.objects.create(
        session=session,
        message=session.messages.get(seq=1),
        kind=ContextEdit.Kind.PRUNED,
        replacement="[a story]",
        from_version=1,
    )
    say(session, "Go on.")
    shown = fetch_request(api, list_answers(session)[-1])
    assert shown["messages"][0] == {
        "seq": 1,
        "role": "user",
        "content": "[a story]",
        "tool_calls": [],
        "tool_call_id": "",
        "tool_name": "",
        "is_error": False,
        "aside": False,
        "images": [],
    }
    assert read_shown(shown) == read_sent(scripted, -1)


def test_a_stopped_answer_has_its_request_too(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="One two three", cut_after=2, hang=True))
    turn = control.start_turn(session, content="Count.")
    wait_until(lambda: session.messages.filter(role="assistant").exists())
    control.cancel_turn(session.pk)
    control.wait_for_turn(turn.pk)
    answer = list_answers(session)[0]
    assert answer.status == Message.Status.INTERRUPTED
    assert read_shown(fetch_request(api, answer)) == read_sent(scripted, 0)


def test_a_deleted_message_is_gone_from_every_request(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    Session.objects.filter(pk=session.pk).update(system_prompt="Be brief.")
    say(session, "The secret is swordfish.")
    summarize(session, "They said swordfish.", boundary_seq=3)
    say(session, "And then?")
    deletion.delete_message(session.messages.get(seq=1))
    assert not SentText.objects.filter(text__contains="swordfish").exists()
    first, second = list_answers(session)
    shown = fetch_request(api, second)
    assert "swordfish" not in str(shown)
    assert shown["missing_parts"] == 2  # the system text with the summary, and the tools
    say(session, "Go on.")  # tools and plain system text are sent again, so they are known again
    assert fetch_request(api, second)["missing_parts"] == 1
    assert fetch_request(api, first)["missing_parts"] == 1  # its question


def test_nobody_knows_the_request_of_what_was_imported(api: APIClient, session: Session) -> None:
    importer.import_messages(session, [{"role": "assistant", "content": "Hello."}])
    answer = list_answers(session)[0]
    assert api.get(f"/api/v1/messages/{answer.pk}/request").status_code == 404


def test_a_deleted_session_takes_its_requests_with_it(
    session: Session, scripted: ScriptedModel
) -> None:
    say(session, "Tea?")
    session_deletion.delete_session(session.pk)
    session_deletion.purge_due_sessions()
    assert not SentRequest.objects.exists()
    assert not SentText.objects.exists()


def test_numbers_are_joined_to_spans_and_back() -> None:
    seqs = [1, 2, 3, 7, 9, 10]
    spans = records.join_seqs(seqs)
    assert spans == [[1, 3], [7, 7], [9, 10]]
    assert list(records.split_spans(spans)) == seqs


@pytest.fixture
def long_after_the_upgrade() -> None:
    Installation.load()
    Installation.objects.update(retention_since=timezone.now() - timedelta(days=31))


def age(answer: Message) -> None:
    long_ago = timezone.now() - timedelta(days=31)
    Message.objects.filter(pk=answer.pk).update(created_at=long_ago)
    SentText.objects.filter(session=answer.session_id).update(created_at=long_ago)


def test_requests_are_kept_for_thirty_days_with_the_texts_that_others_have(
    api: APIClient, session: Session, scripted: ScriptedModel, long_after_the_upgrade: None
) -> None:
    for prompt in ("Be brief.", "Be kind.", "Be kind."):
        Session.objects.filter(pk=session.pk).update(system_prompt=prompt)
        say(session, "Hello?")
    first, second, third = list_answers(session)
    age(first)
    age(second)
    assert records.prune_requests() == 2
    for answer in (first, second):
        assert api.get(f"/api/v1/messages/{answer.pk}/request").status_code == 404
    shown = fetch_request(api, third)
    assert (shown["missing_parts"], "Be kind." in shown["system"]) == (0, True)
    texts = " ".join(SentText.objects.values_list("text", flat=True))
    assert ("Be brief." in texts, "Be kind." in texts) == (False, True)


def test_the_days_of_a_request_count_from_the_upgrade_on(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    say(session, "Hello?")
    [answer] = list_answers(session)
    age(answer)
    assert records.prune_requests() == 0
    fetch_request(api, answer)


def test_requests_of_somebody_on_hold_stay(
    api: APIClient, session: Session, scripted: ScriptedModel, long_after_the_upgrade: None
) -> None:
    say(session, "Hello?")
    [answer] = list_answers(session)
    age(answer)
    Hold.objects.create(user=session.owner, reason="A case.")
    assert records.prune_requests() == 0
    fetch_request(api, answer)


def test_the_texts_stay_while_an_answer_is_written(
    api: APIClient, session: Session, scripted: ScriptedModel, long_after_the_upgrade: None
) -> None:
    say(session, "Hello?")
    [answer] = list_answers(session)
    age(answer)
    Turn.objects.create(session=session, lease_until=timezone.now() + timedelta(minutes=1))
    assert records.prune_requests() == 1
    assert SentText.objects.exists()
