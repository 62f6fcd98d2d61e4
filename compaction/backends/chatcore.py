"""Chatcore as the host of compaction: the one file that knows both. It translates and decides nothing."""

import asyncio
import json
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.db import close_old_connections
from django.db.models import QuerySet, Sum
from django.db.models.functions import Length

from chatcore import context, events, providers, signals, tools, turns
from chatcore.connections import connection_to
from chatcore.models import ContextRevision, Message, Session
from chatcore.providers.base import ChatMessage, Connection, Finished, Request, TextDelta, Tool
from chatcore.providers.errors import ContextBudgetExceeded, ContextOverflow, ProviderError, ProviderRejected
from compaction.backends.base import STORED_CHARS_PER_TOKEN, Answer, CallFailed, Draft, Prompt, Stale, Subject, Writer
from compaction.core.estimate import LastUsage
from compaction.core.pipeline import Outcome
from compaction.core.transcript import Call, Entry, Transcript
from models_registry.models import AiModel

logger = logging.getLogger(__name__)

_BACK = (ContextRevision.Source.REWIND, ContextRevision.Source.RESET)
_MODEL = ("name", "provider__name", "context_window_size")
_SUBJECT = (
    *("policy", "auto_compact", "tools", "message_count", "last_seq", "system_chars"),
    *("context_version", "compacted_summary", "compact_boundary_seq"),
    *("model__policy", "model__supports_tools", "model__summary_model"),
    *(f"model__{name}" for name in _MODEL),
    *(f"model__summary_model__{name}" for name in _MODEL),
)


