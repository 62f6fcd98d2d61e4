"""Parse the body of `/v1/chat/completions`.

Nothing is dropped in silence: a field is carried, or refused by its name, or, where the answer is
no other without it, named in the header X-Ignored-Fields.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from django.contrib.auth.models import User

from chatcore.api.params import ParamsField, require_room
from chatcore.base.rest.problems import InvalidFieldError
from chatcore.context.clearing import Clearing
from chatcore.contrib.compat.bodies import Body
from chatcore.contrib.compat.chat_completions.errors import OpenAIProblem
from chatcore.contrib.compat.chat_completions.matching import OnDivergence
from chatcore.contrib.compat.chat_completions.messages import parse_messages
from chatcore.contrib.compat.client_messages import ClientFunction, ClientMessage, build_tools
from chatcore.contrib.compat.content_parts import iterate_objects
from chatcore.contrib.compat.custom_tools import CustomDescription
from chatcore.contrib.compat.known_types import (
    Handling,
    find_handling,
    log_unknown,
    name_unknown_choice,
)
from chatcore.contrib.compat.model_aliases import find_model
from chatcore.contrib.compat.programs import (
    MAX_SESSION_NAME_CHARS,
    SESSION_HEADER,
    Keeping,
    ThreadName,
    find_program,
    name_thread,
)
from chatcore.providers.errors import InvalidParam
from chatcore.providers.openai import PROVIDER
from chatcore.providers.params import list_extra_names
from chatcore.providers.protocols import load_protocol
from chatcore.providers.registry import list_refused_params
from chatcore.tools.mcp.catalog import McpTool
from chatcore.turns.client_tools import CLIENT_FORM
from models_registry.models import AiModel

# Of an answer: whether its request left messages out to fit.
TRIMMED_HEADER = "X-Context-Trimmed"
DIVERGENCE_HEADER = "X-Session-On-Divergence"
# The fields that are read here. The parameters are those of `providers.params`.
OWN_FIELDS = frozenset(
    {
        "model",
        "messages",
        "tools",
        "stream",
        "stream_options",
        "metadata",
        "max_completion_tokens",
    }
)
# The answer is no other without these: they are about OpenAI's accounts, storage and prices.
HARMLESS_FIELDS = frozenset(
    {"user", "safety_identifier", "store", "service_tier", "prompt_cache_retention"}
)
# How a client asks for a search of the provider's servers, beside its tools.
SEARCH_OPTIONS = "web_search_options"
KNOWN_FIELDS = OWN_FIELDS | HARMLESS_FIELDS | PROVIDER.param_names | {SEARCH_OPTIONS}
NOT_CARRIED = (
    "It is not passed on to the provider of this model. An operator can allow that in the"
    " provider's option `params`."
)
TOOL_PARAMS = frozenset({"tool_choice", "parallel_tool_calls"})


class Function(ClientFunction):
    parameters: dict[str, object] | None = None


class CompletionTool(Body):
    type: Literal["function"] = "function"
    function: Function


class CustomTool(Body):
    """A tool that takes a text and no JSON. A grammar stands in an object of its own here."""

    type: Literal["custom"]
    custom: CustomDescription


class AllowedTools(Body):
    """The only tools that are offered to the model, as in responses."""

    mode: Literal["auto", "required"] = "auto"
    tools: list[dict[str, object]]


class AllowedChoice(Body):
    allowed_tools: AllowedTools


class StreamOptions(Body):
    include_usage: bool | None = None


class CompletionBody(Body):
    """The fields of a request besides its messages and its parameters."""

    model: str = ""
    tools: list[dict[str, object]] = []
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()


@dataclass(frozen=True, kw_only=True)
class CompletionRequest:
    """A request for a chat completion.

    `model` is the row of the registry, and `model_name` what the client called it. `params` are in
    the words of the provider's protocol. A `thread` without a name means an answer without memory.
    `ignored_fields` were sent, and nothing comes of them.
    """

    model: AiModel
    model_name: str
    system: str | None
    messages: list[ClientMessage]
    tools: list[dict[str, object]] = field(default_factory=list)
    params: dict[str, object] = field(default_factory=dict)
    stream: bool = False
    include_usage: bool = False
    thread: ThreadName = field(default_factory=ThreadName)
    on_divergence: OnDivergence | None = None
    ignored_fields: tuple[str, ...] = ()
    search_tool: McpTool | None = None  # that runs here

    def put_in(self, thread: ThreadName) -> Self:
        """Return the request as one that is answered in a session of this name."""
        return replace(self, thread=thread)

    @property
    def clearing(self) -> Clearing | None:
        """What is left out of what is sent; this protocol has no words for it."""
        return None


def parse_completion_request(
    user: User, values: Any, headers: Mapping[str, str], keeping: Keeping
) -> CompletionRequest:
    """Return the request of a JSON body.

    Raises the 400 problem that names the field, 404 for an unknown model, and TooLargeProblem.
    """
    body = CompletionBody.parse(values)
    model = get_usable_model(user, body.model)
    system, messages, left_out_parts = parse_messages(values.get("messages"), model)
    definitions, left_out_tools = _parse_tools(body.tools)
    choice, definitions, unknown_choices = _parse_choice(values.get("tool_choice"), definitions)
    tools = build_tools(definitions, model)
    unknown_fields = list_unknown_fields(values, KNOWN_FIELDS, model)
    if not find_program(headers, values):
        refuse_fields(unknown_fields, NOT_CARRIED)
    params = _parse_params(values, model, choice, has_tools=bool(tools))
    return CompletionRequest(
        model=model,
        model_name=body.model,
        system=system,
        messages=messages,
        tools=tools,
        params=params,
        stream=body.stream,
        include_usage=bool(body.stream_options.include_usage),
        thread=name_thread(parse_session_name(values, headers), headers, values, keeping),
        on_divergence=parse_on_divergence(headers),
        ignored_fields=(
            *_list_ignored_fields(values, model),
            *list_refused_params(model, params),
            *leave_out(unknown_fields),
            *left_out_tools,
            *unknown_choices,
            *left_out_parts,
        ),
    )


def _parse_tools(
    tools: Sequence[Mapping[str, object]],
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the definitions of the tools, and the names of what was left out."""
    definitions: list[dict[str, Any]] = []
    left_out: list[str] = []
    for path, tool in iterate_objects(tools, "tools"):
        type = str(tool.get("type") or "function")
        match find_handling("chat_completions.tools", type):
            case Handling.CARRIED:
                function = CompletionTool.parse(tool, path).function
                definitions.append(function.build_definition())
            case Handling.AS_FUNCTION:
                custom = CustomTool.parse(_flatten_grammar(tool), path).custom
                form = {"type": "custom", "name": custom.name}
                definitions.append(custom.build_function() | {CLIENT_FORM: form})
            case _:
                left_out.append(f"tools.{type[:64]}")
    return definitions, left_out


