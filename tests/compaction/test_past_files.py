"""Files of summarized messages are named beside the summary, and the model can read them again."""

import re
from typing import Any

import pytest
from rest_framework.test import APIClient

from chatcore.context.past_files import MAX_CHARS, MAX_NAMED
from chatcore.models import Message, Session
from chatcore.tools.registry import run_tool
from chatcore.turns.forks import fork_session
from chatcore.turns.prepared_calls import build_next_request
from compaction.core.presets import PRESETS
from compaction.runs import engine
from compaction.sessions.facts import load_session_facts
from compaction.sessions.translation import serialize_tools
from models_registry.models import AiModel
from tests.support.attachment_requests import say, upload
from tests.support.compaction_sessions import (
    fill_session,
    list_chat_calls,
    read_system_text,
    summarize_or_chat,
)
from tests.support.context_usage import load_usage
from tests.support.frozen_talk import use_policy
from tests.support.sample_files import build_png
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)

CLAUSES = [
    f"§ {number} {'Penalty: late delivery costs' if number % 7 == 1 and number < 119 else 'Sum:'} "
    f"{number * 13} euros for part {number}."
    for number in range(1, 121)
]
CONTRACT = "\n".join(CLAUSES)
PENALTIES = [clause for clause in CLAUSES if "Penalty" in clause]
Body = dict[str, Any]


def send_file(api: APIClient, session: Session, text: str, name: str) -> None:
    uploaded = upload(api, session, text.encode(), name)
    assert uploaded.status_code == 201, uploaded.json()
    answered = say(api, session, [uploaded.json()["id"]], f"This is {name}.")
    assert answered.status_code == 201, answered.json()


def compact(api: APIClient, session: Session, *, messages: int = 14) -> None:
    session.refresh_from_db()
    fill_session(session, messages=messages)
    run = api.post(f"/api/v1/sessions/{session.pk}/compact", {"wait": True})
    assert run.json()["status"] == "applied", run.json()
    session.refresh_from_db()


def find_names(body: Body) -> list[str]:
    """Return the names of files beside the summary of a request."""
    return re.findall(r'^- "(.+)" \(.+ bytes, message \d+\)$', json_text(body), re.MULTILINE)


def json_text(body: Body) -> str:
    return "\n".join(str(message["content"]) for message in body["messages"])


def read_named_file(body: Body) -> Reply:
    """Answer as a model does that reads the file that the summary names, to its end."""
    if "<transcript>" in str(body["messages"]):
        return Reply(text="Alice attached a contract with many clauses.")
    last = body["messages"][-1]
    if last["role"] == "user":
        call = make_tool_call("read_attachment", {"name": find_names(body)[0]})
        return Reply(tool_calls=[call])
    more = re.search(r"the next begin at offset (\d+)", str(last["content"]))
    if more:
        arguments = {"name": find_names(body)[0], "offset": int(more[1])}
        return Reply(tool_calls=[make_tool_call("read_attachment", arguments, id=f"c{more[1]}")])
    results = "\n".join(str(m["content"]) for m in body["messages"] if m["role"] == "tool")
    return Reply(text="\n".join(re.findall(r"§ \d+ Penalty.+", results)))


@pytest.fixture
def talking(session: Session, scripted: ScriptedModel) -> Session:
    scripted.default = summarize_or_chat()
    return session


def read(session: Session, **arguments: object) -> str:
    call = make_tool_call("read_attachment", arguments)
    return run_tool(call, session_id=session.pk).content


@pytest.mark.parametrize("policy", ["oneclaw", "chatcore"])
def test_all_clauses_of_a_kind_are_found_in_a_summarized_contract(
    talking: Session, scripted: ScriptedModel, api: APIClient, policy: str
) -> None:
    use_policy(talking, policy)
    send_file(api, talking, CONTRACT, "contract.txt")
    compact(api, talking)
    scripted.default = read_named_file
    answer = say(api, talking, [], "Which clauses have a penalty?").json()
    assert len(PENALTIES) == 17
    assert answer["assistant_message"]["content"].splitlines() == PENALTIES
    first_call = list_chat_calls(scripted)[-2].json
    assert find_names(first_call) == ["contract.txt"]
    assert '"contract.txt" (text/plain, ' in json_text(first_call)


