"""Chatcore as the host of compaction: the one file that knows both. It translates and decides nothing."""

import asyncio
import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.db import close_old_connections
from django.db.models import QuerySet, Sum
from django.db.models.expressions import RawSQL
from django.db.models.functions import Length

from chatcore import context, events, files, invariants, live, providers, signals, summary_block, tools, turns
from chatcore.connections import connection_to
from chatcore.models import ContextEdit, ContextRevision, Message, Session, Turn
from chatcore.providers.base import ChatMessage, Connection, Finished, Request, TextDelta, Tool
from chatcore.providers.errors import ContextBudgetExceeded, ContextOverflow, ProviderError, ProviderRejected
from compaction.backends.base import STORED_CHARS_PER_TOKEN, Answer, CallFailed, Draft, Prompt, Stale, Subject, Writer, without_session
from compaction.core.estimate import LastUsage
from compaction.core.pipeline import Outcome
from compaction.core.transcript import Call, Entry, Transcript
from models_registry.models import AiModel

logger = logging.getLogger(__name__)

_BACK = (ContextRevision.Source.REWIND, ContextRevision.Source.RESET)
_MODEL = ("name", "provider__name", "context_window_size")
_SUBJECT = (
    *("policy", "auto_compact", "compact_threshold", "params", "tools", "message_count", "last_seq"),
    *("system_chars", "attached_tokens", "attached_images", "outputs_kept", "turn_model"),
    *("context_version", "compacted_summary", "compact_boundary_seq"),
    *("model__policy", "model__supports_tools", "model__summary_model", "model__output_reserve", "model__provider__family"),
    *(f"model__{name}" for name in _MODEL),
    *(f"model__summary_model__{name}" for name in _MODEL),
)
# As text: they take the ORM longer to write than the database to answer, and the check after each response waits for it.
_ATTACHED = (
    "SELECT SUM({what}) FROM chatcore_attachment file JOIN chatcore_message message ON message.id = file.message_id "
    "WHERE file.session_id = chatcore_session.id AND file.kind = 'file' AND file.media_type {which} 'image/%%' "
    "AND message.branch IS NULL AND message.seq >= COALESCE(chatcore_session.compact_boundary_seq, 0)"
)
_TURN_MODEL = "SELECT turn.model_id FROM chatcore_turn turn WHERE turn.session_id = chatcore_session.id AND turn.status = 'running'"
_OUTPUTS_KEPT = "SELECT 1 FROM chatcore_attachment file WHERE file.session_id = chatcore_session.id AND file.kind = 'output' LIMIT 1"


