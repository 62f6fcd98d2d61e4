"""Answers with a memory: recognize what the session knows, store what is new, start a turn."""

import contextlib
from collections.abc import AsyncGenerator, Sequence
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, Subquery

from chatcore.api.errors import build_turn_problem
from chatcore.base.databases.person_lock import lock_person
from chatcore.base.rest.problems import InvalidFieldError
from chatcore.base.threads import run_in_thread
from chatcore.context import clearing
from chatcore.context.compactor import get_compactor
from chatcore.contrib.compat.chat_completions import matching, messages
from chatcore.contrib.compat.chat_completions.client_summaries import announce_summary
from chatcore.contrib.compat.chat_completions.errors import OpenAIProblem
from chatcore.contrib.compat.chat_completions.messages import get_trailing_results
from chatcore.contrib.compat.chat_completions.request import (
    TRIMMED_HEADER,
    CompletionRequest,
)
from chatcore.contrib.compat.chat_completions.streams import wait_for_stopped_answer
from chatcore.contrib.compat.client_messages import (
    ClientMessage,
    begin_with_question,
    import_messages,
    store_files,
)
from chatcore.contrib.compat.programs import SESSION_HEADER
from chatcore.contrib.compat.web_search import choose_tools
from chatcore.events import log as event_log
from chatcore.events.types import PAUSE_EVENTS, EventType
from chatcore.models import Message, Session, Turn
from chatcore.providers.base import (
    EndReason,
    ReasoningDelta,
    StreamEnd,
    StreamPart,
    TextDelta,
)
from chatcore.sessions.archive import archive_surplus_sessions
from chatcore.sessions.changes import record_differences
from chatcore.sessions.tool_calls import find_pending_calls
from chatcore.sessions.wrapping import find_question
from chatcore.transfer import importer
from chatcore.turns import capacity, client_tools, control, leases, lifecycle, versions

# OpenAI's own words, which some clients compare.
MISSING_RESULTS_DETAIL = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'; missing: "
)


def find_session(user: User, name: str) -> Session | None:
    """Return the user's session that a client names, by its id or by the client's own name."""
    if not name:
        return None
    has_name = Q(external_id=name)
    with contextlib.suppress(ValueError):  # the name is no UUID
        has_name |= Q(pk=UUID(name))
    sessions = Session.objects.owned_by(user).filter(has_name)[:2]
    # The id comes first: any name may look like one.
    return min(sessions, key=lambda session: session.external_id == name, default=None)


def create_session(user: User, completion_request: CompletionRequest) -> Session:
    """Return a new session with the name of a request, or the one that another request has made.

    A new session has no tools except the client's. That of a subagent is below another one.
    """
    thread = completion_request.thread
    defaults = {
        "model": completion_request.model,
        "tools": [],
        "title": _build_title(completion_request.messages),
        "parent": find_session(user, thread.parent),
    }
    with transaction.atomic():
        lock_person(user.pk)  # two first requests of a session may come at once
        session, is_new = Session.objects.get_or_create(
            owner=user, external_id=thread.name, defaults=defaults
        )
    if is_new:
        archive_surplus_sessions(session)
    return session


def _build_title(messages: Sequence[ClientMessage]) -> str:
    """Return a title from the first question of a history that already has answers.

    Empty for another one: then the turn that answers its question gives the title.
    """
    if all(message.role != "assistant" for message in messages):
        return ""
    question = find_question([message.content for message in messages if message.role == "user"])
    return control.build_title(Message(content=question)) if question else ""


def start_or_resume_turn(
    session: Session, completion_request: CompletionRequest
) -> tuple[Turn, int]:
    """Store what is new to the session, and return the turn that answers.

    Also returns the `seq` of an event before all events of the answer. Raises the 409 problem
    `history_diverged`, and what `turns.control` raises.
    """
    lifecycle.recover_dead_turns(session.pk)
    wait_for_stopped_answer(session)
    if completion_request.messages[-1].role == "tool":
        resumed_turn = _resume_turn(session, completion_request)
        if resumed_turn:
            return resumed_turn
    # The client sent another message instead of the results that the turn waits for.
    control.cancel_waiting_turn(session)
    with capacity.reserve_turn(session.owner_id):
        _import_long_history(session, completion_request)
        # The lock keeps two requests from matching their histories with the same stored one, and
        # then both storing what is new.
        with transaction.atomic():
            locked_session = Session.objects.lock(session.pk)
            leases.refuse_open_turn(locked_session)
            history_match = _match_history(locked_session, completion_request)
            last_seq = locked_session.last_seq
            turn = _start_turn(locked_session, completion_request, history_match)
            announce_summary(locked_session, history_match.summary, after_seq=last_seq)
            if completion_request.clearing:
                clearing.store_clearing(turn, completion_request.clearing)
    return turn, turn.first_event_seq - 1