@pytest.mark.parametrize("policy", PRESETS)
def test_every_policy_names_them_and_counts_their_names(
    talking: Session, api: APIClient, policy: str
) -> None:
    use_policy(talking, policy)
    send_file(api, talking, "A short note. " * 300, "note.txt")
    talking.refresh_from_db()
    fill_session(talking)
    overrides = {"stages": ["summarize"], "protect": {"kind": "count", "count": 4, "first": 0}}
    run = engine.compact_now(talking.pk, trigger="manual", overrides=overrides)
    assert run.status == "applied", run.reason
    talking.refresh_from_db()
    request = build_next_request(talking)
    text = "\n".join([request.system, request.preface, *(m.content for m in request.messages)])
    assert text.count('- "note.txt" (text/plain, 4,200 bytes, message 1)') == 1
    assert [tool.name for tool in request.tools][-1] == "read_attachment"
    facts = load_session_facts(talking.pk)
    assert facts
    assert facts.sizes.tool_chars == len(serialize_tools(request.tools))
    assert facts.sizes.reference_chars > len("note.txt")
    assert load_usage(talking.pk)["breakdown"]["summary"] > 0


def test_a_file_that_is_shown_in_part_can_be_read_on(
    talking: Session, scripted: ScriptedModel, api: APIClient
) -> None:
    text = "\n".join(f"Clause {number} of the long contract." for number in range(2_000))
    send_file(api, talking, text, "long.txt")
    call = list_chat_calls(scripted)[-1].json
    assert "characters of this file are left out" in json_text(call)
    assert "read_attachment" in [tool["function"]["name"] for tool in call["tools"]]
    assert "Clause 1999 of" not in json_text(call)
    assert "Clause 1999 of" in read(talking, name="long.txt", offset=len(text) - 200)


def test_before_a_compaction_nothing_is_named_and_no_tool_is_there(
    talking: Session, api: APIClient
) -> None:
    send_file(api, talking, CONTRACT, "contract.txt")
    request = build_next_request(talking)
    assert "read_attachment" not in [tool.name for tool in request.tools]
    assert "attached to earlier messages" not in request.system


def test_a_model_without_tools_reads_the_names_alone(
    talking: Session, api: APIClient, model: AiModel, scripted: ScriptedModel
) -> None:
    AiModel.objects.filter(pk=model.pk).update(supports_tools=False)
    send_file(api, talking, CONTRACT, "contract.txt")
    compact(api, talking)
    say(api, talking, [], "And now?")
    body = list_chat_calls(scripted)[-1].json
    assert find_names(body) == ["contract.txt"]
    assert "tools" not in body
    assert "read_attachment" not in str(body)