def _parse_choice(
    choice: object, definitions: list[dict[str, Any]]
) -> tuple[object, list[dict[str, Any]], list[str]]:
    """Return the choice of a tool, the tools that are offered, and what was left out.

    Providers of other protocols know no `allowed_tools`, and a model that does not see the other
    tools cannot call them.
    """
    left_out = name_unknown_choice("chat_completions.tool_choice", choice)
    if left_out:
        return None, definitions, [left_out]
    if not isinstance(choice, Mapping):
        return choice, definitions, []
    if choice.get("type") == "custom":
        return {"type": "function", "function": choice.get("custom")}, definitions, []
    if choice.get("type") != "allowed_tools":
        return choice, definitions, []
    allowed = AllowedChoice.parse(choice, "tool_choice").allowed_tools
    functions = [tool.get(str(tool.get("type"))) for tool in allowed.tools]
    names = [each.get("name") for each in functions if isinstance(each, Mapping)]
    return allowed.mode, [each for each in definitions if each["name"] in names], []


def _flatten_grammar(tool: Mapping[str, object]) -> Mapping[str, object]:
    """Return a custom tool with its grammar in the form that responses have."""
    custom = tool.get("custom")
    form = custom.get("format") if isinstance(custom, Mapping) else None
    grammar = form.get("grammar") if isinstance(form, Mapping) else None
    if not (isinstance(custom, Mapping) and isinstance(grammar, Mapping)):
        return tool
    return {**tool, "custom": {**custom, "format": {"type": "grammar", **grammar}}}


def get_usable_model(user: User, name: str | None) -> AiModel:
    """Return the model of this name, of `provider/name` or of an alias, if the user may use it.

    Raises 404 as OpenAI does, which is the same for a model that does not exist.
    """
    if not name:
        raise InvalidFieldError("model", "The name of a model.")
    model = find_model(user.pk, name)
    if model is None:
        raise OpenAIProblem(
            404,
            "model_not_found",
            f"The model `{name[:100]}` does not exist or you do not have access to it.",
        )
    return model


