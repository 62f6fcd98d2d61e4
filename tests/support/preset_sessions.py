"""Sessions under the presets for the conformance tests, with tools and both protocols."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from chatcore.models import Session
from chatcore.providers.base import ToolCall
from chatcore.tools import registry as tool_registry
from chatcore.tools.base import BuiltInTool
from compaction.core.presets import PRESETS
from compaction.models import CompactionPolicy, CompactionRun
from compaction.sessions import request_size, session_context
from compaction.summaries.templates import SUMMARY_TEMPLATES
from compaction.systems.kit.settings import WritingKnobs
from compaction.systems.lota.settings import DeltaKnobs
from models_registry.models import AiModel
from tests.support.compaction_sessions import read_message_texts, read_system_text, use_anthropic
from tests.support.scripted_model import Received, ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

PROTOCOLS = ("openai", "anthropic")


def set_policy(
    session: Session, policy: str, scripted: ScriptedModel, protocol: str, **model: Any
) -> Session:
    """Set the session's policy, its model's fields and its provider's protocol."""
    assert session.model is not None
    AiModel.objects.filter(pk=session.model.pk).update(**model)
    if protocol == "anthropic":
        use_anthropic(session, scripted)
    Session.objects.filter(pk=session.pk).update(
        policy=policy, system_prompt="You are the soul of this machine." * 20
    )
    session.refresh_from_db()
    return session


def create_policy(base: str, **overrides: Any) -> str:
    """Create a policy from a preset and some overrides, and return its name."""
    CompactionPolicy.objects.create(name=f"{base}-here", base=base, overrides=overrides)
    return f"{base}-here"


def register_tool(monkeypatch: Any, name: str, characters: int) -> None:
    """Register a built-in tool whose results have that many characters and name their `id`."""

    def run(arguments: dict[str, Any], _: Any) -> str:
        head = f"<{name} {arguments['id']}> "
        return (head + "lorem ipsum dolor sit amet " * characters)[:characters]

    parameters = {
        "type": "object",
        "properties": {"id": {"type": "integer"}},
        "required": ["id"],
        "additionalProperties": False,
    }
    monkeypatch.setitem(
        tool_registry.BUILT_IN_TOOLS,
        name,
        BuiltInTool(name=name, description="Reads one.", parameters=parameters, run=run),
    )


def make_tool_calls(name: str, ids: Iterable[int], **reply: Any) -> Reply:
    """Return a reply that calls a tool once for each id."""
    tool_calls: list[ToolCall] = [
        make_tool_call(name, {"id": each}, id=f"{name}_{each}") for each in ids
    ]
    return Reply(tool_calls=tool_calls, finish="tool_calls", **reply)


def list_tool_results(request: Received) -> list[str]:
    """Return the texts of the tool results in a request of either protocol, in order."""
    results: list[str] = []
    for message in request.json["messages"]:
        if message["role"] == "tool":
            results.append(_join_blocks(message["content"]))
        elif isinstance(message["content"], list):
            results += [
                _join_blocks(block["content"])
                for block in message["content"]
                if block.get("type") == "tool_result"
            ]
    return results


def join_message_texts(request: Received) -> str:
    """Join all texts of a request except the tool results."""
    no_results = [message for message in request.json["messages"] if message["role"] != "tool"]
    return "\n".join(
        [
            read_system_text(request),
            *read_message_texts(replace(request, json={"messages": no_results})),
        ]
    )


def read_last_text(request: Received) -> str:
    """Return the text of the last message that has one."""
    return next(text for text in reversed(read_message_texts(request)) if text)


def list_runs() -> list[tuple[str, str]]:
    """Return trigger and status of every run, the oldest first."""
    return list(CompactionRun.objects.order_by("created_at").values_list("trigger", "status"))


def is_within_budget(session: Session) -> bool:
    """Return True if the next request is under the compaction threshold."""
    now = session_context.load_session_context(session.pk)
    assert now is not None
    assert now.budget is not None
    return not now.budget.is_over(request_size.measure_next_request(now).tokens)


def _join_blocks(content: Any) -> str:
    return (
        content if isinstance(content, str) else "".join(block.get("text", "") for block in content)
    )


def write_summary(policy: str, *, first_item: str = "Alice plans a trip, point 0.") -> str:
    """Write a summary in the form of the preset's template, with a delta if it asks for one."""
    preset = PRESETS[policy]
    headings = SUMMARY_TEMPLATES[preset.get(WritingKnobs).template].headings or ("Facts",)
    items = [first_item]
    items += [f"Alice plans a trip, point {place}." for place in range(1, len(headings))]
    summary = "\n".join(
        f"{heading}:\n- {item}" for heading, item in zip(headings, items, strict=True)
    )
    return summary + (
        '\n\n```json\n{"tasks": {"add": ["Book the flight"]}}\n```'
        if preset.get(DeltaKnobs).state_delta
        else ""
    )