class ChatcoreBackend:
    """Sessions, messages and providers of chatcore, in compaction's words."""

    def on_response(self, receiver: Callable[..., None], uid: str) -> None:
        """Listen to the only signal."""
        signals.response_completed.connect(receiver, dispatch_uid=uid)

    def subject(self, session_id: UUID) -> Subject | None:
        """One query for the session and its models; one more each for the newest revision and the running turn's own model, if any."""
        row = Session.objects.filter(pk=session_id).annotate(**_measured()).order_by().values(*_SUBJECT).first()
        if row is None:
            return None
        row |= _of_turn(row["turn_model"])
        offered = tools.definitions(row["tools"], outputs_kept=bool(row["outputs_kept"])) if row["model__supports_tools"] else ()
        newest = _newest_revision(session_id, row["context_version"])
        own = _model_of(row, "model__")
        summarizer = _model_of(row, "model__summary_model__") if row["model__summary_model"] else own
        return Subject(
            session_id=session_id,
            policy=row["policy"],
            model_policy=row["model__policy"] or "",
            model=own[0],
            window=own[1],
            family=row["model__provider__family"] or "",
            output_reserve=row["model__output_reserve"],
            max_tokens=row["params"].get("max_tokens"),
            compact_threshold=row["compact_threshold"],
            summary_model=summarizer[0],
            summary_window=summarizer[1],
            automatic=row["auto_compact"],
            version=row["context_version"],
            held=newest.get("source") in _BACK,
            summary=row["compacted_summary"],
            boundary_seq=row["compact_boundary_seq"],
            kept_seqs=tuple(newest.get("kept_seqs", ())),
            beside_chars=summary_block.beside(row["compacted_summary"], newest.get("background", ""), newest.get("placement", {})),
            system_chars=row["system_chars"],
            tool_chars=len(_told(offered)),
            attached_tokens=row["attached_tokens"] or 0,
            attached_images=row["attached_images"] or 0,
            message_count=row["message_count"],
            last_seq=row["last_seq"],
        )

    def last_usage(self, subject: Subject) -> LastUsage | None:
        """The newest answer whose request was this context, whole, sent to this model."""
        counted = self._live(subject).filter(context_version=subject.version, model=subject.model, token_count_input__gt=0)
        row = counted.order_by("-seq").values_list("seq", "token_count_input", "token_count_output").first()
        return LastUsage(tokens=(row[1] or 0) + (row[2] or 0), input=row[1] or 0, after_seq=row[0]) if row else None

    def weight(self, subject: Subject, *, after_seq: int = 0, before_seq: int | None = None) -> int:
        """One aggregate over indexed ranges, one for the edits in force; none right after an answer, which is then the newest message."""
        if after_seq >= subject.last_seq > 0:
            return 0
        counted = self._sent(subject).filter(seq__gt=after_seq, **({"seq__lt": before_seq} if before_seq else {}))
        stored = counted.aggregate(tokens=Sum("token_estimate"))["tokens"] or 0
        if not subject.version:
            return stored
        edits = ContextEdit.objects.filter(session=subject.session_id, until_version=None, message__in=counted.order_by().values("pk"))
        cut = edits.aggregate(tokens=Sum("message__token_estimate"), chars=Sum(Length("replacement")))
        return max(0, stored - (cut["tokens"] or 0) + _tokens(cut["chars"] or 0))

    def live_count(self, subject: Subject) -> int:
        """Counted in the index alone; all of them are counted already."""
        return self._sent(subject).count() if subject.boundary_seq else subject.message_count

    def newest_prompt(self, subject: Subject) -> int:
        """The newest user message's stored estimate."""
        newest = self._live(subject).filter(role=Message.Role.USER).order_by("-seq")
        return newest.values_list("token_estimate", flat=True).first() or 0

    def last_model(self, subject: Subject) -> str:
        """From the newest answer, however old."""
        answers = Message.objects.filter(session_id=subject.session_id, role=Message.Role.ASSISTANT).exclude(model="")
        return answers.order_by("-seq").values_list("model", flat=True).first() or ""

    def load(self, subject: Subject, *, fit: Callable[[Request], Request] | None = None) -> Transcript:
        """What `context.build_request` would send of what is stored; what it says in place of what is missing is no message."""
        session = Session.objects.select_related("model__provider").get(pk=subject.session_id)
        offered, now = tools.offered_to(session), live.in_force(session)
        shown = live.whole(live.read(session, now), now.boundary_seq)
        if fit is not None and now.files:
            built = Request(model=subject.model, system=session.system_prompt, messages=[e.message for e in shown], tools=offered)
            shown = [replace(e, message=message) for e, message in zip(shown, fit(built).messages, strict=True)]
        return Transcript(
            entries=tuple(_entry(e.message, e.seq, pinned=e.pinned, original=e.original) for e in shown),
            summary=now.summary,
            overhead_tokens=_tokens(summary_block.beside(now.summary, now.background, now.placement)),
            system=session.system_prompt,
            tools=_told(offered),
            family=session.model.provider.family if session.model else "",
            version=now.version,
            boundary_seq=now.boundary_seq,
            summarized_up_to=now.placement.get("summarized_up_to"),
            marker=now.placement.get("marker", ""),
        )

    def install(
        self,
        session_id: UUID,
        transcript: Transcript,
        outcome: Outcome,
        *,
        run: str,
        background: str = "",
        placement: Mapping[str, Any] | None = None,
    ) -> int:
        """Compare-and-swap on the transcript's version, and on its messages."""
        edits = [context.Edit(message_seq=edit.seq, kind=edit.kind, replacement=edit.replacement) for edit in outcome.edits]
        words = {"marker": outcome.marker, **(placement or {}), "summarized_up_to": outcome.summarized_up_to}
        try:
            revision = context.install(
                session_id,
                base_version=transcript.version,
                summary=outcome.summary,
                boundary_seq=outcome.boundary_seq,
                edits=edits,
                read=[entry.seq for entry in transcript.entries],
                kept_seqs=outcome.kept_verbatim,
                background=background,
                placement={name: value for name, value in words.items() if value},
                source=ContextRevision.Source.COMPACTION,
                run=run,
            )
        except context.StaleContext as error:
            raise Stale(str(error)) from None
        return revision.version

    def rewind(self, session_id: UUID, *, to_version: int) -> int:
        """As context does it."""
        return context.rewind(session_id, to_version=to_version).version

    def remind(self, session_id: UUID, background: str) -> None:
        """All else of the newest revision stays."""
        sent = ContextRevision.objects.filter(session=session_id).order_by("-version").values_list("background", flat=True).first()
        if background != (sent or ""):
            context.reword(session_id, background=background)

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
        return context.build_request(session, tools=tools.offered_to(session) if request is None else request.tools)

    def read(self, request: Request, usage: LastUsage | None, *, family: str = "") -> Draft:
        """A summary in the system text counts with that; one that stands apart is the transcript's, in whatever role it is sent."""
        spoken = [(place, message) for place, message in enumerate(request.messages, start=1) if not message.aside]
        apart = [text for text in (request.preface, *(message.content for message in request.messages if message.aside)) if text]
        transcript = Transcript(
            entries=tuple(_entry(message, place) for place, message in spoken),
            summary="\n\n".join(apart) or None,
            system=request.system,
            tools=_told(request.tools),
            family=family,
        )
        if usage is not None:
            known = [place for place, message in spoken if (message.seq or 0) > usage.after_seq]
            usage = replace(usage, after_seq=min(known, default=len(request.messages) + 1) - 1)
        return Draft(transcript=transcript, usage=usage)

    def keep(self, request: Request, places: Collection[int]) -> Request:
        """Only the messages change; what stands for older ones stays."""
        kept = (message for place, message in enumerate(request.messages, start=1) if message.aside or place in places)
        return replace(request, messages=tuple(kept))

    def with_system(self, request: Request, text: str) -> Request:
        """Not the preface: that may be cached for longer."""
        return replace(request, system="\n\n".join(part for part in (request.system, text) if part))

    def tool_rounds(self, subject: Subject) -> tuple[int, int]:
        """Two indexed queries; what was compacted meanwhile counts too."""
        said = Message.objects.filter(session_id=subject.session_id).current().order_by("-seq")
        asked = said.filter(role=Message.Role.USER).values_list("seq", flat=True).first() or 0
        made = [len(c) for c in said.filter(seq__gt=asked, role=Message.Role.ASSISTANT).values_list("tool_calls", flat=True) if c]
        return len(made), sum(made)

    def verify(self, session_id: UUID) -> list[str]:
        """As `chatcore verify` does."""
        return list(invariants.violations(Session.objects.get(pk=session_id)))

    def answering(self, subject: Subject) -> bool:
        """One query."""
        return Turn.objects.filter(session_id=subject.session_id, status=Turn.Status.RUNNING, cancel_requested=False).exists()

    def files_of(self, request: Request) -> list[tuple[int, str]]:
        """Files are a part of their messages."""
        return [(file.size, file.text) for message in request.messages for file in message.files]

    def with_files(self, request: Request, texts: Sequence[str]) -> Request:
        """As chatcore fences them."""
        return files.reworded(request, texts)

    def subject_of(self, model: AiModel, request: Request) -> Subject:
        """Of a registry row; no query."""
        facts = {"window": model.context_window_size, "family": model.provider.family, "output_reserve": model.output_reserve}
        return without_session(model=str(model), model_policy=model.policy, max_tokens=request.max_tokens, **facts)

    def fit(self, request: Request, *, version: int | None, notices: tuple[str, ...] = (), tokens: int | None = None) -> context.Fit:
        """`version` None: the request holds less than the context."""
        return context.Fit(request=request, context_version=version, notices=notices, tokens=tokens)

    def overflow(self, detail: str, *, tokens: int, window: int) -> ContextBudgetExceeded:
        """A refusal like a provider's, but ours."""
        return ContextBudgetExceeded(detail, tokens=tokens, window=window)

    def _live(self, subject: Subject) -> QuerySet[Message]:
        return Message.objects.filter(session_id=subject.session_id, seq__gte=subject.boundary_seq or 0).current()

    def _sent(self, subject: Subject) -> QuerySet[Message]:
        return live.sent(subject.session_id, subject.boundary_seq, subject.kept_seqs)


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


