"""What a turn does when a provider refuses its call: send less, leave out, and learn from it.

For its length: the policy makes room first, as it would have done before. Whatever it leaves, and
where it does nothing or the window is unknown, the oldest messages are left out of the request, and
more of them each time, at most four times. A refusal that says nothing known may be about the
length of a large request: one smaller try tells. What was learned is kept only if the smaller
request was answered.

For a message: a picture that is broken, or a sentence that a filter dislikes, is in every later
request too. A filter may refuse the request, end the answer with nothing said, or cut it, which is
no answer. A request that is refused is tried once more without the messages of turns that were
refused before. If that is answered they stay out of later requests: hidden from the model,
unchanged for the person, who is told. To edit such a message sends it anew.

For what a model cannot do: that is stored, and the turn goes on without it if nobody needs it.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from django.db.models import Q

from chatcore.context import revisions
from chatcore.context.compactor import get_compactor
from chatcore.models import Message, Turn
from chatcore.providers import overflow
from chatcore.providers.base import Request, StreamEnd
from chatcore.providers.errors import (
    ContextOverflow,
    ImagesRefused,
    ProviderError,
    ProviderRejected,
    ProviderUnavailable,
    ToolsRefused,
)
from chatcore.providers.normal_form import find_turn
from chatcore.turns import client_tools
from chatcore.turns.prepared_calls import PreparedCall, list_left_out, make_room, prepare_call
from models_registry.models import AiModel

logger = logging.getLogger(__name__)

COMPACTION_IS_OFF = (
    "Automatic compaction is switched off in this session: compact it, or switch it on."
)
MAX_TRIES = 4
# Of the last refused request: a half, and then quarters.
FIRST_SHARE = 2
NEXT_SHARE = 4
# Of the window that a refusal names; an estimate may be too small.
NAMED_SHARE = 0.9
# How many times more than the refused request, by our own count, a window may be.
DOUBT = 1.3
# Statuses of breakdowns, after which a smaller request may have passed by chance.
_BREAKDOWN_STATUS = 500

NOTICE = (
    "The provider refuses what was said with “{excerpt}”. It is left out of what the model sees;"
    " edit that message to send it again, or delete it."
)
_EXCERPT_CHARS = 60

WHERE_TO_CHANGE_IMAGES = (
    "If it does see images, an operator changes that in the admin: Language models, the field"
    " Supports images."
)


def is_refusal_for_length(error: ProviderError) -> bool:
    """Return whether an error is an overflow, or may be one."""
    return isinstance(error, ContextOverflow) or error.may_be_overflow


def refuse_silence(request: Request, end: StreamEnd) -> None:
    """Raise the error of an answer without a word that may be a full window.

    Some servers end before the first token then, or say nothing at all.
    """
    error = explain_silence(request, end)
    if not end.tool_calls and error.may_be_overflow:
        raise error


def explain_silence(request: Request, end: StreamEnd) -> ProviderError:
    """Return the error of an answer without a word."""
    if end.reason == "refusal":
        return ProviderRejected("The model declined to answer.")
    explanation = "The model answered nothing."
    if end.reason == "length":
        explanation = "The model reached its output limit before it began to answer."
    error = ProviderUnavailable(explanation)
    has_written = end.usage is not None and end.usage.output > 1
    is_large = overflow.measure_request(request).tokens >= overflow.MIN_SUSPECT_TOKENS
    error.may_be_overflow = is_large and not has_written
    return error


@dataclass
class OverflowTries:
    """The refused requests of one answer.

    `sizes` are their estimated tokens, `window` is what the last refusal named.
    """

    sizes: list[int] = field(default_factory=list)
    window: int | None = None
    guessed_from: ProviderError | None = None
    is_counted: bool = False
    earlier_count: int = 0

    def settle(self) -> None:
        """Note that a request was answered: the next one of the turn begins anew, but its tries
        count together with those before.
        """
        self.earlier_count += len(self.sizes)
        self.sizes, self.window, self.guessed_from = [], None, None

    def note_refusal(self, size: int, error: ProviderError) -> None:
        """Note a refused request. Raises the error if it is not worth another try."""
        self.sizes.append(size)
        if isinstance(error, ContextOverflow):
            self.window = error.window
            self.is_counted = error.tokens is not None and error.tokens > (error.window or 0)
            # It was no guess after all.
            self.guessed_from = None
        elif self.guessed_from:
            raise self.guessed_from
        else:
            self.guessed_from = error
        if len(self.sizes) + self.earlier_count >= MAX_TRIES:
            raise self.build_final_error(error)

    def choose_limit(self) -> int:
        """Return how many tokens the next request may have."""
        share = FIRST_SHARE if len(self.sizes) == 1 else NEXT_SHARE
        limit = self.sizes[-1] // share
        # Only the first number is believed: some name more than they take.
        if self.window and len(self.sizes) == 1 and self.window < self.sizes[0]:
            limit = int(self.window * NAMED_SHARE)
        return limit

    def build_final_error(self, error: ProviderError, remains: str = "") -> ProviderError:
        """Return the error that says what was tried."""
        if self.guessed_from:
            return self.guessed_from
        detail = error.detail
        if len(self.sizes) > 1:
            tried = ", ".join(f"{size:,}" for size in self.sizes)
            detail = f"{detail} Requests of about {tried} tokens were tried."
        return ContextOverflow(
            " ".join(part for part in (detail, remains) if part),
            tokens=getattr(error, "tokens", None),
            window=getattr(error, "window", None),
        )

    def keep_window(self, model: AiModel, request: Request) -> None:
        """Store the window that the refusals have shown, after `request` was answered."""
        if not self.sizes:
            return
        # A number above what was refused is no number, unless the provider counts far more tokens.
        is_named = (
            self.window is not None
            and len(self.sizes) == 1
            and (self.is_counted or self.window < self.sizes[0] * DOUBT)
        )
        if self.window and self.window == model.max_input_tokens:
            return  # the registry knows it, and it is not the window
        size = get_compactor().estimate_request(model, request)
        window = self.window if is_named else max(size, self.sizes[-1] // FIRST_SHARE)
        is_known = model.request_limit is not None
        if self.guessed_from and (is_known or _is_breakdown(self.guessed_from)):
            return
        # A known window is doubted only where a number says so, or the first smaller try failed.
        if window and (is_named or not is_known or len(self.sizes) > 1):
            get_compactor().learn_from_answer(model, request, window=window)


def make_smaller_call(
    turn: Turn, call: PreparedCall, error: ProviderError, tries: OverflowTries
) -> PreparedCall:
    """Return the next call after a refusal. Raises the error that ends the turn if there is none.

    It may pay a model for a summary.
    """
    model = turn.session.model
    assert model is not None
    request = call.fitted_request.request
    size = get_compactor().estimate_request(model, request)
    if not turn.session.auto_compact:
        # Nothing that was said is left out unasked. What the turn has brought back itself goes.
        next_call = _ask_policy(turn, call, error) if isinstance(error, ContextOverflow) else None
        if next_call is None:
            if isinstance(error, ContextOverflow):
                error.detail = f"{error.detail} {COMPACTION_IS_OFF}"
            raise error
        tries.note_refusal(size, error)
        return next_call
    tries.note_refusal(size, error)
    next_call = None
    if isinstance(error, ContextOverflow) and len(tries.sizes) == 1:
        next_call = _ask_policy(turn, call, error)
    if next_call is not None:
        next_size = get_compactor().estimate_request(model, next_call.fitted_request.request)
        if next_size < size:
            return next_call
    shorter_request = get_compactor().shorten_request(
        model, request, limit_tokens=tries.choose_limit()
    )
    if shorter_request is None:
        raise tries.build_final_error(error, describe_what_remains(model, request))
    turn.add_notices(*shorter_request.notices)
    left_out = [*call.left_out, *list_left_out(request, shorter_request.request)]
    return replace(
        call,
        fitted_request=shorter_request,
        left_out=left_out,
        left_out_count=len(left_out),
    )


def _ask_policy(turn: Turn, call: PreparedCall, error: ContextOverflow) -> PreparedCall | None:
    """Return the call after the policy has made room; None if it has made none."""
    if not make_room(turn, call.fitted_request.request, error):
        return None
    try:
        return prepare_call(turn)
    except ContextOverflow as refusal:
        logger.info("the policy refuses the request: %s", refusal.detail)
        return None


def describe_what_remains(model: AiModel, request: Request) -> str:
    """Return a sentence with the sizes of what cannot be left out of a request."""
    compactor = get_compactor()
    empty = replace(request, messages=(), tools=(), system="", preface="")
    parts = {
        "the system prompt": replace(empty, system=request.system, preface=request.preface),
        "the tools": replace(empty, tools=request.tools),
        "the newest message": replace(empty, messages=request.messages[-1:]),
    }
    base = compactor.estimate_request(model, empty)
    sizes = {name: compactor.estimate_request(model, part) - base for name, part in parts.items()}
    told = [f"{name} (about {size:,} tokens)" for name, size in sizes.items() if size > 0]
    return f"What cannot be left out: {', '.join(told)}." if told else ""


def _is_breakdown(error: ProviderError) -> bool:
    return error.refused_status >= _BREAKDOWN_STATUS


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
        message.seq
        for message in request.messages[: max(0, find_turn(request.messages))]
        if message.seq is not None
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


def learn(turn: Turn, error: ToolsRefused | ImagesRefused) -> None:
    """Store what the model cannot do; the turn goes on without it if nobody needs it.

    Raises the error, with where to change it, where the client's tools were refused, or where an
    operator has said that the model can do it.
    """
    model = turn.session.model
    assert model is not None
    is_learned = model.note_refused(_name_ability(error))
    if isinstance(error, ImagesRefused):
        if not is_learned:
            raise ImagesRefused(f"{error.detail} {WHERE_TO_CHANGE_IMAGES}") from None
        # Images become a sentence from now on, and the turn says so once.
        notice = f"The language model {model} sees no images. {WHERE_TO_CHANGE_IMAGES}"
        turn.add_notices(notice)
    elif not is_learned or turn.tools:
        raise ToolsRefused(f"{error.detail} {client_tools.WHERE_TO_CHANGE}") from None


def note_left_out(turn: Turn, completion: StreamEnd) -> None:
    """Tell the user of tools and parameters without which the answer was made."""
    if completion.refused_params:
        names = ", ".join(completion.refused_params)
        turn.add_notices(f"The provider refuses these parameters, which are left out: {names}")
    if completion.refused_tools:
        names = ", ".join(completion.refused_tools)
        notice = f"The provider refuses the description of these tools, which are left out: {names}"
        turn.add_notices(notice)


def unlearn(turn: Turn, error: ToolsRefused | ImagesRefused) -> None:
    """Forget what was learned, because the request without it was refused too."""
    model = turn.session.model
    assert model is not None
    model.forget_refused(_name_ability(error))


def _name_ability(
    error: ToolsRefused | ImagesRefused,
) -> Literal["supports_tools", "supports_images"]:
    return "supports_images" if isinstance(error, ImagesRefused) else "supports_tools"
