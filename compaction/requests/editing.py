"""Read built requests as transcripts, and change them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from chatcore.context import builder
from chatcore.context.clearing import clear_again, list_applied_edits
from chatcore.models import Session
from chatcore.providers.base import Request
from chatcore.tools import registry as tool_registry
from compaction.core.estimate import LastUsage
from compaction.core.transcript import Transcript
from compaction.sessions.facts import SessionFacts
from compaction.sessions.translation import serialize_tools, to_entry
from models_registry.models import AiModel


@dataclass(frozen=True, kw_only=True)
class ParsedRequest:
    """A built request in the core's form.

    Its messages are numbered by their position in the request, from 1; so is the last usage.
    """

    transcript: Transcript
    last_usage: LastUsage | None


def rebuild_request(session: Session, request: Request | None = None) -> Request:
    """Build the next request from storage.

    It has the tools, parameters and clearing of `request`, if given: they may be those of its
    turn alone. This refreshes `session.context_version`, as `builder.build_request` says.
    """
    if request is not None:
        rebuilt_request = builder.build_request(session, tools=request.tools)
        rebuilt_request = replace(rebuilt_request, params=request.params)
        return clear_again(session.model, rebuilt_request, request)
    return builder.build_request(session, tools=tool_registry.list_session_tools(session))


def parse_request(
    request: Request, last_usage: LastUsage | None, *, family: str = ""
) -> ParsedRequest:
    """Return the request in the core's form.

    Texts that stand for older messages become its summary, in whatever role they are sent. The
    provider counted the last request with what this one leaves out.
    """
    if list_applied_edits(request):
        last_usage = None
    conversation = [
        (position, message)
        for position, message in enumerate(request.messages, start=1)
        if message.recalled or not message.aside
    ]
    transcript = Transcript(
        entries=tuple(
            [
                to_entry(message, position, images=len(message.images))
                for position, message in conversation
            ]
        ),
        summary=_join_summary_texts(request),
        system=_remove_summary(request),
        tools=serialize_tools(request.tools),
        family=family,
    )
    if last_usage is not None:
        newer_positions = (
            position
            for position, message in conversation
            if (message.seq or 0) > last_usage.after_seq
        )
        first_newer = next(newer_positions, len(request.messages) + 1)
        last_usage = replace(last_usage, after_seq=first_newer - 1)
    return ParsedRequest(transcript=transcript, last_usage=last_usage)


def keep_messages(request: Request, positions: Collection[int]) -> Request:
    """Return the request with only the messages at these positions, and with its summary."""
    messages = (
        message
        for position, message in enumerate(request.messages, start=1)
        if position in positions or (message.aside and not message.recalled)
    )
    return replace(request, messages=tuple(messages))


def replace_texts(request: Request, texts: Mapping[int, str]) -> Request:
    """Return the request with other texts for the messages at these positions."""
    messages = (
        replace(message, content=texts[position]) if position in texts else message
        for position, message in enumerate(request.messages, start=1)
    )
    return replace(request, messages=tuple(messages))


def append_system_text(request: Request, text: str) -> Request:
    """Return the request with a paragraph more at the end of its system text.

    The preface is unchanged, because providers may cache it for longer.
    """
    return replace(request, system="\n\n".join(part for part in (request.system, text) if part))


def build_model_facts(model: AiModel, request: Request) -> SessionFacts:
    """Return the facts of a request that belongs to no session; this takes no query."""
    return SessionFacts(
        model=str(model),
        family=model.provider.family,
        window=model.context_window_size,
        max_input=model.max_input_tokens,
        output_reserve=model.output_reserve,
        model_policy=model.policy,
        max_tokens=request.max_tokens,
    )


def _join_summary_texts(request: Request) -> str | None:
    aside_texts = [
        message.content for message in request.messages if message.aside and not message.recalled
    ]
    texts = [text for text in (request.system_summary, request.preface, *aside_texts) if text]
    return "\n\n".join(texts) or None


def _remove_summary(request: Request) -> str:
    """Return the system text without the summary that stands in it."""
    if not request.system_summary:
        return request.system
    return request.system.replace(request.system_summary, "", 1)
