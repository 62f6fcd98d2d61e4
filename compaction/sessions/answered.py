"""Measure the context after an answer by what is known from its request.

Most answers leave a context that is far from its threshold. Its size follows from the context that
was loaded for the request and the answer's own counts, so `context.usage` is stored with the answer
without a query (behind a summary, one counts the messages), and the check after the response reads
nothing. Wherever more may have changed, None is returned, and the check loads the context as for
any other moment.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from chatcore.events.types import ContextUsagePayload
from chatcore.models import Message
from chatcore.providers.base import Request
from compaction.core.estimate import LastUsage
from compaction.sessions.facts import LiveSum
from compaction.sessions.request_size import describe_usage
from compaction.sessions.session_context import SessionContext
from compaction.sessions.session_memory import find_memory_with_work

MAX_WAITING = 1_000  # checks; as many responses wait for their receivers at most


class MeasuredAnswer(NamedTuple):
    """The context after an answer, and its size, which is announced already."""

    context: SessionContext
    usage: ContextUsagePayload


_answers: OrderedDict[int, MeasuredAnswer] = OrderedDict()  # by the keys of the messages
_lock = threading.Lock()


def foresee_usage(
    context: SessionContext, request: Request
) -> Callable[[Message], ContextUsagePayload | None]:
    """Return what measures the context after the answer to this request, which is all of it."""
    stored = [message for message in request.messages if message.seq and not message.aside]
    has_each_once = len({message.seq for message in stored}) == len(stored)
    tokens = sum(message.token_estimate for message in stored) if has_each_once else None
    return partial(_measure_answer, context, tokens)


def take_measured(message_id: int) -> MeasuredAnswer | None:
    """Return the context after this answer if it was measured; only once."""
    with _lock:
        return _answers.pop(message_id, None)


def _measure_answer(
    context: SessionContext, live_tokens: int | None, answer: Message
) -> ContextUsagePayload | None:
    facts = context.facts
    is_counted = bool(answer.token_count_input)
    if (
        live_tokens is None
        or context.is_summary_running
        or context.refusal_token_ratio > 1
        or facts.sizes.recalled_chars
        or facts.model.name != answer.model
        or not (is_counted or facts.last_usage is None)
    ):
        return None
    last_usage = None
    if answer.token_count_input:
        last_usage = LastUsage(
            tokens=answer.token_count_input + (answer.token_count_output or 0),
            input=answer.token_count_input,
            after_seq=answer.seq,
        )
    facts = replace(
        facts,
        last_seq=answer.seq,
        message_count=facts.message_count + 1,
        last_usage=last_usage,
        live_sum=LiveSum(live_tokens + answer.token_estimate, newest=answer.token_estimate),
    )
    context = replace(context, facts=facts)
    usage = describe_usage(context)
    if usage["should_compact"] or find_memory_with_work(context) is not None:
        return None
    with _lock:
        _answers[answer.pk] = MeasuredAnswer(context, usage)
        while len(_answers) > MAX_WAITING:
            _answers.popitem(last=False)
    return usage
