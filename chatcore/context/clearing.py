"""Leave out old results of tools and old thoughts of a request, as its client asks.

What the client of a turn wants left out is stored with the turn. Only what is sent is smaller: the
messages, and what their session compacts, stay as they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any
from uuid import UUID

from chatcore.context.compactor import FittedRequest, get_compactor
from chatcore.models import Turn
from chatcore.providers.base import ChatMessage, Request, ToolCall
from chatcore.providers.normal_form import clear_thoughts, find_turn, list_thoughtful
from models_registry.models import AiModel

CLEAR_TOOLS, CLEAR_THINKING = "clear_tool_uses_20250919", "clear_thinking_20251015"
CLEARED_RESULT = "[Old tool result content cleared]"


@dataclass(frozen=True, kw_only=True)
class ClearToolsEdit:
    """Leave out the results of all tools but the newest `keep`, from a trigger on.

    The trigger is a number of tokens, or of uses of tools. `cleared_inputs` are the tools whose
    inputs go too; None for all of them.
    """

    trigger_kind: str = "input_tokens"
    trigger: int = 100_000
    keep: int = 3
    clear_at_least: int = 0
    excluded_tools: Sequence[str] = ()
    cleared_inputs: Sequence[str] | None = ()


@dataclass(frozen=True, kw_only=True)
class Clearing:
    """What is left out of requests. `kept_thinking_turns` is None where all thoughts are kept."""

    tools: ClearToolsEdit | None = None
    kept_thinking_turns: int | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Clearing":
        """Return what is stored of one."""
        tools = ClearToolsEdit(**value["tools"]) if value["tools"] else None
        return cls(tools=tools, kept_thinking_turns=value["kept_thinking_turns"])


@dataclass(frozen=True, kw_only=True)
class ClearedRequest(Request):
    """A request after its clearing, and what the answer tells of that.

    `original_tokens` is its estimated size before.
    """

    clearing: Clearing
    applied_edits: Sequence[dict[str, object]] = ()
    original_tokens: int = 0


def clear_request(model: AiModel, request: Request, clearing: Clearing) -> ClearedRequest:
    """Return the request without what the clearing leaves out. Its sizes are estimates."""
    original_tokens = tokens = _estimate(model, request)
    applied_edits = []
    if clearing.kept_thinking_turns is not None:
        thoughtful = list_thoughtful(request.messages)
        count = max(0, len(thoughtful) - clearing.kept_thinking_turns)
        if count:
            request = clear_thoughts(request, thoughtful[:count])
            cleared_tokens, tokens = tokens - _estimate(model, request), _estimate(model, request)
            applied_edits.append(
                {
                    "type": CLEAR_THINKING,
                    "cleared_thinking_turns": count,
                    "cleared_input_tokens": max(0, cleared_tokens),
                }
            )
    if clearing.tools:
        smaller_request, count = _clear_tools(request, clearing.tools, tokens)
        cleared_tokens = tokens - _estimate(model, smaller_request) if count else 0
        if count and cleared_tokens >= clearing.tools.clear_at_least:
            request = smaller_request
            applied_edits.append(
                {
                    "type": CLEAR_TOOLS,
                    "cleared_tool_uses": count,
                    "cleared_input_tokens": max(0, cleared_tokens),
                }
            )
    return ClearedRequest(
        **vars(request),
        clearing=clearing,
        applied_edits=applied_edits,
        original_tokens=original_tokens,
    )


def drop_earlier_thoughts(request: Request) -> Request:
    """Return the request with signed thoughts in the running turn only.

    Newer models bind each thought to everything before it, which a summary, an edit or a deletion
    changes: then the request is refused, and every later one. No model needs those of a turn that
    is over.
    """
    turn_index = find_turn(request.messages)
    thoughtful = list_thoughtful(request.messages)
    return clear_thoughts(request, [index for index in thoughtful if index < turn_index])


def clear_again(model: AiModel | None, request: Request, previous_request: Request) -> Request:
    """Return a request that was built again without what its previous form left out."""
    if model is None or not isinstance(previous_request, ClearedRequest):
        return request
    return clear_request(model, request, previous_request.clearing)


def list_applied_edits(request: Request) -> list[dict[str, object]]:
    """Return what the answer to a request tells of its clearing."""
    return list(request.applied_edits) if isinstance(request, ClearedRequest) else []


def _estimate(model: AiModel, request: Request) -> int:
    return get_compactor().estimate_request(model, request)


def _clear_tools(request: Request, edit: ClearToolsEdit, tokens: int) -> tuple[Request, int]:
    """Return the request with old results replaced, and the number of uses that were cleared."""
    calls = [call for message in request.messages for call in message.tool_calls]
    size = tokens if edit.trigger_kind == "input_tokens" else len(calls)
    if size <= edit.trigger:
        return request, 0
    old_calls = calls[: max(0, len(calls) - edit.keep)]
    is_cleared = [call.name not in edit.excluded_tools for call in old_calls]
    is_cleared += [False] * (len(calls) - len(old_calls))
    messages: list[ChatMessage] = []
    # By id, the newest call so far: some models use the same ids again in each round.
    cleared_ids: dict[str, bool] = {}
    position = count = 0
    for message in request.messages:
        end = position + len(message.tool_calls)
        flags = is_cleared[position:end]
        position = end
        cleared_ids |= {call.id: flag for call, flag in zip(message.tool_calls, flags, strict=True)}
        if any(flags):
            message = _clear_inputs(message, flags, edit)
        elif message.role == "tool" and cleared_ids.get(message.tool_call_id):
            count += message.content != CLEARED_RESULT
            message = replace(
                message, content=CLEARED_RESULT, images=(), files=(), token_estimate=0
            )
        messages.append(message)
    return replace(request, messages=messages), count


def _clear_inputs(message: ChatMessage, flags: Sequence[bool], edit: ClearToolsEdit) -> ChatMessage:
    if edit.cleared_inputs is not None and not edit.cleared_inputs:
        return message
    calls = tuple(
        _clear_input(call, edit) if flag else call
        for call, flag in zip(message.tool_calls, flags, strict=True)
    )
    return replace(message, tool_calls=calls, token_estimate=0)


def _clear_input(call: ToolCall, edit: ClearToolsEdit) -> ToolCall:
    is_chosen = edit.cleared_inputs is None or call.name in edit.cleared_inputs
    return replace(call, arguments="{}") if is_chosen else call


def store_clearing(turn: Turn, clearing: Clearing | None) -> None:
    """Let the requests of an open turn leave this out from now on; None for nothing.

    A turn whose status has changed meanwhile is left alone.
    """
    turn.clearing = {"edits": asdict(clearing), "applied": []} if clearing else None
    Turn.objects.filter(pk=turn.pk, status=turn.status).update(clearing=turn.clearing)


def clear_turn_request(turn: Turn, request: Request) -> Request:
    """Return the request of a turn with a clearing without what its client wants left out."""
    assert turn.clearing is not None
    assert turn.session.model is not None
    clearing = Clearing.from_json(turn.clearing["edits"])
    return clear_request(turn.session.model, request, clearing)


def keep_own_thoughts(turn: Turn, request: Request) -> Request:
    """Return a turn's request with signed thoughts of this turn only.

    A client that says how many turns keep theirs has its way, and so has a server that refuses
    answers without thoughts: its thoughts are not signed, and bound to nothing.
    """
    edits = turn.clearing["edits"] if turn.clearing else {}
    is_chosen = edits.get("kept_thinking_turns") is not None
    if is_chosen or _needs_thoughts(turn.session.model):
        return request
    return drop_earlier_thoughts(request)


def _needs_thoughts(model: AiModel | None) -> bool:
    if model is None:
        return False
    learned = model.provider.list_learned().get(model.name, {}).get("dialect") or {}
    own = model.provider.options.get("dialect") or {}
    return bool({**learned, **own}.get("needs_thoughts"))


def record_applied_edits(turn: Turn, fitted_request: FittedRequest) -> FittedRequest:
    """Store what was left out of a turn's request, for its answer.

    Then the request no longer holds its version of the context, and its size is not that of the
    next one.
    """
    assert turn.clearing is not None
    applied_edits = list_applied_edits(fitted_request.request)
    if turn.clearing["applied"] != applied_edits:
        turn.clearing = {**turn.clearing, "applied": applied_edits}
        Turn.objects.filter(pk=turn.pk).update(clearing=turn.clearing)
    return replace(fitted_request, context_version=None) if applied_edits else fitted_request


def load_applied_edits(turn_id: UUID) -> list[dict[str, object]]:
    """Return what was left out of the newest request of a turn."""
    clearing = Turn.objects.filter(pk=turn_id).values_list("clearing", flat=True).first()
    return clearing["applied"] if clearing else []
