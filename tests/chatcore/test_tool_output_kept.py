"""Tool outputs are cut by the session's policy, stored completely if it says so, and read again."""

import re
from typing import Any

import pytest
from django.test.utils import override_settings
from rest_framework.test import APIClient

from chatcore import settings as project
from chatcore.files import output_store
from chatcore.models import Attachment, Message, Session
from chatcore.providers.base import ToolCall
from chatcore.tools import output as tool_output
from chatcore.tools import read_tool_output
from chatcore.tools import registry as tool_registry
from compaction.models import CompactionPolicy
from models_registry.models import AiModel
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

answering = pytest.mark.django_db(transaction=True)  # turns are answered in another thread
LOG = "".join(f"line {number:05d}\n" for number in range(20_000))  # 220,000 characters


@pytest.fixture
def spilling(session: Session) -> Session:
    """A session whose policy keeps 1,000 characters of an output, and all of it beside."""
    limits = {"limit": 1_000, "keep": "tail", "marker": "\n[{kept} of {total}]", "spill": True}
    CompactionPolicy.objects.create(
        name="spilling", base="oneclaw", overrides={"tool_result": limits}
    )
    Session.objects.filter(pk=session.pk).update(policy="spilling")
    session.refresh_from_db()
    return session


def store(session: Session, text: str, *, seq: int = 1, tool: str = "search_history") -> Message:
    """As a turn stores an output."""
    output = tool_output.build_tool_output(session, tool, text).put_away(session)
    message = Message.objects.create(
        session=session,
        seq=seq,
        role="tool",
        tool_call_id="c",
        tool_name=tool,
        **output.message_fields,
    )
    output.attach_full_text(message)
    return Message.objects.get(pk=message.pk)


def read(session: Session, **arguments: Any) -> Any:
    return tool_registry.run_tool(
        make_tool_call("read_tool_output", arguments), session_id=session.pk
    )


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("policy", "stored", "ends"),
    [
        ("oneclaw", 30_077, "showing first 30000 characters of 220000 total ...]"),
        (
            "neurolink",
            22_053,
            "line 19999\n\n\n[Output truncated from 220000 bytes to 22000 bytes]",
        ),
        ("baseagent", 9_921, "line 19999\n"),
    ],
)
def test_the_policy_of_the_session_cuts(
    session: Session, policy: str, stored: int, ends: str
) -> None:
    Session.objects.filter(pk=session.pk).update(policy=policy)
    session.refresh_from_db()
    message = store(session, LOG)
    assert (len(message.content), message.original_chars) == (stored, 220_000)
    assert message.content.endswith(ends)
    assert not Attachment.objects.exists()


@pytest.mark.django_db
def test_what_a_policy_allows_beyond_30000_characters_is_stored_and_saving_again_changes_nothing(
    session: Session,
) -> None:
    Session.objects.filter(pk=session.pk).update(policy="neurolink")
    session.refresh_from_db()
    message = store(session, "x" * 60_000)
    assert (len(message.content), message.tool_result_limit) == (51_252, 51_252)
    message.save()
    assert Message.objects.get(pk=message.pk).content == message.content


@pytest.mark.django_db
def test_without_a_delegate_it_is_the_plain_cut(session: Session) -> None:
    with override_settings(CHATCORE=project.CHATCORE | {"COMPACTOR": None}):
        message = store(session, "x" * 30_001)
    assert (len(message.content), message.original_chars, message.tool_result_limit) == (
        30_076,
        30_001,
        None,
    )


@pytest.mark.django_db
def test_no_output_however_broken_makes_it_raise(session: Session) -> None:
    for seq, text in enumerate(("", "\x00" * 40_000, "\ud83d" * 40_000, "{" * 40_000), start=1):
        assert "\x00" not in store(session, text, seq=seq).content


@pytest.mark.django_db
def test_the_whole_output_is_kept_and_the_message_tells_where(spilling: Session) -> None:
    message = store(spilling, LOG, seq=7)
    assert message.content.startswith(
        LOG[-1_000:] + "\n[1000 of 220000]\n\n[The whole output is kept: "
    )
    assert message.content.endswith("read_tool_output with message 7 reads it.]")
    kept = Attachment.objects.get()
    assert (kept.kind, kept.message, kept.text, kept.size) == ("output", message, "", 220_000)
    assert output_store.read_text(kept) == LOG
    assert read(spilling, message=7, offset=11, limit=10).content == (
        "[Characters 11 to 21 of the 220,000 of message 7; the next begin at offset 21.]\n"
        "line 00001"
    )
    assert read(spilling, message=7, offset=219_989).content.endswith(
        "; there are no more.]\nline 19999\n"
    )


@pytest.mark.django_db
def test_what_fits_is_not_kept_twice(spilling: Session) -> None:
    assert store(spilling, "short").content == "short"
    assert not Attachment.objects.exists()


@pytest.mark.django_db
def test_of_an_output_over_ten_megabytes_the_beginning_is_kept_and_the_message_says_so(
    spilling: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_output, "MAX_STORED_BYTES", 2_001)
    message = store(spilling, "é" * 5_000)
    assert message.content.endswith(
        "[The first 1,000 of 5,000 characters are kept: "
        "read_tool_output with message 1 reads them.]"
    )
    assert output_store.read_text(Attachment.objects.get()) == "é" * 1_000


