"""Prepare the next call of a turn's model: how to reach it, and a request that fits."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from chatcore.context import builder, clearing, sent_files
from chatcore.context.compactor import FittedRequest, get_compactor
from chatcore.context.live_messages import load_active_revision
from chatcore.context.recalled import has_block
from chatcore.models import Session, Turn
from chatcore.providers.base import Connection, Request, Tool
from chatcore.providers.errors import ContextOverflow
from chatcore.providers.registry import build_connection
from chatcore.signals import pre_request
from chatcore.tools import registry as tool_registry
from chatcore.turns import client_tools, recall


@dataclass(frozen=True)
class PreparedCall:
    """A request that is ready to be sent; `left_out` numbers the messages that are not in it.

    `left_out_count` is how many of them did not fit; None if the request was not trimmed.
    """

    connection: Connection
    fitted_request: FittedRequest
    left_out: Sequence[int]
    left_out_count: int | None


def build_next_request(session: Session) -> Request:
    """Build the next request of a session, with the tools that its model may call."""
    revision = load_active_revision(session)
    tools = tool_registry.list_session_tools(session, revision)
    return builder.build_request(session, tools=tools, revision=revision)


def prepare_call(turn: Turn) -> PreparedCall:
    """Return how to reach the provider, and the next request, made to fit.

    All of it in one thread, because each change of threads costs as much as a query.
    """
    session = turn.session
    assert session.model is not None
    connection = build_connection(session.model.provider)
    revision = load_active_revision(session)
    if revision.needs_pre_request:
        pre_request.send(None, session=session)
        revision = load_active_revision(session)
    tools: Sequence[Tool] = []
    if session.model.may_call_tools:
        tools = client_tools.list_offered_tools(session, turn, revision)
    request = builder.build_request(session, tools=tools, revision=revision)
    # What most turns do not have takes no part in them.
    if turn.max_tool_calls is not None:
        request = client_tools.forbid_calls_over_limit(turn, request)
    if session.compact_boundary_seq and turn.recalled is None:
        request = recall.bring_back_passages(turn, request)
    if turn.clearing:
        request = clearing.clear_turn_request(turn, request)
    fitted_request = get_compactor().before_request(session, request)
    is_trimmed = fitted_request.context_version is None
    if turn.clearing:
        fitted_request = clearing.record_applied_edits(turn, fitted_request)
    if revision.has_files:
        sent_files.record_sent_files(turn, request, fitted_request.request)
    if turn.recalled and not has_block(fitted_request.request):
        recall.drop_passages(turn)
    if fitted_request.notices:
        turn.add_notices(*fitted_request.notices)
    left_out = list_left_out(request, fitted_request.request)
    sent_request = clearing.keep_own_thoughts(turn, fitted_request.request)
    fitted_request = replace(fitted_request, request=sent_request)
    return PreparedCall(connection, fitted_request, left_out, len(left_out) if is_trimmed else None)


def make_room(turn: Turn, request: Request, error: ContextOverflow) -> bool:
    """Make room after a refusal; what the turn brought back goes in any case."""
    sent_files.forget_sent_files(turn)
    has_made_room = get_compactor().after_overflow(turn.session, request, error)
    return recall.drop_passages(turn) or has_made_room


def list_left_out(whole_request: Request, sent_request: Request) -> list[int]:
    """Return the numbers of the messages of a request that were left out to make it fit."""
    if sent_request.messages is whole_request.messages:
        return []
    sent_seqs = {message.seq for message in sent_request.messages}
    return [
        message.seq
        for message in whole_request.messages
        if message.seq and message.seq not in sent_seqs
    ]
