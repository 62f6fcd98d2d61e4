"""Leave out an unanswered message that a provider refuses, so that the chat goes on without it.

A picture that is broken, or a sentence that a filter dislikes, is in every later request too. A
filter may refuse the request, end the answer with nothing said, or cut it, which is no answer. A
request that is refused is tried once more without the messages of turns that were refused before.
If that is answered they stay out of later requests: hidden from the model, unchanged for the
person, who is told. To edit such a message sends it anew.
"""

from collections.abc import Sequence
from dataclasses import replace

from django.db.models import Q

from chatcore.context import revisions
from chatcore.models import Message, Turn
from chatcore.providers.base import ChatMessage, Request
from chatcore.providers.errors import ProviderRejected
from chatcore.turns.prepared_calls import PreparedCall

NOTICE = (
    "The provider refuses what was said with “{excerpt}”. It is left out of what the model sees;"
    " edit that message to send it again, or delete it."
)
_EXCERPT_CHARS = 60


def leave_out_refused(turn: Turn, call: PreparedCall) -> PreparedCall | None:
    """Return the call without earlier messages that were refused; None if there are none.

    The turn's notices name them, as its end shows them. `take_back_notices` removes them again.
    """
    request = call.fitted_request.request
    seqs = _list_refused_seqs(turn, request)
    if not seqs:
        return None
    messages = [message for message in request.messages if message.seq not in seqs]
    # Its size is not that of the session's context, so nobody may count by it.
    fitted_request = replace(
        call.fitted_request, request=replace(request, messages=messages), context_version=None
    )
    _note_messages(turn, seqs)
    return replace(call, fitted_request=fitted_request, left_out=sorted({*call.left_out, *seqs}))


def hide_refused(turn: Turn, refused_call: PreparedCall, answered_call: PreparedCall) -> None:
    """Hide from the model what was left out to be answered."""
    seqs = set(answered_call.left_out) - set(refused_call.left_out)
    revisions.hide_messages(turn.session_id, sorted(seqs))


def take_back_notices(turn: Turn) -> None:
    """Say nothing of messages that were left out in vain."""
    begin = NOTICE.partition("{")[0]
    turn.notices = [notice for notice in turn.notices if not notice.startswith(begin)]
    turn.save(update_fields=["notices"])


def _note_messages(turn: Turn, seqs: Sequence[int]) -> None:
    questions = turn.session.messages.filter(seq__in=seqs, role=Message.Role.USER).order_by("seq")
    for content in questions.values_list("content", flat=True):
        excerpt = " ".join(content.split())[:_EXCERPT_CHARS] or "…"
        turn.notices = [*turn.notices, NOTICE.format(excerpt=excerpt)]
    turn.save(update_fields=["notices"])


def _list_refused_seqs(turn: Turn, request: Request) -> list[int]:
    """Return the numbers of the messages of earlier turns that were refused."""
    earlier_seqs = [
        message.seq for message in _select_earlier(request.messages) if message.seq is not None
    ]
    cut_turns = Message.objects.filter(
        session=turn.session_id, seq__in=earlier_seqs, finish_reason=Message.FinishReason.REFUSAL
    )
    was_refused = Q(turn__status=Turn.Status.FAILED, turn__error__type=ProviderRejected.type)
    refused_messages = Message.objects.filter(
        was_refused | Q(turn__in=cut_turns.values("turn")),
        session=turn.session_id,
        seq__in=earlier_seqs,
    )
    return list(refused_messages.values_list("seq", flat=True))


def _select_earlier(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """Return what stands before the newest question."""
    for index in reversed(range(len(messages))):
        if messages[index].role == "user" and not messages[index].aside:
            return messages[:index]
    return ()
