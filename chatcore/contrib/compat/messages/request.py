"""Parse the body of `/v1/messages`.

Nothing is dropped in silence: a field is carried, or refused by its name, or, where the answer is
no other without it, named in the header X-Ignored-Fields.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, Self

from django.contrib.auth.models import User
from pydantic import Field

from chatcore.api.params import ParamsField, require_room
from chatcore.base.rest.problems import InvalidFieldError
from chatcore.context.clearing import Clearing
from chatcore.contrib.compat.bodies import Body
from chatcore.contrib.compat.chat_completions.request import (
    CompletionRequest,
    get_usable_model,
    leave_out,
    list_unknown_fields,
    parse_on_divergence,
    parse_session_name,
    refuse_fields,
)
from chatcore.contrib.compat.client_messages import build_tools
from chatcore.contrib.compat.known_types import name_unknown_choice
from chatcore.contrib.compat.messages.context_edits import (
    ContextEdits,
    ContextManagement,
    Summarize,
    drop_unknown_edits,
    sort_edits,
)
from chatcore.contrib.compat.messages.input_messages import parse_input
from chatcore.contrib.compat.messages.request_tools import (
    NamedChoice,
    ToolChoice,
    parse_tools,
)
from chatcore.contrib.compat.messages.threads import ContinuedThread, NewThread, find_thread
from chatcore.contrib.compat.programs import (
    Keeping,
    ThreadName,
    find_program,
    name_thread,
)
from chatcore.providers.anthropic import PROVIDER
from chatcore.providers.base import parse_count
from chatcore.providers.params import get_thinking, list_extra_names
from chatcore.providers.protocols import load_protocol
from chatcore.providers.registry import list_refused_params
from models_registry.models import AiModel

OWN_NAMES = PROVIDER.param_names - {"metadata"}
TRANSLATED_NAMES = frozenset(
    {
        "temperature",
        "top_p",
        "top_k",
        "max_tokens",
        "stop_sequences",
        "tool_choice",
        "output_config",
    }
)
TOOL_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
EFFORTS = {"low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "xhigh"}
# An answer may take at most this part of the window, since clients ask for more than a small model
# has, and nothing would be left of the window for the question.
MAX_WINDOW_SHARE = 2
MIN_BUDGET = 1_024  # tokens of thoughts, as Anthropic wants them at least

SESSION_PREFIX = "session:"  # of a `metadata.user_id` that names a session
# The fields that are read here, besides the parameters.
OWN_FIELDS = frozenset(
    {
        "model",
        "messages",
        "system",
        "tools",
        "stream",
        "metadata",
        "context_management",
        "compaction",
        "thread",
    }
)
# The answer is no other without these: they are about Anthropic's accounts, places and prices.
HARMLESS_FIELDS = frozenset(
    {
        "billing_policy",
        "diagnostics",
        "inference_geo",
        "service_tier",
        "speed",
        "user_profile_id",
        "workspace_id",
    }
)
KNOWN_FIELDS = OWN_FIELDS | HARMLESS_FIELDS | OWN_NAMES
BETA_HEADER = "anthropic-beta"


class AnswerFormat(Body):
    type: Literal["json_schema"]
    json_schema: dict[str, object] = Field(alias="schema")


class OutputConfig(Body):
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: AnswerFormat | None = None


def build_params(
    body: Mapping[str, object], model: AiModel, choice: ToolChoice | None
) -> dict[str, object]:
    """Return the parameters for the provider. Raises the 400 problem that names the field."""
    values = {name: body[name] for name in OWN_NAMES if body.get(name) is not None}
    if "max_tokens" not in values:
        raise InvalidFieldError("max_tokens", "Field required")
    values["tool_choice"] = choice.model_dump(exclude_none=True) if choice else None
    params = ParamsField().to_internal_value(values)
    wanted_tokens = params["max_tokens"]
    params["max_tokens"] = _limit_answer(wanted_tokens, model)
    extra_names = list_extra_names(model.provider) - OWN_NAMES
    extra_values = {name: body[name] for name in extra_names if name in body}
    extra_params = ParamsField().to_internal_value(extra_values)
    if load_protocol(model.provider.protocol).capabilities.has_messages_params:
        metadata = body.get("metadata")
        if isinstance(metadata, Mapping) and isinstance(metadata.get("user_id"), str):
            params["metadata"] = {"user_id": metadata["user_id"]}
    else:
        params = _translate_to_openai(params)
    return _limit_thoughts(extra_params | params, model, wanted_tokens=wanted_tokens)


def list_untranslated(body: Mapping[str, object], model: AiModel) -> list[str]:
    """Return the parameters of which nothing comes with a model of this protocol."""
    if load_protocol(model.provider.protocol).capabilities.has_messages_params:
        return []
    names = OWN_NAMES - TRANSLATED_NAMES - list_extra_names(model.provider)
    return sorted(name for name in names if body.get(name) is not None)


def _limit_answer(max_tokens: int, model: AiModel) -> int:
    """Return how long an answer may get: no longer than the model can write."""
    limits = [max_tokens]
    if model.max_output_tokens:
        limits.append(model.max_output_tokens)
    if model.context_window_size:
        limits.append(max(1, model.context_window_size // MAX_WINDOW_SHARE))
    return min(limits)


def _limit_thoughts(
    params: dict[str, Any], model: AiModel, *, wanted_tokens: int
) -> dict[str, object]:
    """Return the parameters with room beside the thoughts, if the client's own limit has some.

    What the thoughts may take is reduced as much as the limit was. Raises the 400 problem if too
    little is left, or if the budget is the operator's.
    """
    max_tokens = params["max_tokens"]
    thinking = get_thinking(params, model)
    budget = parse_count(thinking.get("budget_tokens")) or 0
    if not max_tokens <= budget < wanted_tokens:
        return params
    budget = budget * max_tokens // wanted_tokens
    if budget < MIN_BUDGET or thinking is not params.get("thinking"):
        detail = f"Thoughts and answer of this model may take {max_tokens} tokens together."
        raise InvalidFieldError("thinking.budget_tokens", detail)
    return {**params, "thinking": {**thinking, "budget_tokens": budget}}


def _translate_to_openai(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters in the words of chat completions."""
    translated_params = {
        name: params[name]
        for name in ("temperature", "top_p", "top_k", "max_tokens")
        if name in params
    }
    if params.get("stop_sequences"):
        translated_params["stop"] = params["stop_sequences"]
    choice = params.get("tool_choice")
    if choice:
        if choice["type"] == "tool":
            function = {"name": choice["name"]}
            translated_params["tool_choice"] = {"type": "function", "function": function}
        elif choice["type"] != "auto":
            translated_params["tool_choice"] = TOOL_CHOICES[choice["type"]]
        if choice.get("disable_parallel_tool_use"):
            translated_params["parallel_tool_calls"] = False
    config = params.get("output_config") or {}
    if config.get("effort"):
        translated_params["reasoning_effort"] = EFFORTS[config["effort"]]
    if config.get("format"):
        schema = {"name": "answer", "schema": config["format"]["schema"], "strict": True}
        translated_params["response_format"] = {"type": "json_schema", "json_schema": schema}
    return translated_params


