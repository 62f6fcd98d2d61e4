"""Requests that chatcore built: read as a transcript, made smaller, and given back."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from chatcore.context import builder
from chatcore.context.compactor import FittedRequest
from chatcore.files import rendering
from chatcore.models import Session
from chatcore.providers.base import Request
from chatcore.providers.errors import ContextBudgetExceeded
from chatcore.tools import registry as tool_registry
from compaction.backends.base import ParsedRequest, SessionFacts
from compaction.backends.chatcore.translation import serialize_tools, to_entry
from compaction.core.estimate import LastUsage
from compaction.core.transcript import Transcript
from models_registry.models import AiModel


class ChatcoreRequestEditor:
    """A built request, and what the guard answers about it."""

    def rebuild_request(self, session: Session, request: Request | None = None) -> Request:
        """Refreshes `session.context_version`, as `context.build_request` says."""
        return builder.build_request(
            session,
            tools=tool_registry.list_session_tools(session) if request is None else request.tools,
        )

    def parse_request(
        self, request: Request, last_usage: LastUsage | None, *, family: str = ""
    ) -> ParsedRequest:
        """What stands for older messages is the transcript's summary, in whatever role it is sent."""
        conversation_messages = [
            (position, message)
            for position, message in enumerate(request.messages, start=1)
            if not message.aside
        ]
        system = (
            request.system.replace(request.system_summary, "", 1)
            if request.system_summary
            else request.system
        )
        aside_texts = [
            text
            for text in (
                request.system_summary,
                request.preface,
                *(message.content for message in request.messages if message.aside),
            )
            if text
        ]
        transcript = Transcript(
            entries=tuple(
                to_entry(message, position) for position, message in conversation_messages
            ),
            summary="\n\n".join(aside_texts) or None,
            system=system,
            tools=serialize_tools(request.tools),
            family=family,
        )
        if last_usage is not None:
            newer_positions = [
                position
                for position, message in conversation_messages
                if (message.seq or 0) > last_usage.after_seq
            ]
            last_usage = replace(
                last_usage, after_seq=min(newer_positions, default=len(request.messages) + 1) - 1
            )
        return ParsedRequest(transcript=transcript, last_usage=last_usage)

    def keep_messages(self, request: Request, positions: Collection[int]) -> Request:
        """Only the messages change; what stands for older ones stays."""
        messages = (
            message
            for position, message in enumerate(request.messages, start=1)
            if message.aside or position in positions
        )
        return replace(request, messages=tuple(messages))

    def append_system_text(self, request: Request, text: str) -> Request:
        """Not the preface: that may be cached for longer."""
        return replace(request, system="\n\n".join(part for part in (request.system, text) if part))

    def list_text_files(self, request: Request) -> list[tuple[int, str]]:
        """Files are a part of their messages."""
        return [(file.size, file.text) for message in request.messages for file in message.files]

    def replace_file_texts(self, request: Request, texts: Sequence[str]) -> Request:
        """As chatcore fences them."""
        return rendering.replace_file_texts(request, texts)

    def build_model_facts(self, model: AiModel, request: Request) -> SessionFacts:
        """Return the facts of a request that belongs to no session; this takes no query."""
        return SessionFacts(
            model=str(model),
            family=model.provider.family,
            window=model.context_window_size,
            output_reserve=model.output_reserve,
            model_policy=model.policy,
            max_tokens=request.max_tokens,
        )

    def build_fit_answer(
        self,
        request: Request,
        *,
        version: int | None,
        notices: tuple[str, ...] = (),
        tokens: int | None = None,
    ) -> FittedRequest:
        """`version` None: the request holds less than the context."""
        return FittedRequest(
            request=request, context_version=version, notices=notices, tokens=tokens
        )

    def build_overflow_error(
        self, detail: str, *, tokens: int, window: int
    ) -> ContextBudgetExceeded:
        """A refusal like a provider's, but ours."""
        return ContextBudgetExceeded(detail, tokens=tokens, window=window)
