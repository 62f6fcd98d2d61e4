"""The newest list of a tool such as `todo_write` stands word for word beside a summary."""

import json

import pytest
from rest_framework.test import APIClient

from chatcore.models import Session
from compaction.core.presets import PRESETS
from compaction.runs import engine
from tests.support.frozen_talk import use_policy
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)


def add_plan(session: Session, seq: int, tool: str, task: str) -> str:
    """Write four messages, the first two with a call of the tool. Return its arguments."""
    arguments = json.dumps({"todos": [f"{task} {number}" for number in range(43)]})
    calls = [{"id": f"c{seq}", "name": tool, "arguments": arguments}]
    session.messages.create(seq=seq, role="user", content=f"Plan {task}. " * 900)
    session.messages.create(seq=seq + 1, role="assistant", tool_calls=calls)
    session.messages.create(
        seq=seq + 2, role="tool", tool_call_id=f"c{seq}", tool_name=tool, content="Saved."
    )
    session.messages.create(seq=seq + 3, role="assistant", content="The plan is saved. " * 100)
    Session.objects.filter(pk=session.pk).update(message_count=seq + 3)
    return arguments


def read_request(api: APIClient, session: Session) -> str:
    preview = api.get(f"/api/v1/sessions/{session.pk}/context/preview").json()
    return "\n".join([preview["system"], *(str(each["content"]) for each in preview["messages"])])


@pytest.mark.parametrize("policy", PRESETS)
def test_the_newest_list_stays_and_a_newer_one_replaces_it(
    session: Session, scripted: ScriptedModel, api: APIClient, policy: str
) -> None:
    use_policy(session, policy)
    scripted.default = Reply(text="The user plans a move; the plan is saved.")
    first_list = add_plan(session, 1, "todo_write", "pack")
    session.messages.create(seq=5, role="user", content="And now? " * 2000)
    overrides = {"stages": ["summarize"], "protect": {"kind": "count", "count": 1, "first": 0}}
    run = engine.compact_now(session.pk, trigger="manual", overrides=overrides)
    assert run.status == "applied", run.reason
    assert first_list in read_request(api, session)
    second_list = add_plan(session, 6, "update_plan", "drive")
    session.messages.create(seq=10, role="user", content="And then? " * 2000)
    run = engine.compact_now(session.pk, trigger="manual", overrides=overrides)
    assert run.status == "applied", run.reason
    request = read_request(api, session)
    assert second_list in request
    assert first_list not in request


@pytest.mark.parametrize(
    "tool",
    [
        "mcp__todo__todo_write",
        "functions.update_plan",
        "todo/update_todos",
        "server:Write_Todos",
        "set_todos",
        "TodoWrite",
        "TodoList",
    ],
)
def test_the_tool_of_a_list_is_known_behind_a_server_and_in_any_case(
    session: Session, scripted: ScriptedModel, api: APIClient, tool: str
) -> None:
    scripted.default = Reply(text="The user plans a move; the plan is saved.")
    plan = add_plan(session, 1, tool, "pack")
    # This one only reads the list.
    calls = [{"id": "r", "name": tool, "arguments": " {} "}]
    session.messages.create(seq=5, role="user", content="Show it.")
    session.messages.create(seq=6, role="assistant", tool_calls=calls)
    session.messages.create(seq=7, role="tool", tool_call_id="r", tool_name=tool, content="Here.")
    session.messages.create(seq=8, role="assistant", content="There it is.")
    session.messages.create(seq=9, role="user", content="And now? " * 2000)
    Session.objects.filter(pk=session.pk).update(message_count=9)
    overrides = {"protect": {"kind": "count", "count": 1, "first": 0}}
    run = engine.compact_now(session.pk, trigger="manual", overrides=overrides)
    assert run.status == "applied", run.reason
    assert plan in read_request(api, session)


def test_another_tool_with_the_name_in_its_name_is_none(
    session: Session, scripted: ScriptedModel, api: APIClient
) -> None:
    scripted.default = Reply(text="The user plans a move; the plan is saved.")
    plan = add_plan(session, 1, "undo_todo_write_x", "pack")
    session.messages.create(seq=5, role="user", content="And now? " * 2000)
    overrides = {"protect": {"kind": "count", "count": 1, "first": 0}}
    run = engine.compact_now(session.pk, trigger="manual", overrides=overrides)
    assert run.status == "applied", run.reason
    assert plan not in read_request(api, session)
