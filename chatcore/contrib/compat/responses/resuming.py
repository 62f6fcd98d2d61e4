"""Continue a turn that waits: with outputs of its client's tools, and with a person's word."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from chatcore.base.rest.problems import InvalidFieldError
from chatcore.contrib.compat.chat_completions.client_summaries import announce_summary
from chatcore.contrib.compat.client_messages import ClientMessage
from chatcore.contrib.compat.responses import history, ids
from chatcore.contrib.compat.responses.input_items import InputApproval
from chatcore.contrib.compat.responses.mcp import items as mcp_items
from chatcore.contrib.compat.responses.origins import Origin
from chatcore.contrib.compat.responses.request import ResponseRequest
from chatcore.models import Session, ToolApproval, Turn
from chatcore.sessions.tool_calls import find_calling_message
from chatcore.turns import client_tools, control, lifecycle, waiting
from chatcore.turns.waiting import Approval

UNKNOWN_APPROVAL_DETAIL = "No call waits for this approval."
APPROVAL_ALONE_DETAIL = "A call that is allowed runs first: send what follows after its response."


@dataclass(frozen=True, kw_only=True)
class ResumedTurn:
    """A turn that goes on, and the numbers of a message and an event before its output."""

    turn: Turn
    after_seq: int
    after_event_seq: int


def resume_turn(request: ResponseRequest, origin: Origin, session: Session) -> ResumedTurn | Origin:
    """Continue the turn that waits for this input.

    If there is none, or the user says something else already, returns what the rest of the input
    continues. Raises the 400 problem if a part of what the turn waits for is missing.
    """
    results = list(takewhile(lambda message: message.role == "tool", origin.messages))
    words = list_open_approvals(request)
    turn = session.turns.filter(status=Turn.Status.WAITING).first()
    if turn is None or not (results or words):
        return origin
    if origin.previous is not None and origin.previous.turn_id != turn.pk:
        return origin
    open_calls = waiting.find_open_calls(turn)
    pending_ids = {call.id for call in open_calls.client_calls}
    if not words and pending_ids.isdisjoint(message.call_id for message in results):
        return origin
    _refuse_missing_results(pending_ids, results)
    decisions = _match_approvals(turn, words, {call.id for call in open_calls.undecided_calls})
    client_results = [
        client_tools.ClientToolResult(tool_call_id=message.call_id, content=message.content)
        for message in results
    ]
    if len(results) < len(origin.messages):
        if any(word.is_allowed for word in words):
            raise InvalidFieldError("input", APPROVAL_ALONE_DETAIL)
        _end_with_results(turn, [*client_results, *_build_refusals(decisions)])
        request.input.approvals.clear()
        is_known = origin.previous is None or bool(origin.key)
        return replace(
            origin,
            messages=origin.messages[len(results) :],
            head_seq=None,
            key=history.extend_key(origin.key, results) if is_known else "",
        )
    after_seq = Session.objects.values_list("last_seq", flat=True).get(pk=session.pk)
    if origin.client_summary:
        locked_session = Session.objects.lock(session.pk)
        announce_summary(locked_session, origin.client_summary, after_seq=after_seq)
    if client_results:
        turn, after_event_seq = control.submit_tool_results(session, client_results)
    if decisions:
        turn, after_event_seq = control.submit_approvals(session, decisions)
    client_tools.extend_tools(turn, request.tools)
    return ResumedTurn(turn=turn, after_seq=after_seq, after_event_seq=after_event_seq)


def list_open_approvals(request: ResponseRequest) -> list[InputApproval]:
    """Return the words on calls that have no result in the input; a whole history has old ones."""
    result_ids = {message.call_id for message in request.input.messages if message.role == "tool"}
    return [word for word in request.input.approvals if word.request_id not in result_ids]


def refuse_open_approvals(request: ResponseRequest) -> None:
    """Raise the 400 problem for a word on a call that does not wait."""
    for word in list_open_approvals(request):
        raise InvalidFieldError(word.path, UNKNOWN_APPROVAL_DETAIL)


def describe_approvals(request: ResponseRequest) -> list[dict[str, object]]:
    """Return the words of a request as items of its input, without their ids."""
    return [
        {
            "type": "mcp_approval_response",
            "approval_request_id": word.request_id,
            "approve": word.is_allowed,
            "reason": word.reason or None,
        }
        for word in list_open_approvals(request)
    ]


def _refuse_missing_results(pending_ids: set[str], results: Sequence[ClientMessage]) -> None:
    missing_ids = sorted(pending_ids - {message.call_id for message in results})
    if missing_ids:
        detail = f"No tool output found for function call {missing_ids[0]}."
        raise InvalidFieldError("input", detail)


def _match_approvals(
    turn: Turn, words: Sequence[InputApproval], undecided_ids: set[str]
) -> list[Approval]:
    """Return what a person said of the calls that wait for it. Raises the 400 problem."""
    message = find_calling_message(turn)
    calls = mcp_items.load_server_calls(message) if message else []
    call_ids = {ids.build_approval_id(call.stem, call.index): call.call.id for call in calls}
    decisions = []
    for word in words:
        call_id = call_ids.get(word.request_id)
        if call_id is None:
            raise InvalidFieldError(word.path, UNKNOWN_APPROVAL_DETAIL)
        kind = ToolApproval.Decision.ONCE if word.is_allowed else ToolApproval.Decision.DENY
        decisions.append(Approval(tool_call_id=call_id, decision=kind))
    missing_ids = undecided_ids - {decision.tool_call_id for decision in decisions}
    for request_id, call_id in call_ids.items():
        if call_id in missing_ids:
            detail = f"No approval response found for approval request {request_id}."
            raise InvalidFieldError("input", detail)
    return decisions


def _build_refusals(decisions: Sequence[Approval]) -> list[client_tools.ClientToolResult]:
    return [
        client_tools.ClientToolResult(
            tool_call_id=decision.tool_call_id,
            content=waiting.REFUSAL.content,
            is_error=waiting.REFUSAL.is_error,
        )
        for decision in decisions
    ]


def _end_with_results(turn: Turn, results: Sequence[client_tools.ClientToolResult]) -> None:
    """Store the results of a waiting turn and end it: the user says something else already."""
    locked_turn = Turn.objects.select_for_update().get(pk=turn.pk)
    with client_tools.put_outputs_away(turn.session, results) as outputs:
        client_tools.accept_results(locked_turn, results, outputs)
    lifecycle.end_turn(locked_turn, Turn.Status.CANCELLED)