class MessageBody(Body):
    """The fields of a request besides its messages and most parameters."""

    model: str = ""
    stream: bool = False
    tools: list[dict[str, object]] = []
    tool_choice: ToolChoice | None = None
    output_config: OutputConfig | None = None
    context_management: ContextManagement | None = None
    compaction: Summarize | None = None
    thread: Annotated[NewThread | ContinuedThread, Field(discriminator="type")] | None = None


@dataclass(frozen=True, kw_only=True)
class MessageRequest(CompletionRequest):
    """A request for a message. `system_cache_control` is the mark behind the system text.

    `compaction` is the block that stands for what was said before the messages, and its path;
    `summary` is what it says, once it is found to be right.
    """

    system_cache_control: dict[str, object] | None = None
    edits: ContextEdits = field(default_factory=ContextEdits)
    compaction: tuple[str, Mapping[str, object]] | None = None
    summary: str = ""

    def put_in(self, thread: ThreadName) -> Self:
        """Return the request as one that is answered in a session of this name.

        A session builds its own requests, so the client's marks of the cache have no place in them.
        The provider caches the whole request where the client has marked any part of it.
        """
        request = super().put_in(thread)
        if not load_protocol(self.model.provider.protocol).capabilities.has_cache_marks:
            return request
        marks: list[object] = [self.system_cache_control]
        marks += [message.provider_data.get("cache_control") for message in self.messages]
        marks += [tool.get("cache_control") for tool in self.tools]
        mark = next((mark for mark in reversed(marks) if mark), None)
        params = {"cache_control": mark, **self.params} if mark else self.params
        tools = [
            {name: value for name, value in tool.items() if name != "cache_control"}
            for tool in self.tools
        ]
        return replace(request, params=params, tools=tools)

    @property
    def clearing(self) -> Clearing | None:
        """What is left out of what is sent."""
        return self.edits.clearing


