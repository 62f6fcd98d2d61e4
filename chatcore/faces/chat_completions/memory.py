"""Answers with a memory: what a session knows of the client's history is recognized, what is new is said to it, and a turn answers."""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal
from uuid import UUID

from django.db import transaction

from chatcore.api import turn_responses
from chatcore.api.sessions import change
from chatcore.context import builder
from chatcore.events import log as event_log
from chatcore.faces.chat_completions import matching
from chatcore.faces.chat_completions.errors import Refused
from chatcore.faces.chat_completions.messages import Said, results_at_the_end
from chatcore.faces.chat_completions.request import Asked
from chatcore.files import intake
from chatcore.models import Attachment, Message, Session, Turn
from chatcore.providers.base import Finished, Part, ReasoningDelta, TextDelta, Usage
from chatcore.rest.problems import Invalid, TooLarge
from chatcore.threads import in_thread
from chatcore.transfer import reader, sessions
from chatcore.turns import client_tools, leases, lifecycle, service

_CALLS_LEFT = "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'; missing: "


def session_of(user: Any, asked: Asked) -> Session:
    """The user's session of that id, else the one that clients call so; made on first use, with no tools but the client's."""
    try:
        own = Session.objects.owned_by(user).filter(pk=UUID(asked.session)).first()
    except ValueError:
        own = None
    made = {"model": asked.model, "tools": []}
    return (
        own
        or Session.objects.get_or_create(owner=user, external_id=asked.session, defaults=made)[0]
    )


def begin(session: Session, asked: Asked) -> tuple[Turn, int]:
    """Say what is new to the session. Returns the turn that answers, and the `seq` of an event before all that it says.

    Raises 409 history_diverged, and what the turns refuse.
    """
    with _refusals():
        lifecycle.recover(session.pk)
        going_on = _going_on(session, asked) if asked.said[-1].role == "tool" else None
        if going_on:
            return going_on
        if session.turns.filter(status=Turn.Status.WAITING).exists():
            service.cancel(session.pk)  # its client has gone on without the results
        with transaction.atomic():
            now = leases.locked(session.pk)
            leases.refuse_open_turn(now)
            turn = _answering(now, asked, matching.place(now, asked.said))
        return turn, turn.first_event_seq - 1


async def parts(turn: Turn, after: int) -> AsyncGenerator[Part | None]:
    """What the turn says after an event, as it is said; None is a heartbeat. Raises the problem with which it fails.

    Texts around calls of built-in tools are paragraphs of one answer.
    """
    if turn.status not in Turn.OPEN:
        text, reasoning, finished = await in_thread(answer, turn)
        for part in (ReasoningDelta(reasoning), TextDelta(text)):
            if part.text:
                yield part
        yield finished
        return
    spoken = gap = False
    answers_: set[int] = set()
    async for event in event_log.tail(turn.session_id, after):
        if event is None:
            yield None
        elif event.name == "message.created" and event.data["turn"] == str(turn.pk):
            answers_.add(event.data["message"])
            gap = spoken
        elif event.name == "message.delta" and event.data["message"] in answers_:
            yield TextDelta(("\n\n" if gap else "") + event.data["text"])
            spoken, gap = True, False
        elif event.name == "reasoning.delta" and event.data["message"] in answers_:
            yield ReasoningDelta(event.data["text"])
        elif event.name in _ENDS and event.data.get("turn") == str(turn.pk):
            yield (await in_thread(_answer_of, turn.pk))[2]
            return
    raise Refused(404, "session_deleted", "The session was deleted.")


def answer(turn: Turn) -> tuple[str, str, Finished]:
    """Text, reasoning and end of what a turn that has ended, or waits, came to. Raises the problem with which it failed."""
    if turn.status in (Turn.Status.FAILED, Turn.Status.INTERRUPTED):
        turn_responses.answer(turn)
    rows = list(turn.messages.filter(branch=None).order_by("seq").values(*matching.COLUMNS))
    said = [each for each in matching.seen(rows) if each.role == Message.Role.ASSISTANT]
    if not said or (said[-1].calls and turn.status != Turn.Status.WAITING):
        return "", "", Finished(reason="stop")
    message = Message.objects.get(pk=said[-1].pk)
    usage = None
    if message.token_count_input is not None:
        counted = message.token_count_input, message.token_count_output or 0
        usage = Usage(
            input=counted[0], output=counted[1], cache_read=message.token_count_cache_read
        )
    most = turn.session.params.get("max_tokens")
    full = bool(usage and most and usage.output >= most)
    reason: Literal["tool_calls", "length", "stop"] = (
        "tool_calls" if said[-1].calls else "length" if full else "stop"
    )
    return (
        said[-1].content,
        message.reasoning,
        Finished(reason=reason, tool_calls=said[-1].calls, usage=usage),
    )