def list_unknown_fields(
    body: Mapping[str, object], known_names: AbstractSet[str], model: AiModel
) -> list[str]:
    """Return the names of the fields that may change the answer and are not carried."""
    names = sorted(body.keys() - known_names - list_extra_names(model.provider))
    # Clients send an empty value for what they leave to the server.
    return [name for name in names if body[name] not in (None, False, 0, "", [], {})]


def refuse_fields(names: Sequence[str], detail: str) -> None:
    """Raise the 400 problem for the first of these fields."""
    if names:
        raise InvalidFieldError(names[0], detail)


def leave_out(names: Sequence[str]) -> Sequence[str]:
    """Return the names of fields of a coding program that are not known, each logged once.

    The user cannot change what such a program sends, and its next version may send more fields.
    """
    for name in names:
        log_unknown("fields", name[:64])
    return names


def build_ignored_header(names: Collection[str]) -> dict[str, str]:
    """Return the header that names what was left out of a request; empty if nothing was."""
    # Names come from clients, and a header is one line.
    names = [re.sub(r"[^\x21-\x7e]", "_", name) for name in names]
    return {"X-Ignored-Fields": ", ".join(dict.fromkeys(names))} if names else {}


def _list_ignored_fields(body: Mapping[str, Any], model: AiModel) -> list[str]:
    params = {name: body[name] for name in PROVIDER.param_names if body.get(name) is not None}
    ignored_params = load_protocol(model.provider.protocol).list_ignored_params(params)
    extra_names = list_extra_names(model.provider)
    has_names = any(
        isinstance(message, Mapping) and message.get("name") for message in body["messages"]
    )
    own_names = HARMLESS_FIELDS | {SEARCH_OPTIONS}
    return sorted(
        {name for name in own_names if body.get(name) is not None} - extra_names
        | set(ignored_params) - extra_names
        | ({"messages.name"} if has_names else set())
    )


def parse_session_name(body: Mapping[str, object], headers: Mapping[str, str]) -> str:
    """Return the session's name from the header, or else from the metadata; empty if none."""
    source = SESSION_HEADER
    name: object = headers.get(SESSION_HEADER)
    metadata = body.get("metadata")
    if not name and isinstance(metadata, Mapping):
        source = "metadata.session_id"
        name = metadata.get("session_id")
    if not name:
        return ""
    if not isinstance(name, str) or len(name) > MAX_SESSION_NAME_CHARS or not name.isprintable():
        raise InvalidFieldError(source, f"A text of at most {MAX_SESSION_NAME_CHARS} characters.")
    return name


def parse_on_divergence(headers: Mapping[str, str]) -> OnDivergence | None:
    """Return what a history that leaves the stored one means; None if the client does not say.

    Raises the 400 problem.
    """
    value = headers.get(DIVERGENCE_HEADER)
    if not value:
        return None
    try:
        return OnDivergence(value.lower())
    except ValueError:
        raise InvalidFieldError(DIVERGENCE_HEADER, "One of edit, append, refuse.") from None


def _parse_params(
    body: Mapping[str, object], model: AiModel, choice: object, *, has_tools: bool
) -> dict[str, object]:
    """Return the parameters for the provider, checked like those of a session."""
    values = {name: value for name, value in body.items() if name != "tool_choice"}
    if choice is not None:
        values["tool_choice"] = choice
    # OpenAI's newer name for the same limit.
    values["max_tokens"] = body.get("max_completion_tokens") or body.get("max_tokens")
    names = PROVIDER.param_names if has_tools else PROVIDER.param_names - TOOL_PARAMS
    extra_names = list_extra_names(model.provider) - names - TOOL_PARAMS
    params = _select_params(values, names)
    params.pop("n", None)  # it can only be 1
    try:
        own_params = load_protocol(model.provider.protocol).translate_params(params)
    except InvalidParam as error:
        raise InvalidFieldError(error.name, error.detail) from None
    all_params = _select_params(values, extra_names) | own_params
    limit = "max_completion_tokens" if body.get("max_completion_tokens") else "max_tokens"
    require_room(all_params, model, max_tokens=limit)
    return all_params


def _select_params(body: Mapping[str, object], names: Collection[str]) -> dict[str, object]:
    return ParamsField().to_internal_value({name: body[name] for name in names if name in body})