def parse_count_request(
    user: User, body: object, headers: Mapping[str, str], keeping: Keeping
) -> MessageRequest:
    """Return the request of a body whose tokens are to be counted: it asks for no answer."""
    if isinstance(body, Mapping):
        body = {**body, "max_tokens": 1, "stream": False, "thread": None}
    return parse_message_request(user, body, headers, keeping, is_count=True)


def parse_message_request(
    user: User,
    values: Any,
    headers: Mapping[str, str],
    keeping: Keeping,
    *,
    is_count: bool = False,
) -> MessageRequest:
    """Return the request of a JSON body.

    Raises the 400 problem that names the field, 404 for an unknown model, and TooLargeProblem.
    """
    is_program = bool(isinstance(values, Mapping) and find_program(headers, values))
    values, unknown_edits = drop_unknown_edits(values) if is_program else (values, [])
    values, unknown_choices = _drop_unknown_choice(values)
    body = MessageBody.parse(values)
    model = get_usable_model(user, body.model)
    unknown_fields = list_unknown_fields(values, KNOWN_FIELDS, model)
    if not is_program:
        refuse_fields(unknown_fields, "This is not supported here.")
    parsed_input = parse_input(values, model)
    edits = sort_edits(body.context_management, body.compaction)
    if not (parsed_input.messages or parsed_input.compaction or edits.summarize):
        raise InvalidFieldError("messages", "None of the messages has any content.")
    used_tools = parsed_input.used_tools
    if isinstance(body.tool_choice, NamedChoice):
        used_tools.add(body.tool_choice.name)
    definitions, left_out, left_out_names = parse_tools(body.tools, model, used_tools)
    tools = build_tools(definitions, model)
    thread = name_thread(_parse_session_name(values, headers), headers, values, keeping)
    if body.thread:
        held_thread = find_thread(body.thread, user)
        thread = thread if thread.name else ThreadName(name=held_thread.session_name)
        tools = tools or held_thread.tools
    choice = body.tool_choice if tools else None
    if isinstance(choice, NamedChoice) and choice.name in left_out_names:
        choice = None
    params = build_params(values, model, choice)
    if not is_count:
        require_room(params, model)
    request = MessageRequest(
        model=model,
        model_name=body.model,
        system="\n\n".join(parsed_input.system_texts) if parsed_input.system_texts else None,
        system_cache_control=parsed_input.system_cache_control,
        messages=parsed_input.messages,
        tools=tools,
        params=params,
        stream=body.stream,
        thread=ThreadName(program=thread.program, is_beside=thread.is_beside),
        on_divergence=parse_on_divergence(headers),
        ignored_fields=(
            *_list_ignored_fields(values, headers, model),
            *list_refused_params(model, params),
            *leave_out([*unknown_fields, *unknown_edits]),
            *left_out,
            *unknown_choices,
            *parsed_input.left_out,
        ),
        edits=edits,
        compaction=parsed_input.compaction,
    )
    return request.put_in(thread) if thread.name else request


def _drop_unknown_choice(body: Any) -> tuple[Any, list[str]]:
    """Return a body without a choice of a tool whose type is not known, and its name."""
    choice = body.get("tool_choice") if isinstance(body, Mapping) else None
    name = name_unknown_choice("messages.tool_choice", choice)
    return ({**body, "tool_choice": None}, [name]) if name else (body, [])


def _list_ignored_fields(
    body: Mapping[str, object], headers: Mapping[str, str], model: AiModel
) -> list[str]:
    names = {name for name in HARMLESS_FIELDS if body.get(name) is not None}
    if headers.get(BETA_HEADER):
        names.add(BETA_HEADER)
    return sorted(names | set(list_untranslated(body, model)))


def _parse_session_name(body: Mapping[str, object], headers: Mapping[str, str]) -> str:
    """Return the session's name from the header or the metadata; empty if none.

    A client whose types know no other metadata names it in `user_id`, behind `session:`.
    """
    name = parse_session_name(body, headers)
    metadata = body.get("metadata")
    user_id = metadata.get("user_id") if isinstance(metadata, Mapping) else None
    if name or not isinstance(user_id, str) or not user_id.startswith(SESSION_PREFIX):
        return name
    return parse_session_name(
        {"metadata": {"session_id": user_id.removeprefix(SESSION_PREFIX)}}, headers
    )
