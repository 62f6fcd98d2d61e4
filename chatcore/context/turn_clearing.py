"""What the client of a turn wants left out of its requests, stored with the turn.

Only what is sent is smaller: the messages, and what their session compacts, stay as they are.
"""

from dataclasses import replace
from typing import Any
from uuid import UUID

from chatcore.context.clearing import (
    Clearing,
    clear_request,
    drop_earlier_thoughts,
    list_applied_edits,
)
from chatcore.context.compactor import FittedRequest
from chatcore.models import Turn
from chatcore.providers.base import Request


def store_clearing(turn: Turn, clearing: Clearing | None) -> None:
    """Let the requests of an open turn leave this out from now on; None for nothing.

    A turn whose status has changed meanwhile is left alone.
    """
    turn.clearing = {"edits": clearing.to_json(), "applied": []} if clearing else None
    Turn.objects.filter(pk=turn.pk, status=turn.status).update(clearing=turn.clearing)


def clear_turn_request(turn: Turn, request: Request) -> Request:
    """Return a turn's request without what its client wants left out."""
    if not turn.clearing:
        return request
    assert turn.session.model is not None
    clearing = Clearing.from_json(turn.clearing["edits"])
    return clear_request(turn.session.model, request, clearing)


def keep_own_thoughts(turn: Turn, request: Request) -> Request:
    """Return a turn's request with signed thoughts of this turn only.

    A client that says how many turns keep theirs has its way.
    """
    edits = turn.clearing["edits"] if turn.clearing else {}
    is_chosen = edits.get("kept_thinking_turns") is not None
    return request if is_chosen else drop_earlier_thoughts(request)


def record_applied_edits(turn: Turn, fitted_request: FittedRequest) -> FittedRequest:
    """Store what was left out of a turn's request, for its answer.

    Then the request no longer holds its version of the context, and its size is not that of the
    next one.
    """
    if not turn.clearing:
        return fitted_request
    applied_edits = list_applied_edits(fitted_request.request)
    if turn.clearing["applied"] != applied_edits:
        turn.clearing = {**turn.clearing, "applied": applied_edits}
        Turn.objects.filter(pk=turn.pk).update(clearing=turn.clearing)
    return replace(fitted_request, context_version=None) if applied_edits else fitted_request


def load_applied_edits(turn_id: UUID) -> list[dict[str, Any]]:
    """Return what was left out of the newest request of a turn."""
    clearing = Turn.objects.filter(pk=turn_id).values_list("clearing", flat=True).first()
    return clearing["applied"] if clearing else []