def _newest_revision(session_id: UUID, version: int) -> dict[str, Any]:
    if not version:
        return {}
    found = ContextRevision.objects.filter(session=session_id, version=version).order_by()
    return dict(found.values("source", "kept_seqs", "background", "placement").first() or {})


def _model_of(row: dict[str, Any], prefix: str) -> tuple[str, int | None]:
    """A model's name as messages carry it, and its window."""
    provider, name = row[f"{prefix}provider__name"], row[f"{prefix}name"]
    return (f"{provider}/{name}" if name else "", row[f"{prefix}context_window_size"])


def _of_turn(model_id: int | None) -> dict[str, Any]:
    """What the model that the running turn alone is answered by puts in place of the session's."""
    names = [name.removeprefix("model__") for name in _SUBJECT if name.startswith("model__")]
    row = AiModel.objects.filter(pk=model_id).values(*names).first() if model_id else None
    return {f"model__{name}": value for name, value in (row or {}).items()}


def _told(offered: Sequence[Tool]) -> str:
    """What a model is told of the tools."""
    return "".join(f"{tool.name}{tool.description}{json.dumps(tool.parameters)}" for tool in offered)


def _measured() -> dict[str, Any]:
    """What the session's row is read with, so that nothing more is asked for it: files of live messages, by text and by image …"""
    return {
        "system_chars": Length("system_prompt"),
        "attached_tokens": RawSQL(_ATTACHED.format(what="file.token_estimate", which="NOT LIKE"), ()),  # noqa: S611
        "attached_images": RawSQL(_ATTACHED.format(what="1", which="LIKE"), ()),  # noqa: S611
        "outputs_kept": RawSQL(_OUTPUTS_KEPT, ()),  # noqa: S611
        "turn_model": RawSQL(_TURN_MODEL, ()),  # noqa: S611
    }


def _tokens(characters: int) -> int:
    return max(1, characters // STORED_CHARS_PER_TOKEN) if characters else 0


def _entry(message: ChatMessage, seq: int, *, pinned: bool = False, original: str | None = None) -> Entry:
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
        images=len(message.images),
        original=original,
    )
