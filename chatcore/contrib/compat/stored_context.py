"""Answer what a program asks beside a conversation that has outgrown its model's window.

Such a request has the whole history, say to have it summarized. A history that is too long would
lose its first messages, while the session has a summary of them. So the context of the session
takes its place.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from chatcore.context import builder
from chatcore.context.compactor import get_compactor
from chatcore.contrib.compat.content_parts import join_texts
from chatcore.models import Session
from chatcore.providers.base import ChatMessage, Request
from models_registry.models import AiModel


def replace_long_history(
    model: AiModel, request: Request, find_session: Callable[[], Session | None]
) -> Request:
    """Return the request with the context of its session in place of a history that is too long.

    `find_session` returns the session whose history it is; None if there is none.
    """
    start, limit = _find_question(request.messages), model.request_limit
    if not start or limit is None:
        return request
    if get_compactor().estimate_request(model, request) <= limit:
        return request
    session = find_session()
    if session is None:
        return request
    context = builder.build_request(session)
    return replace(
        request,
        system=join_texts((request.system, context.system_summary or context.preface)),
        messages=[*context.messages, *request.messages[start:]],
    )


def _find_question(messages: Sequence[ChatMessage]) -> int:
    """Return where the user's newest messages begin, which are what is asked."""
    start = len(messages)
    while start and messages[start - 1].role == "user":
        start -= 1
    return start