class ChatcoreBackend:
    """Sessions, messages and providers of chatcore, in compaction's words."""

    def on_response(self, receiver: Callable[..., None], uid: str) -> None:
        """Listen to the only signal."""
        signals.response_completed.connect(receiver, dispatch_uid=uid)

    def subject(self, session_id: UUID) -> Subject | None:
        """One query for the session and its models; one more for the newest revision, if there is any."""
        row = Session.objects.filter(pk=session_id).annotate(system_chars=Length("system_prompt")).order_by().values(*_SUBJECT).first()
        if row is None:
            return None
        offered = tools.definitions(row["tools"]) if row["model__supports_tools"] else ()
        own = _model_of(row, "model__")
        summarizer = _model_of(row, "model__summary_model__") if row["model__summary_model"] else own
        return Subject(
            session_id=session_id,
            policy=row["policy"],
            model_policy=row["model__policy"] or "",
            model=own[0],
            window=own[1],
            summary_model=summarizer[0],
            summary_window=summarizer[1],
            automatic=row["auto_compact"],
            version=row["context_version"],
            held=bool(row["context_version"]) and _went_back(session_id, row["context_version"]),
            summary=row["compacted_summary"],
            boundary_seq=row["compact_boundary_seq"],
            system_chars=row["system_chars"],
            tool_chars=_tool_chars(offered),
            message_count=row["message_count"],
            last_seq=row["last_seq"],
        )

    def last_usage(self, subject: Subject) -> LastUsage | None:
        """The newest answer whose request was this context, whole, sent to this model."""
        counted = self._live(subject).filter(context_version=subject.version, model=subject.model, token_count_input__gt=0)
        row = counted.order_by("-seq").values_list("seq", "token_count_input", "token_count_output").first()
        return LastUsage(tokens=(row[1] or 0) + (row[2] or 0), after_seq=row[0]) if row else None

    def weight(self, subject: Subject, *, after_seq: int = 0) -> int:
        """One aggregate over an indexed range; none right after an answer, which is then the newest message."""
        if after_seq >= subject.last_seq > 0:
            return 0
        return self._sent(subject).filter(seq__gt=after_seq).aggregate(tokens=Sum("token_estimate"))["tokens"] or 0

    def live_count(self, subject: Subject) -> int:
        """Counted in the index alone; all of them are counted already."""
        return self._live(subject).count() if subject.boundary_seq else subject.message_count

    def newest_prompt(self, subject: Subject) -> int:
        """The newest user message's stored estimate."""
        newest = self._live(subject).filter(role=Message.Role.USER).order_by("-seq")
        return newest.values_list("token_estimate", flat=True).first() or 0

    def last_model(self, subject: Subject) -> str:
        """From the newest answer, however old."""
        answers = Message.objects.filter(session_id=subject.session_id, role=Message.Role.ASSISTANT).exclude(model="")
        return answers.order_by("-seq").values_list("model", flat=True).first() or ""

    def load(self, subject: Subject) -> Transcript:
        """What `context.build_request` would send."""
        session = Session.objects.select_related("model__provider").get(pk=subject.session_id)
        pinned = set(self._live(subject).filter(pinned=True).values_list("seq", flat=True))
        stored = [message for message in context.live_messages(session) if message.seq is not None]
        return Transcript(
            entries=tuple(_entry(message, message.seq or 0, pinned=message.seq in pinned) for message in stored),
            summary=session.compacted_summary,
            overhead_tokens=_tokens(len(session.system_prompt)) + _tokens(_tool_chars(_offered(session))),
            version=session.context_version,
        )

    def install(self, session_id: UUID, transcript: Transcript, outcome: Outcome, *, run: str) -> int:
        """Compare-and-swap on the transcript's version."""
        edits = [context.Edit(message_seq=edit.seq, kind=edit.kind, replacement=edit.replacement) for edit in outcome.edits]
        try:
            revision = context.install(
                session_id,
                base_version=transcript.version,
                summary=outcome.summary,
                boundary_seq=outcome.boundary_seq,
                edits=edits,
                source=ContextRevision.Source.COMPACTION,
                run=run,
            )
        except context.StaleContext as error:
            raise Stale(str(error)) from None
        return revision.version

    def rewind(self, session_id: UUID, *, to_version: int) -> int:
        """As context does it."""
        return context.rewind(session_id, to_version=to_version).version

    def writer(self, session_id: UUID, wanted: str) -> Writer:
        """Same model, provider and key as the conversation's, unless its model or the policy names another."""
        own = _own(session_id)
        model = (_named_writer(own, wanted) or own) if own else None
        return Writer(model=str(model), window=model.context_window_size, max_output=model.max_output_tokens) if model else Writer(model="")

    def ask(self, session_id: UUID, prompt: Prompt) -> Answer:
        """A provider's option `summary_seconds` gives it longer than the policy does: a slow machine reads a full window in minutes."""
        model = (AiModel.objects.usable().named(prompt.model) if prompt.model else None) or _own(session_id)
        if model is None:
            raise CallFailed("The session has no language model.")
        deadline = max(prompt.timeout, model.provider.options.get("summary_seconds", 0))
        request = Request(
            model=model.name,
            system=prompt.system,
            messages=(ChatMessage(role="user", content=prompt.text),),
            max_tokens=prompt.max_tokens,
            params={} if prompt.temperature is None else {"temperature": prompt.temperature},
        )
        close_old_connections()  # a pooled one is others' while the model writes
        try:
            text, finished = asyncio.run(_collect(connection_to(model.provider, max_retries=0, for_summary=True), request, deadline))
        except ContextOverflow as error:
            raise CallFailed(error.detail, too_long=True, tokens=error.tokens, window=error.window) from None
        except ProviderRejected as error:
            raise CallFailed(error.detail, temperature="temperature" in error.detail.lower()) from None
        except ProviderError as error:
            raise CallFailed(error.detail) from None
        except TimeoutError:
            raise CallFailed(f"The summary was not finished within {deadline:g} seconds.") from None
        return _answer(model, prompt, text, finished)

    def announce(self, session_id: UUID, *events_: tuple[str, dict[str, Any]]) -> None:
        """Into the session's event log."""
        events.append(session_id, *events_)

    def recover(self) -> int:
        """Turns whose process died."""
        return turns.recover()

    def session_ids(self, owner: Any) -> QuerySet[Session, UUID]:
        """A subquery."""
        return Session.objects.owned_by(owner).values_list("id", flat=True)

    def rebuild(self, session: Session, request: Request | None = None) -> Request:
        """Refreshes `session.context_version`, as `context.build_request` says."""
        return context.build_request(session, tools=_offered(session) if request is None else request.tools)

    def read(self, request: Request, usage: LastUsage | None) -> Draft:
        """The summary stands in the system text of a built request, so it is overhead here."""
        entries = tuple(_entry(message, place) for place, message in enumerate(request.messages, start=1))
        overhead = _tokens(len(request.system)) + _tokens(_tool_chars(request.tools))
        transcript = Transcript(entries=entries, overhead_tokens=overhead)
        if usage is not None:
            known = [place for place, message in enumerate(request.messages, start=1) if (message.seq or 0) > usage.after_seq]
            usage = replace(usage, after_seq=min(known, default=len(entries) + 1) - 1)
        return Draft(transcript=transcript, usage=usage)

    def keep(self, request: Request, places: Collection[int]) -> Request:
        """Only the messages change."""
        return replace(request, messages=tuple(message for place, message in enumerate(request.messages, start=1) if place in places))

    def fit(self, request: Request, *, version: int | None, notices: tuple[str, ...] = ()) -> context.Fit:
        """`version` None: the request holds less than the context."""
        return context.Fit(request=request, context_version=version, notices=notices)

    def overflow(self, detail: str, *, tokens: int, window: int) -> ContextBudgetExceeded:
        """A refusal like a provider's, but ours."""
        return ContextBudgetExceeded(detail, tokens=tokens, window=window)

    def _live(self, subject: Subject) -> QuerySet[Message]:
        return Message.objects.filter(session_id=subject.session_id, seq__gte=subject.boundary_seq or 0)

    def _sent(self, subject: Subject) -> QuerySet[Message]:
        unsent = [Message.Status.STREAMING, Message.Status.FAILED]
        return self._live(subject).exclude(status__in=unsent).exclude(role=Message.Role.SYSTEM)