def store_history(session: Session, completion_request: CompletionRequest) -> None:
    """Store what is new to the session, without an answer."""
    lifecycle.recover_dead_turns(session.pk)
    wait_for_stopped_answer(session)
    control.cancel_waiting_turn(session)
    with transaction.atomic():
        locked_session = Session.objects.lock(session.pk)
        leases.refuse_open_turn(locked_session)
        if not completion_request.messages:
            return
        history_match = _match_history(locked_session, completion_request)
        _apply_request_settings(locked_session, completion_request)
        replaced_message = _supersede_messages(locked_session, history_match)
        if replaced_message:
            versions.supersede_messages(locked_session, from_message=replaced_message)
        last_seq = locked_session.last_seq
        import_messages(locked_session, history_match.new_messages)
        announce_summary(locked_session, history_match.summary, after_seq=last_seq)
    session.refresh_from_db()


async def stream_parts(turn: Turn, after_seq: int) -> AsyncGenerator[StreamPart]:
    """Yield the turn's answer in parts, from its events after `after_seq`.

    Texts before and after calls of built-in tools are paragraphs of one answer. Raises the problem
    of a turn that fails.
    """
    if turn.status not in Turn.OPEN_STATUSES:
        for part in await run_in_thread(_load_parts, turn):
            yield part
        return
    has_text = False
    needs_gap = False
    message_ids: set[int] = set()
    async with contextlib.aclosing(event_log.follow_events(turn.session_id, after_seq)) as events:
        async for event in events:
            if event is None:
                continue
            if event.name == EventType.MESSAGE_CREATED and event.data["turn"] == str(turn.pk):
                message_ids.add(event.data["message"])
                needs_gap = has_text
            elif event.name == EventType.MESSAGE_DELTA and event.data["message"] in message_ids:
                yield TextDelta(("\n\n" if needs_gap else "") + event.data["text"])
                has_text = True
                needs_gap = False
            elif event.name == EventType.REASONING_DELTA and event.data["message"] in message_ids:
                yield ReasoningDelta(event.data["text"])
            elif event.name in PAUSE_EVENTS and event.data.get("turn") == str(turn.pk):
                for part in await run_in_thread(_load_end, turn.pk, "\n\n" if has_text else ""):
                    yield part
                return
    raise OpenAIProblem(404, "session_deleted", "The session was deleted.")


def load_answer(turn: Turn) -> tuple[str, str, StreamEnd]:
    """Return text, reasoning and final part of a turn that has ended or waits.

    Raises the problem of a turn that failed.
    """
    if turn.status in (Turn.Status.FAILED, Turn.Status.INTERRUPTED):
        raise build_turn_problem(turn)
    rows = turn.messages.filter(branch=None).order_by("seq").values(*messages.MESSAGE_COLUMNS)
    answers = [
        message
        for message in messages.build_stored_messages(rows)
        if message.role == Message.Role.ASSISTANT
    ]
    is_waiting = turn.status == Turn.Status.WAITING
    question = messages.build_question(turn) if is_waiting else ""
    if question and not (answers and answers[-1].calls):
        said_text = turn.messages.filter(branch=None, role=Message.Role.ASSISTANT)
        texts = [*said_text.order_by("seq").values_list("content", flat=True), question]
        return "\n\n".join(text for text in texts if text), "", StreamEnd(reason="stop")
    if not answers or (answers[-1].calls and not is_waiting):
        return "", "", StreamEnd(reason="stop")
    answer = answers[-1]
    row = Message.objects.get(pk=answer.pk)
    usage = messages.read_usage(row)
    final_part = StreamEnd(
        reason=_get_end_reason(row, answer),
        stop_sequence=(row.finish_detail or None) if row.finish_reason == "stop" else None,
        word="" if row.finish_reason == "stop" else row.finish_detail,
        tool_calls=answer.calls,
        usage=usage,
        provider_data=row.provider_data,
    )
    return answer.content, row.reasoning, final_part


