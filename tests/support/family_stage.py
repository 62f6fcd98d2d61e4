"""What happens in a chat, played against a server that refuses what its family refuses."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from django.contrib.auth.models import User
from rest_framework.test import APIClient

from chatcore.base.runner import turn_runner
from chatcore.models import Session, Turn
from chatcore.turns import control
from compaction.core.presets import PRESETS
from models_registry.models import AiModel, Provider
from tests.support.compaction_sessions import SUMMARY, fill_session, run_queued_compactions
from tests.support.scripted_model import ScriptedModel, make_overflow, make_tool_call
from tests.support.scripted_wire import Reply
from tests.support.strict_servers import FAMILIES, Family, refuse_unknown_keys
from tests.support.waiting import wait_until

WINDOW = 8192
KIMI = next(family for family in FAMILIES if "Kimi" in family.name)
REFUSAL = "Something is wrong with this request."
FACT = "The code word is slate."
FOREIGN_ID = "call:" + "0" * 60  # in a form that many refuse
TOOL: dict[str, Any] = {
    "name": "weather",
    "description": "The weather now.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}


class Stage:
    """One chat of one person with a model of one family.

    The server gives the replies in their order, then always the same one; `refusals` are all that
    it refused.
    """

    def __init__(self, scripted: ScriptedModel, user: User, api: APIClient, family: Family) -> None:
        self.scripted, self.api, self.family = scripted, api, family
        self.replies: deque[Reply] = deque()
        self.refusals: list[str] = []
        scripted.default = self._answer
        self.model = self._create_model(family)
        self.session = Session.objects.create(owner=user, model=self.model)

    def reply(self, *replies: Reply) -> None:
        """Queue replies."""
        self.replies.extend(replies)

    def ask(self, text: str) -> Turn:
        """Run a turn to its end."""
        self.session.refresh_from_db()
        turn = control.start_turn(self.session, content=text)
        turn_runner.drain(60)
        return control.wait_for_turn(turn.pk, timeout=60)

    def ask_well(self, text: str) -> None:
        """Run a turn, which must be answered."""
        turn = self.ask(text)
        assert turn.status == Turn.Status.COMPLETED, turn.error

    def call_tool(self) -> Reply:
        """Return a reply that thinks and calls a tool, in the form of this family."""
        has_own_fields = refuse_unknown_keys in self.family.rules
        return Reply(
            reasoning="" if has_own_fields else "I should reckon.",
            tool_calls=[
                make_tool_call("calculate", {"expression": "1 + 1"}, id="call:" + "0" * 60)
            ],
        )

    def move_to(self, family: Family) -> None:
        """Let the chat go on with a model of another family, on another server."""
        self.family = family
        Session.objects.filter(pk=self.session.pk).update(model=self._create_model(family))

    def check(self) -> None:
        """Fail if the server refused anything but tools of a model that knows none."""
        unexpected = [text for text in self.refusals if "support tools" not in text]
        assert not unexpected, unexpected

    def _create_model(self, family: Family) -> AiModel:
        base_url = self.scripted.base_url
        if family.protocol == "anthropic":
            base_url = self.scripted.anthropic_base_url
        provider = Provider.objects.create(
            name=f"family-{Provider.objects.count()}",
            protocol=family.protocol,
            base_url=base_url,
            timeout_seconds=20,
        )
        return AiModel.objects.create(
            provider=provider, name=family.model, context_window_size=WINDOW, max_output_tokens=1024
        )

    def _answer(self, body: dict[str, Any]) -> Reply:
        refusals = self.family.find_refusals(body)
        if refusals:
            self.refusals += refusals
            return Reply(status=400, text=refusals[0])
        if "<transcript>" in str(body["messages"]):
            return Reply(text=f"{SUMMARY} {FACT}" if FACT in str(body["messages"]) else SUMMARY)
        return self.replies.popleft() if self.replies else Reply(text="Fine.")


TOOLS, BROKEN_LOOP = "two rounds of tools", "a loop of tools that broke off"
MOVED = "moved here from another family"
Situation = Callable[[Stage], None]


def play_first_answer(stage: Stage) -> None:
    stage.ask_well("Hello.")


def play_tools(stage: Stage) -> None:
    stage.reply(stage.call_tool(), stage.call_tool(), Reply(text="Two."))
    stage.ask_well("What is 1 + 1?")


def play_stopped(stage: Stage) -> None:
    count = len(stage.scripted.requests)
    stage.reply(Reply(text="Well, let me see.", cut_after=1, hang=True))
    turn = control.start_turn(stage.session, content="Tell me a story.")
    wait_until(lambda: len(stage.scripted.requests) > count and not stage.replies)
    assert stage.api.post(f"/api/v1/sessions/{stage.session.pk}/cancel").status_code < 300
    assert control.wait_for_turn(turn.pk, timeout=60).status == Turn.Status.CANCELLED


def play_refused_once(stage: Stage) -> None:
    stage.ask_well("Hello.")
    stage.reply(Reply(status=400, text=REFUSAL))
    assert stage.ask("Refuse this.").status == Turn.Status.FAILED


def play_broken_loop(stage: Stage) -> None:
    stage.reply(stage.call_tool(), Reply(status=400, text=REFUSAL))
    assert stage.ask("What is 1 + 1?").status == Turn.Status.FAILED


def play_moved_here(stage: Stage) -> None:
    family = stage.family
    stage.move_to(KIMI)
    stage.reply(stage.call_tool(), Reply(text="Two."))
    stage.ask_well("What is 1 + 1?")
    stage.move_to(family)


def play_too_long(stage: Stage) -> None:
    fill_session(stage.session, messages=6, tokens=400)
    stage.ask_well("Hello.")
    stage.reply(make_overflow())
    stage.ask_well("And more?")


def play_cut(stage: Stage) -> None:
    stage.reply(Reply(text="Half an", finish="length"))
    stage.ask_well("Tell me a story.")


def play_throttled(stage: Stage) -> None:
    stage.reply(Reply(status=429, headers={"Retry-After": "0.01"}))
    stage.ask_well("Hello.")


def play_chat_completions(stage: Stage) -> None:
    tool = {"type": "function", "function": TOOL}
    body = {"model": _name_model(stage), "tools": [tool] if stage.family.knows_tools else []}
    _reply_with_weather(stage)
    history: list[dict[str, Any]] = [{"role": "user", "content": "The weather?"}]
    for _ in range(2):
        answer = _post(stage, "/v1/chat/completions", body | {"messages": history})
        message = answer["choices"][0]["message"]
        results = [
            {"role": "tool", "tool_call_id": call["id"], "content": "Sun."}
            for call in message.get("tool_calls") or ()
        ]
        history += [message, *(results or [{"role": "user", "content": "And now?"}])]


def play_messages(stage: Stage) -> None:
    tool = {"name": TOOL["name"], "input_schema": TOOL["parameters"]}
    body = {"model": _name_model(stage), "max_tokens": 99}
    body["tools"] = [tool] if stage.family.knows_tools else []
    _reply_with_weather(stage)
    history: list[dict[str, Any]] = [{"role": "user", "content": "The weather?"}]
    for _ in range(2):
        content = _post(stage, "/v1/messages", body | {"messages": history})["content"]
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": "Sun."}
            for block in content
            if block["type"] == "tool_use"
        ]
        history += [
            {"role": "assistant", "content": content},
            {"role": "user", "content": results or "And now?"},
        ]


def play_responses(stage: Stage) -> None:
    tool = {"type": "function", "strict": False} | TOOL
    body = {"model": _name_model(stage), "store": False, "include": ["reasoning.encrypted_content"]}
    body["tools"] = [tool] if stage.family.knows_tools else []
    _reply_with_weather(stage)
    history: list[dict[str, Any]] = [{"role": "user", "content": "The weather?"}]
    for _ in range(2):
        output = _post(stage, "/v1/responses", body | {"input": history})["output"]
        results = [
            {"type": "function_call_output", "call_id": item["call_id"], "output": "Sun."}
            for item in output
            if item["type"] == "function_call"
        ]
        history += [*output, *(results or [{"role": "user", "content": "And now?"}])]


def play_long_chat(stage: Stage, families: Sequence[Family], turns: int) -> None:
    """Let a chat with tools wander through families, and be compacted on its way."""
    for number in range(turns):
        stage.move_to(families[number % len(families)])
        stage.reply(stage.call_tool(), Reply(text=f"Answer {number}. " + "Lisbon again. " * 90))
        question = FACT if number == 0 else f"Question {number}. " + "And Porto? " * 90
        stage.ask_well(question)
        run_queued_compactions()


def _name_model(stage: Stage) -> str:
    return str(stage.model)


def _reply_with_weather(stage: Stage) -> None:
    if stage.family.knows_tools:
        call = stage.call_tool()
        weather = make_tool_call("weather", {"city": "Rome"}, id=call.tool_calls[0].id)
        stage.reply(Reply(reasoning=call.reasoning, tool_calls=[weather]))


def _post(stage: Stage, path: str, body: dict[str, Any]) -> Any:
    response = stage.api.post(path, body, format="json")
    assert response.status_code == 200, response.content
    return response.json()


def _build_compaction(policy: str) -> Situation:
    def play_compaction(stage: Stage) -> None:
        Session.objects.filter(pk=stage.session.pk).update(policy=policy)
        fill_session(stage.session)
        stage.ask_well("And the flight?")
        run_queued_compactions()
        stage.session.refresh_from_db()
        stage.ask_well("And the hotel?")

    return play_compaction


SITUATIONS: dict[str, Situation] = {
    "first answer": play_first_answer,
    TOOLS: play_tools,
    "stopped": play_stopped,
    "refused once": play_refused_once,
    BROKEN_LOOP: play_broken_loop,
    **{f"compaction, {policy}": _build_compaction(policy) for policy in PRESETS},
    MOVED: play_moved_here,
    "too long": play_too_long,
    "cut": play_cut,
    "throttled": play_throttled,
    "chat completions": play_chat_completions,
    "Messages": play_messages,
    "Responses": play_responses,
}
NEED_TOOLS = (TOOLS, BROKEN_LOOP)


def play(stage: Stage, situation: str) -> None:
    """Play a situation; the message after it must be answered too, and nothing be refused."""
    if situation in NEED_TOOLS and not stage.family.knows_tools:
        return
    SITUATIONS[situation](stage)
    stage.ask_well("And now?")
    stage.check()
