"""Requests that chatcore built: read as a transcript, made smaller, and given back."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from chatcore.context import builder
from chatcore.files import rendering
from chatcore.models import Session
from chatcore.providers.base import Request
from chatcore.providers.errors import ContextBudgetExceeded
from chatcore.tools import registry as tool_registry
from compaction.backends.base import Draft
from compaction.backends.chatcore.translation import entry_of, told_of
from compaction.core.estimate import LastUsage
from compaction.core.transcript import Transcript


class Requests:
    """A built request, and what the guard answers about it."""

    def rebuild(self, session: Session, request: Request | None = None) -> Request:
        """Refreshes `session.context_version`, as `context.build_request` says."""
        return builder.build_request(
            session, tools=tool_registry.offered_to(session) if request is None else request.tools
        )

    def read(self, request: Request, usage: LastUsage | None, *, family: str = "") -> Draft:
        """What stands for older messages is the transcript's summary, in whatever role it is sent."""
        spoken = [
            (place, message)
            for place, message in enumerate(request.messages, start=1)
            if not message.aside
        ]
        system = (
            request.system.replace(request.standing, "", 1) if request.standing else request.system
        )
        apart = [
            text
            for text in (
                request.standing,
                request.preface,
                *(message.content for message in request.messages if message.aside),
            )
            if text
        ]
        transcript = Transcript(
            entries=tuple(entry_of(message, place) for place, message in spoken),
            summary="\n\n".join(apart) or None,
            system=system,
            tools=told_of(request.tools),
            family=family,
        )
        if usage is not None:
            known = [place for place, message in spoken if (message.seq or 0) > usage.after_seq]
            usage = replace(usage, after_seq=min(known, default=len(request.messages) + 1) - 1)
        return Draft(transcript=transcript, usage=usage)

    def keep(self, request: Request, places: Collection[int]) -> Request:
        """Only the messages change; what stands for older ones stays."""
        kept = (
            message
            for place, message in enumerate(request.messages, start=1)
            if message.aside or place in places
        )
        return replace(request, messages=tuple(kept))

    def with_system(self, request: Request, text: str) -> Request:
        """Not the preface: that may be cached for longer."""
        return replace(request, system="\n\n".join(part for part in (request.system, text) if part))

    def files_of(self, request: Request) -> list[tuple[int, str]]:
        """Files are a part of their messages."""
        return [(file.size, file.text) for message in request.messages for file in message.files]

    def with_files(self, request: Request, texts: Sequence[str]) -> Request:
        """As chatcore fences them."""
        return rendering.reworded(request, texts)

    def fit(
        self,
        request: Request,
        *,
        version: int | None,
        notices: tuple[str, ...] = (),
        tokens: int | None = None,
    ) -> builder.Fit:
        """`version` None: the request holds less than the context."""
        return builder.Fit(request=request, context_version=version, notices=notices, tokens=tokens)

    def overflow(self, detail: str, *, tokens: int, window: int) -> ContextBudgetExceeded:
        """A refusal like a provider's, but ours."""
        return ContextBudgetExceeded(detail, tokens=tokens, window=window)