def build_context_headers(turn: Turn, token_count: int | None = None) -> dict[str, str]:
    """Return headers with the session's id, its tokens, and whether it is compacted.

    `token_count` is the provider's count; without it, the tokens are an estimate. Whether the
    request was trimmed is said of an answer that has begun.
    """
    session = Session.objects.get(pk=turn.session_id)
    if token_count is None:
        token_count = get_compactor().estimate_tokens(session)
    answers = Message.objects.filter(turn=OuterRef("pk"), role=Message.Role.ASSISTANT)
    newest_answer = answers.order_by("-seq")[:1]
    notices, has_begun, left_out_count = Turn.objects.values_list(
        "notices", Exists(newest_answer), Subquery(newest_answer.values("left_out_count"))
    ).get(pk=turn.pk)
    is_compacted = session.compact_boundary_seq is not None or bool(notices)
    headers = {
        SESSION_HEADER: str(session.pk),
        "X-Context-Tokens": str(token_count),
        "X-Context-Compacted": "true" if is_compacted else "false",
    }
    if has_begun:
        headers[TRIMMED_HEADER] = "true" if left_out_count is not None else "false"
    return headers


def _match_history(
    session: Session, completion_request: CompletionRequest
) -> matching.HistoryMatch:
    return matching.match_history(
        session,
        completion_request.messages,
        completion_request.on_divergence,
        summary_length=completion_request.thread.summary_length,
    )


def _load_parts(turn: Turn) -> list[StreamPart]:
    """Return the answer of a turn that is over."""
    text, reasoning, final_part = load_answer(turn)
    parts: list[StreamPart] = [ReasoningDelta(reasoning)] if reasoning else []
    if text:
        parts.append(TextDelta(text))
    return [*parts, final_part]


def _load_end(turn_id: UUID, gap: str) -> list[StreamPart]:
    """Return what a streamed answer ends with: a question to its person, and the final part."""
    turn = Turn.objects.select_related("session").get(pk=turn_id)
    _, _, final_part = load_answer(turn)
    is_question = turn.status == Turn.Status.WAITING and not final_part.tool_calls
    question = messages.build_question(turn) if is_question else ""
    return [TextDelta(gap + question), final_part] if question else [final_part]


def _get_end_reason(row: Message, answer: messages.StoredMessage) -> EndReason:
    if answer.calls:
        return "tool_calls"
    match row.finish_reason:
        case "length" | "refusal" | "unknown" as reason:
            return reason
    return "stop"


def _resume_turn(
    session: Session, completion_request: CompletionRequest
) -> tuple[Turn, int] | None:
    """Continue the turn that waits for these results, or return the one that they continued before.

    Returns None if there is no such turn.
    """
    history_match = _match_history(session, completion_request)
    if history_match.superseded_after is not None or any(
        message.role != "tool" for message in history_match.new_messages
    ):
        return None
    if history_match.summary:
        with transaction.atomic():
            locked_session = Session.objects.lock(session.pk)
            announce_summary(locked_session, history_match.summary, after_seq=session.last_seq)
    results = get_trailing_results(completion_request.messages)
    waiting_turn = session.turns.filter(status=Turn.Status.WAITING).first()
    _refuse_missing_results(waiting_turn, results)
    if waiting_turn:
        client_tools.extend_tools(waiting_turn, completion_request.tools)
    _apply_request_settings(session, completion_request)
    client_results = [
        client_tools.ClientToolResult(
            tool_call_id=message.call_id, content=message.content, is_error=message.is_error
        )
        for message in results
    ]
    has_files = any(message.files for message in results)
    has_clearing = bool(completion_request.clearing or (waiting_turn and waiting_turn.clearing))
    try:
        # The turn goes on when the transaction is committed, and needs these before.
        with transaction.atomic() if has_files or has_clearing else contextlib.nullcontext():
            if waiting_turn and has_clearing:
                clearing.store_clearing(waiting_turn, completion_request.clearing)
            turn, after_seq = control.submit_tool_results(session, client_results)
            _store_result_files(turn, results)
    except control.NoWaitingTurn:
        return None
    is_usable = turn.status in (*Turn.OPEN_STATUSES, Turn.Status.COMPLETED)
    return (turn, after_seq) if is_usable else None