@pytest.mark.django_db
def test_reading_says_what_is_wrong(spilling: Session, user: Any) -> None:
    store(spilling, LOG)
    assert "No output of message 2 is kept" in read(spilling, message=2).content
    assert "offset 220,000 is behind its end" in read(spilling, message=1, offset=220_000).content
    stranger = Session.objects.create(owner=user)
    assert read(stranger, message=1).is_error


@pytest.mark.django_db
def test_the_middle_and_the_end_are_found_by_a_search(spilling: Session) -> None:
    store(spilling, LOG, seq=7)
    found = read(spilling, message=7, search="LINE 10000").content
    assert found.startswith(
        "[Passages with 'LINE 10000' in the 220,000 characters of message 7; there are no more.]"
        "\n\n[offset 109840]\n"
    )
    assert "\nline 09999\nline 10000\nline 10001\n" in found
    assert "line 19999" in read(spilling, message=7, search="line 19999").content
    missing = read(spilling, message=7, search="line 10000", offset=150_000).content
    assert missing == (
        "['line 10000' is not in the 220,000 characters of message 7 from offset 150,000 on.]"
    )


@pytest.mark.django_db
def test_a_search_with_many_hits_says_where_to_go_on(spilling: Session) -> None:
    store(spilling, LOG, seq=7)
    first = read(spilling, message=7, search="line 1", limit=1_000).content
    assert len(first) < 2_000
    offset = int(re.findall(r"more from offset (\d+) on", first)[0])
    second = read(spilling, message=7, search="line 1", offset=offset, limit=1_000).content
    assert first.count("line 1") > 20
    assert re.findall(r"line \d{5}", second)[1] > re.findall(r"line \d{5}", first)[-1]


@pytest.mark.django_db
def test_what_is_read_out_of_a_kept_output_is_not_kept_once_more(spilling: Session) -> None:
    store(spilling, LOG)
    again = store(spilling, LOG[:5_000], seq=2, tool="read_tool_output")
    assert again.content.endswith("\n[1000 of 5000]")
    assert Attachment.objects.count() == 1


@pytest.mark.django_db
def test_the_tool_is_offered_only_where_an_output_is_kept(
    spilling: Session, api: APIClient
) -> None:
    def offered() -> list[str]:
        return [
            tool["name"]
            for tool in api.get(f"/api/v1/sessions/{spilling.pk}/context/preview").json()["tools"]
        ]

    assert "read_tool_output" not in offered()
    store(spilling, LOG)
    assert offered()[-1] == "read_tool_output"
    Session.objects.filter(pk=spilling.pk).update(tools=["calculate"])
    assert offered() == ["calculate", "read_tool_output"]
    AiModel.objects.update(supports_tools=False)
    assert offered() == []


@answering
def test_a_model_reads_on_in_an_output_of_the_same_turn(
    spilling: Session, api: APIClient, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(*calls: ToolCall) -> Reply:
        return Reply(tool_calls=list(calls))

    monkeypatch.setitem(tool_registry.BUILT_IN_TOOLS, "search_history", _logging())
    scripted.script(
        ask(make_tool_call("search_history", {"query": "log"})),
        ask(make_tool_call("read_tool_output", {"message": 3, "limit": 11}, id="call_2")),
        Reply(text="Done."),
    )
    answered = api.post(f"/api/v1/sessions/{spilling.pk}/messages", {"content": "Read the log."})
    assert answered.status_code == 201, answered.json()
    first, second = answered.json()["tool_messages"]
    assert (
        first["seq"],
        first["original_chars"],
        [each["kind"] for each in first["attachments"]],
    ) == (3, 220_000, ["output"])
    assert (
        second["content"]
        == "[Characters 0 to 11 of the 220,000 of message 3; the next begin at offset 11.]\n"
        "line 00000\n"
    )
    offered = [
        [tool["function"]["name"] for tool in request.json["tools"]]
        for request in scripted.requests
    ]
    assert ["read_tool_output" in names for names in offered] == [False, True, True]
    download = api.get(f"/api/v1/attachments/{first['attachments'][0]['id']}")
    assert download.content.decode() == LOG


@answering
def test_a_clients_result_is_cut_and_kept_too_and_may_come_twice(
    spilling: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    scripted.script(
        Reply(
            tool_calls=[make_tool_call("build", {}, id="b1"), make_tool_call("test", {}, id="t1")]
        )
    )
    definitions = [{"name": "build"}, {"name": "test"}]
    api.post(
        f"/api/v1/sessions/{spilling.pk}/messages", {"content": "Build it.", "tools": definitions}
    )
    address = f"/api/v1/sessions/{spilling.pk}/tool_results"
    result = {"tool_call_id": "b1", "content": LOG}
    assert api.post(address, {"results": [result]}).status_code == 201
    assert api.post(address, {"results": [result]}).status_code == 201
    assert api.post(address, {"results": [result | {"content": "other"}]}).status_code == 400
    assert output_store.read_text(Attachment.objects.get()) == LOG
    refused = api.post(
        f"/api/v1/sessions/{spilling.pk}/messages",
        {"content": "x", "tools": [{"name": read_tool_output.TOOL.name}]},
    )
    assert refused.status_code in (400, 409)


def _logging() -> Any:
    import dataclasses

    return dataclasses.replace(
        tool_registry.BUILT_IN_TOOLS["search_history"], run=lambda arguments, session_id: LOG
    )