async def _collect(connection: Connection, request: Request, deadline: float) -> tuple[str, Finished]:
    said, finished = [], None
    async with asyncio.timeout(deadline):
        async for part in providers.stream(connection, request):
            if isinstance(part, TextDelta):
                said.append(part.text)
            elif isinstance(part, Finished):
                finished = part
    if finished is None:
        raise CallFailed("The summary broke off.")
    return "".join(said), finished


def _answer(model: AiModel, prompt: Prompt, text: str, finished: Finished) -> Answer:
    usage = finished.usage
    return Answer(
        text=text,
        finish="tool_calls" if finished.tool_calls else finished.reason,
        model=str(model),
        input_tokens=usage.input if usage else _tokens(len(prompt.system) + len(prompt.text)),
        output_tokens=usage.output if usage else _tokens(len(text)),
        input_price=model.input_price,
        output_price=model.output_price,
    )


def _own(session_id: UUID) -> AiModel | None:
    return Session.objects.select_related("model__provider", "model__summary_model__provider").get(pk=session_id).model


def _named_writer(own: AiModel, wanted: str) -> AiModel | None:
    """The model that the registry names for summaries of this one, else the policy's; None: neither, or none that can be used."""
    chosen = own.summary_model
    if chosen is not None and chosen.is_active and chosen.provider.is_active:
        return chosen
    found = AiModel.objects.named(wanted) if wanted != "same" else None
    if chosen is not None or (found is None and wanted != "same"):
        logger.warning("%s cannot write summaries for %s: it is unknown or not active", chosen or wanted, own)
    return found


def _went_back(session_id: UUID, version: int) -> bool:
    newest = ContextRevision.objects.filter(session=session_id, version=version).order_by()
    return newest.filter(source__in=_BACK).exists()


def _model_of(row: dict[str, Any], prefix: str) -> tuple[str, int | None]:
    """A model's name as messages carry it, and its window."""
    provider, name = row[f"{prefix}provider__name"], row[f"{prefix}name"]
    return (f"{provider}/{name}" if name else "", row[f"{prefix}context_window_size"])


def _offered(session: Session) -> Sequence[Tool]:
    return tools.definitions(session.tools) if session.model and session.model.supports_tools else ()


def _tool_chars(offered: Sequence[Tool]) -> int:
    return sum(len(tool.name) + len(tool.description) + len(json.dumps(tool.parameters)) for tool in offered)


def _tokens(characters: int) -> int:
    return max(1, characters // STORED_CHARS_PER_TOKEN) if characters else 0


def _entry(message: ChatMessage, seq: int, *, pinned: bool = False) -> Entry:
    return Entry(
        seq=seq,
        role=message.role,
        content=message.content,
        tokens=message.token_estimate,
        calls=tuple(Call(id=call.id, name=call.name, arguments=call.arguments) for call in message.tool_calls),
        call_id=message.tool_call_id,
        tool_name=message.tool_name,
        is_error=message.is_error,
        pinned=pinned,
    )