def _store_result_files(turn: Turn, results: Sequence[ClientMessage]) -> None:
    """Store the files of results that were stored just now; repeated ones have theirs."""
    for result in results:
        if not result.files:
            continue
        rows = turn.messages.filter(role=Message.Role.TOOL, tool_call_id=result.call_id)
        row = rows.order_by("seq").last()
        if row and not row.attachments.exists():
            store_files(turn.session, result, row=row)


def _refuse_missing_results(waiting_turn: Turn | None, results: Sequence[ClientMessage]) -> None:
    """Raise the 400 problem if a call of the waiting turn has no result among these."""
    if waiting_turn is None:
        return
    pending_ids = {call.id for call in find_pending_calls(waiting_turn)}
    missing_ids = pending_ids - {message.call_id for message in results}
    if missing_ids:
        raise InvalidFieldError("messages", MISSING_RESULTS_DETAIL + ", ".join(sorted(missing_ids)))


def _start_turn(
    session: Session, completion_request: CompletionRequest, history_match: matching.HistoryMatch
) -> Turn:
    """Start the turn that answers. The caller has locked the session."""
    _apply_request_settings(session, completion_request)
    last_message = completion_request.messages[-1]
    if last_message.role == "assistant":
        raise InvalidFieldError(
            "messages", "The last message is from the assistant: there is nothing to answer."
        )
    tools = completion_request.tools
    repeated_pk = history_match.regenerate_pk
    replaced_message = _supersede_messages(session, history_match)
    if last_message.role == "user" and repeated_pk:
        return control.regenerate_answer(session.messages.get(pk=repeated_pk), tools=tools)
    if last_message.role == "user":
        import_messages(session, history_match.new_messages[:-1])
        return control.start_turn(
            session,
            content=last_message.content,
            attachments=store_files(session, last_message),
            tools=tools,
            replaces=replaced_message,
        )
    import_messages(session, begin_with_question(session, history_match.new_messages))
    if repeated_pk is None:
        result = session.messages.exclude_superseded().order_by("seq").last()
    else:
        result = session.messages.get(pk=repeated_pk)
    assert result
    return control.continue_from_tool_result(result, tools=tools)


def _supersede_messages(session: Session, history_match: matching.HistoryMatch) -> Message | None:
    """Supersede what an edit leaves behind.

    Return the message that the new one replaces; then the turn supersedes it as it begins.
    """
    if history_match.superseded_after is None:
        return None
    if history_match.replaced_pk is not None:
        return session.messages.get(pk=history_match.replaced_pk)
    first_message = (
        session.messages.exclude_superseded()
        .filter(seq__gt=history_match.superseded_after)
        .order_by("seq")
        .first()
    )
    if first_message:
        versions.supersede_messages(session, from_message=first_message)
    return None


def _apply_request_settings(session: Session, completion_request: CompletionRequest) -> None:
    """Store the request's model, parameters and system text in the session, if they are new."""
    settings: dict[str, object] = {
        "model": completion_request.model,
        "params": completion_request.params,
    }
    if completion_request.system is not None:
        settings["system_prompt"] = completion_request.system
    settings |= choose_tools(session, completion_request.search_tool)
    record_differences(session, settings)


def _import_long_history(session: Session, completion_request: CompletionRequest) -> None:
    """Store what is new of a long history, all but the last message, before the turn begins.

    The turn is begun in one transaction, which would hold SQLite's writer for a second if it
    stored megabytes. When this did nothing, because the session changed meanwhile or is busy, that
    transaction does all the work, or refuses it.
    """
    messages = completion_request.messages
    if sum(len(message.content) for message in messages) <= importer.MAX_DIRECT_WEIGHT:
        return
    last_seq = Session.objects.values_list("last_seq", flat=True).get(pk=session.pk)
    history_match = _match_history(session, completion_request)
    new_messages = history_match.new_messages[:-1]
    # A refused request must leave nothing, files are stored with the turn, and an edit supersedes
    # messages in the same transaction.
    if messages[-1].role == "assistant" or any(message.files for message in messages):
        return
    if history_match.superseded_after is not None:
        return
    if sum(len(message.content) for message in new_messages) <= importer.MAX_DIRECT_WEIGHT:
        return
    with contextlib.suppress(importer.SessionBusy, importer.SessionChanged):
        import_messages(session, new_messages, after_seq=last_seq)