def headers(turn: Turn, counted: int | None = None) -> dict[str, str]:
    """What the client may know of the session's context: tokens as the provider `counted` them, or about."""
    session = Session.objects.get(pk=turn.session_id)
    guard = builder.guard()
    tokens = counted if counted is not None else guard.size(session) if guard else 0
    compacted = session.compact_boundary_seq is not None or bool(
        Turn.objects.get(pk=turn.pk).notices
    )
    return {
        "X-Context-Tokens": str(tokens),
        "X-Context-Compacted": "true" if compacted else "false",
    }


_ENDS = event_log.ENDS_A_TURN | {"turn.waiting"}


def _answer_of(turn_id: UUID) -> tuple[str, str, Finished]:
    return answer(Turn.objects.select_related("session").get(pk=turn_id))


def _going_on(session: Session, asked: Asked) -> tuple[Turn, int] | None:
    """The turn that goes on with these results, or went on with them before; None where none waits for them."""
    place = matching.place(session, asked.said)
    if any(each.role != "tool" for each in place.new):
        return None
    results = results_at_the_end(asked.said)
    waiting = session.turns.filter(status=Turn.Status.WAITING).first()
    left = (
        {call.id for call in client_tools.pending(waiting)} - {each.call_id for each in results}
        if waiting
        else set()
    )
    if left:
        raise Invalid("messages", _CALLS_LEFT + ", ".join(sorted(left)))
    _settle(session, asked)
    try:
        given = [
            client_tools.Result(tool_call_id=each.call_id, content=each.content) for each in results
        ]
        turn, after = service.submit_tool_results(session, given)
    except service.NothingWaits:
        return None
    return (turn, after) if turn.status in (*Turn.OPEN, Turn.Status.COMPLETED) else None


def _answering(session: Session, asked: Asked, place: matching.Place) -> Turn:
    """The turn that answers, the session's row being locked."""
    _settle(session, asked)
    last = asked.said[-1]
    if last.role == "assistant":
        raise Invalid(
            "messages", "The last message is the assistant's: there is nothing to answer."
        )
    if last.role == "user" and place.again:
        return service.regenerate(session.messages.get(pk=place.again), tools=asked.tools)
    if last.role == "user":
        _import(session, place.new[:-1])
        return service.start(
            session,
            content=last.content,
            attachments=_stored_images(session, last),
            tools=asked.tools,
        )
    _import(session, place.new)
    newest = (
        session.messages.current().order_by("seq").last()
        if place.again is None
        else session.messages.get(pk=place.again)
    )
    assert newest
    return service.go_on(newest, tools=asked.tools)


def _settle(session: Session, asked: Asked) -> None:
    """Model, parameters and system text of the request are the session's from now on."""
    wanted = {"model": asked.model, "params": asked.params}
    if asked.system is not None:
        wanted["system_prompt"] = asked.system
    changed = {name: value for name, value in wanted.items() if getattr(session, name) != value}
    if changed:
        change(session, changed)


def _import(session: Session, said: Sequence[Said]) -> None:
    """Store messages of a history that was not told here."""
    if not said:
        return
    for each, row in zip(
        said, sessions.import_messages(session, [each.as_imported() for each in said]), strict=True
    ):
        Attachment.objects.filter(pk__in=_stored_images(session, each)).update(message=row)
    session.refresh_from_db(fields=["last_seq"])


def _stored_images(session: Session, said: Said) -> list[UUID]:
    if len(said.images) > intake.MAX_FILES:
        raise TooLarge(f"A message has at most {intake.MAX_FILES} images.")
    try:
        named = (
            (f"image-{number}", image.data) for number, image in enumerate(said.images, start=1)
        )
        return [intake.store(session, name=name, data=data, waits=False).pk for name, data in named]
    except intake.NotTaken as wrong:
        raise Invalid("messages", str(wrong)) from None


@contextmanager
def _refusals() -> Iterator[None]:
    """Inside, whatever turns and imports refuse is a problem by its name."""
    try:
        with turn_responses.refusals():
            yield
    except reader.TooLong as long:
        raise TooLarge(str(long)) from None
    except reader.NotImportable as wrong:
        raise Invalid("messages", str(wrong)) from None
