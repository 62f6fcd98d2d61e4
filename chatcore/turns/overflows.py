"""Make room after a provider refused a request for its length, at most four tries in one turn.

The policy makes room first, as it would have done before. Whatever it leaves, and where it does
nothing or the window is unknown, the oldest messages are left out of the request, and more of them
each time. A refusal that says nothing known may be about the length of a large request: one smaller
try tells. What was learned is kept only if the smaller request was answered.
"""

import logging
from dataclasses import dataclass, field, replace

from chatcore.context.compactor import get_compactor
from chatcore.context.sent_requests import list_left_out
from chatcore.models import Turn
from chatcore.providers import overflow
from chatcore.providers.base import Request, StreamEnd
from chatcore.providers.errors import (
    ContextOverflow,
    ProviderError,
    ProviderRejected,
    ProviderUnavailable,
)
from chatcore.turns.prepared_calls import PreparedCall, make_room, prepare_call
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
        final_error = ContextOverflow(
            " ".join(part for part in (detail, remains) if part),
            tokens=getattr(error, "tokens", None),
            window=getattr(error, "window", None),
        )
        return final_error

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
    return replace(call, fitted_request=shorter_request, left_out=left_out)


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
    parts = {
        "the system prompt": replace(request, messages=(), tools=()),
        "the tools": replace(request, messages=(), system="", preface=""),
        "the newest message": replace(
            request, messages=request.messages[-1:], tools=(), system="", preface=""
        ),
    }
    compactor = get_compactor()
    empty = replace(request, messages=(), tools=(), system="", preface="")
    base = compactor.estimate_request(model, empty)
    sizes = {name: compactor.estimate_request(model, part) - base for name, part in parts.items()}
    told = [f"{name} (about {size:,} tokens)" for name, size in sizes.items() if size > 0]
    return f"What cannot be left out: {', '.join(told)}." if told else ""


def _is_breakdown(error: ProviderError) -> bool:
    return error.refused_status >= _BREAKDOWN_STATUS