def test_a_deleted_message_is_neither_named_nor_readable(
    talking: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    send_file(api, talking, CONTRACT, "contract.txt")
    send_file(api, talking, "Wine, bread, salt.", "list.txt")
    compact(api, talking)
    first = Message.objects.get(session=talking, seq=1)
    assert api.delete(f"/api/v1/messages/{first.pk}").status_code == 204
    say(api, talking, [], "And now?")
    assert "contract.txt" not in read_system_text(list_chat_calls(scripted)[-1])
    assert "There is no file 'contract.txt'" in read(talking, name="contract.txt")
    assert "Penalty" not in read(talking, name="contract.txt")


def test_files_of_others_and_of_edited_messages_are_not_read(
    talking: Session, api: APIClient
) -> None:
    send_file(api, talking, CONTRACT, "contract.txt")
    other = Session.objects.create(owner=talking.owner, model=talking.model)
    assert "There is no file" in read(other, name="contract.txt")
    question = Message.objects.get(session=talking, seq=1)
    Message.objects.filter(session=talking).update(branch=talking.pk, branch_after=0)
    assert "There is no file" in read(talking, name="contract.txt")
    Message.objects.filter(pk=question.pk).update(branch=None, branch_after=None)
    assert read(talking, name="contract.txt").endswith(CONTRACT)


def test_a_fork_reads_its_own_copy(talking: Session, api: APIClient) -> None:
    send_file(api, talking, CONTRACT, "contract.txt")
    compact(api, talking)
    fork = fork_session(talking.messages.get(seq=10))
    talking.delete()
    assert read(fork, name="contract.txt").endswith(CONTRACT)


def test_many_files_are_named_within_bounds_and_the_newest_first(
    talking: Session, api: APIClient
) -> None:
    for number in range(MAX_NAMED + 5):
        talking.attachments.create(
            message=talking.messages.create(seq=number + 1, role="user", content="Look."),
            name=f"{number:03d} {'very ' * 40}long.txt",
            media_type="text/plain",
            size=9,
            text="Nine char",
        )
    Session.objects.filter(pk=talking.pk).update(last_seq=25, message_count=25)
    compact(api, talking, messages=15)
    system = build_next_request(talking).system
    lines = re.findall(r"^- .+$", system, re.MULTILINE)
    assert lines[0].startswith('- "024 very')
    assert lines[-1] == f"- and {25 - (len(lines) - 1)} older ones"
    assert sum(map(len, lines)) < MAX_CHARS + 100
    assert '"000 very' in read(talking)
    named = re.findall(r'^- "(.+)" \(', system, re.MULTILINE)
    assert read(talking, name=named[-1]).endswith("Nine char")


def test_pinned_messages_keep_their_files_and_images_have_no_text(
    talking: Session, api: APIClient
) -> None:
    uploaded = upload(api, talking, build_png(8, 8), "photo.png").json()
    say(api, talking, [uploaded["id"]])
    send_file(api, talking, CONTRACT, "contract.txt")
    pinned = Message.objects.get(session=talking, seq=3)
    assert api.post(f"/api/v1/messages/{pinned.pk}/pin").status_code in (200, 204)
    compact(api, talking)
    request = build_next_request(talking)
    assert '"photo.png" (image/png' in request.system
    assert '- "contract.txt"' not in request.system
    assert "read_attachment" not in [tool.name for tool in request.tools]
    assert "holds no text" in read(talking, name="photo.png")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"name": "contract.txt", "offset": 40_000}, "offset 40,000 is behind its end"),
        ({"name": "contract.txt", "search": "§ 64 "}, "832 euros for part 64."),
        ({"name": " Contract.TXT"}, "§ 1 Penalty"),
        ({"name": "contract.txt", "limit": 10}, "the next begin at offset 10"),
        ({"name": "contract.txt", "message": 2}, "no file 'contract.txt' with message 2"),
        ({}, '"contract.txt" (message 1)'),
    ],
)
def test_the_tool_says_where_and_what_is_wrong(
    talking: Session, api: APIClient, arguments: dict[str, Any], expected: str
) -> None:
    send_file(api, talking, CONTRACT, "contract.txt")
    assert expected in read(talking, **arguments)


@pytest.mark.parametrize("policy", PRESETS)
def test_a_long_file_comes_in_parts_that_no_policy_cuts(
    talking: Session, api: APIClient, model: AiModel, scripted: ScriptedModel, policy: str
) -> None:
    use_policy(talking, policy)
    AiModel.objects.filter(pk=model.pk).update(context_window_size=200_000)
    long_text = "\n".join(f"Line {number} of a long protocol." for number in range(4_000))
    send_file(api, talking, long_text, "protocol.txt")
    scripted.script(Reply(tool_calls=[make_tool_call("read_attachment", {"name": "protocol.txt"})]))
    say(api, talking, [], "Read it.")
    result = Message.objects.get(session=talking, role="tool")
    assert result.original_chars is None
    assert len(result.content) <= 30_000
    heading, _, part = result.content.partition("\n")
    offset = int(heading.split("at offset ")[1].removesuffix(".]"))
    assert long_text[:offset] == part
