"""Store what is new of a request, and begin the turn that answers it."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction

from chatcore.base.databases.person_lock import lock_person
from chatcore.base.rest.problems import InvalidFieldError
from chatcore.contrib.compat import summary_notes
from chatcore.contrib.compat.chat_completions.client_summaries import announce_summary
from chatcore.contrib.compat.chat_completions.errors import OpenAIProblem
from chatcore.contrib.compat.chat_completions.memory import find_session
from chatcore.contrib.compat.chat_completions.streams import wait_for_stopped_answer
from chatcore.contrib.compat.client_messages import (
    ClientMessage,
    begin_with_question,
    import_messages,
    store_files,
)
from chatcore.contrib.compat.content_parts import join_texts
from chatcore.contrib.compat.models import StoredResponse
from chatcore.contrib.compat.responses import compactions, history, ids, resuming
from chatcore.contrib.compat.responses.origins import Origin, find_origin
from chatcore.contrib.compat.responses.request import ResponseRequest
from chatcore.contrib.compat.web_search import choose_tools
from chatcore.models import Message, Session, Turn
from chatcore.sessions.archive import archive_surplus_sessions
from chatcore.sessions.changes import record_differences
from chatcore.sessions.deletion import delete_session
from chatcore.tools.mcp import turn_servers
from chatcore.transfer import importer
from chatcore.turns import capacity, client_tools, control, forks, leases, lifecycle, versions

NO_INPUT_DETAIL = "There is nothing to answer: send a message."


def begin_response(user: User, request: ResponseRequest) -> StoredResponse:
    """Store the input, start or resume the turn that answers it, and return the response.

    Raises problems, and what `turns.control` raises; then nothing new is stored.
    """
    origin = find_origin(user, request)
    with capacity.reserve_turn(user.pk):
        if origin.session is None:
            return _begin_conversation(user, request, origin)
        lifecycle.recover_dead_turns(origin.session.pk)
        wait_for_stopped_answer(origin.session)
        try:
            return _continue_conversation(request, origin, origin.session)
        except leases.TurnRunning:
            if origin.previous is None:
                raise
            return _continue_fork(request, origin, origin.session)


def store_input(user: User, request: ResponseRequest) -> tuple[Session, Origin]:
    """Store the input alone, without an answer; return its session and what it continued."""
    origin = find_origin(user, request)
    session = origin.session or _create_session(user, request)
    lifecycle.recover_dead_turns(session.pk)
    with transaction.atomic():
        control.cancel_waiting_turn(session)
        locked_session = Session.objects.lock(session.pk)
        leases.refuse_open_turn(locked_session)
        _check_out(locked_session, origin.head_seq)
        last_seq = locked_session.last_seq
        import_messages(locked_session, origin.messages)
        announce_summary(locked_session, origin.client_summary, after_seq=last_seq)
        _apply_settings(locked_session, request, origin)
    session.refresh_from_db()
    return session, origin


def delete_response(record: StoredResponse) -> None:
    """Forget a response, and delete its session if nothing else was ever said there."""
    session = record.session
    own_turns = [record.turn.pk] if record.turn else []
    record.delete()
    has_others = session.responses.exists() or session.turns.exclude(pk__in=own_turns).exists()
    if not has_others and not record.request.get("conversation"):
        delete_session(session.pk)


def _begin_conversation(user: User, request: ResponseRequest, origin: Origin) -> StoredResponse:
    """Answer in a new session, which is deleted again if nothing could be begun."""
    session = _create_session(user, request)
    with ExitStack() as at_failure:
        at_failure.callback(_delete_if_unused, session.pk)
        early_messages = origin.messages[:-1]
        # A long history is stored before the turn begins: in its transaction it would hold SQLite's
        # writer for a second.
        weight = sum(len(message.content) for message in early_messages)
        if weight > importer.MAX_DIRECT_WEIGHT:
            import_messages(session, early_messages)
            key = history.extend_key(origin.key or request.history_seed, early_messages)
            origin = replace(origin, messages=origin.messages[-1:], key=key)
        record = _continue_conversation(request, origin, session)
        at_failure.pop_all()
    archive_surplus_sessions(session)
    return record


def _create_session(user: User, request: ResponseRequest) -> Session:
    """Return a new session. Raises the 409 problem if another request has just begun this one."""
    name = request.thread.name
    parent = find_session(user, request.thread.parent)
    session = Session(owner=user, model=request.model, tools=[], parent=parent)
    session.external_id = name or ids.format_conversation_id(session.pk)
    with transaction.atomic():
        if name:
            lock_person(user.pk)  # two first requests of a session may come at once
            if Session.objects.filter(owner=user, external_id=name).exists():
                raise OpenAIProblem(409, "turn_running", "The session is still answering.")
        session.save(force_insert=True)
    return session


class _SessionUsed(Exception):
    """Another request has begun to answer in a session that was made for this one."""


def _delete_if_unused(session_id: UUID) -> None:
    """Delete a new session unless another request, which knows its name, has begun a turn in it."""
    with suppress(_SessionUsed, Session.DoesNotExist):
        delete_session(session_id, check=_refuse_used)


def _refuse_used(session: Session) -> None:
    if session.turns.exists():
        raise _SessionUsed


def _continue_fork(request: ResponseRequest, origin: Origin, session: Session) -> StoredResponse:
    """Answer in a copy of the session, because the session is answering something else."""
    head = session.messages.filter(seq=origin.head_seq or 0).first()
    if head is None or head.branch is not None:
        raise OpenAIProblem(409, "turn_running", "The session is still answering.")
    fork = forks.fork_session(head)
    return _continue_conversation(request, replace(origin, head_seq=None), fork)


def _continue_conversation(
    request: ResponseRequest, origin: Origin, session: Session
) -> StoredResponse:
    """Answer in a session. A compaction may wait for a model, so it is in no transaction."""
    with transaction.atomic():
        resumed_turn = resuming.resume_turn(request, origin, session)
        if isinstance(resumed_turn, resuming.ResumedTurn):
            return _record_resumed_turn(request, origin, session, resumed_turn)
        origin = resumed_turn
        resuming.refuse_open_approvals(request)
        control.cancel_waiting_turn(session)
        if request.compact_threshold is None:
            return _answer(request, origin, session, compaction=None)
        locked_session = Session.objects.lock(session.pk)
        leases.refuse_open_turn(locked_session)
        _check_out(locked_session, origin.head_seq)
    compaction = _compact_if_asked(request, origin, session.pk)
    with transaction.atomic():
        return _answer(request, origin, session, compaction=compaction)


def _answer(
    request: ResponseRequest,
    origin: Origin,
    session: Session,
    *,
    compaction: Mapping[str, object] | None,
) -> StoredResponse:
    """Store the input and start the turn that answers it, inside a transaction."""
    locked_session = Session.objects.lock(session.pk)
    leases.refuse_open_turn(locked_session)
    next_question = _check_out(locked_session, origin.head_seq)
    record = _build_record(request, origin, locked_session)
    record.after_seq = locked_session.last_seq
    if compaction:
        record.compaction = compaction
        record.request["metadata"] = compaction["links"] | record.request["metadata"]
    _apply_settings(locked_session, request, origin)
    record.turn = _start_turn(locked_session, origin.messages, request.tools)
    announce_summary(locked_session, origin.client_summary, after_seq=record.after_seq)
    _attach_servers(record, request)
    client_tools.limit_calls(record.turn, request.echo["max_tool_calls"])
    if next_question and len(origin.messages) == 1:
        # Pages then show both questions as versions of one.
        own_messages = record.turn.messages.filter(role=Message.Role.USER)
        own_messages.update(replaces=next_question)
    record.after_event_seq = record.turn.first_event_seq - 1
    _save_record(record)
    return record


def _compact_if_asked(
    request: ResponseRequest, origin: Origin, session_id: UUID
) -> dict[str, object] | None:
    """Compact before the answer if the session is over the threshold of the request.

    Returns what the response says of it.
    """
    session = Session.objects.get(pk=session_id)
    assert request.compact_threshold is not None
    if not session.last_seq or not compactions.is_over(session, request.compact_threshold):
        return None
    report = compactions.compact_session(session)
    if report is None or report.status != "applied":
        return None
    content = compactions.write_seal(
        session, seq=session.last_seq, system_texts=origin.system_texts, report=report
    )
    return {"encrypted_content": content, "links": compactions.describe_run(session, report)}


def _build_record(request: ResponseRequest, origin: Origin, session: Session) -> StoredResponse:
    echo = dict(request.echo)
    if request.conversation_id:
        echo["conversation"] = ids.format_conversation_id(session.pk)
    is_known = origin.previous is None or bool(origin.key)
    messages = history.drop_server_calls(origin.messages, request.input.server_call_ids)
    return StoredResponse(
        session=session,
        previous=origin.previous,
        input_key=history.extend_key(origin.key or request.history_seed, messages)
        if is_known
        else "",
        client=""
        if request.thread.name
        else summary_notes.hash_client(session.owner_id, request.keeping),
        request=echo,
        system_texts=origin.add_system_texts(request),
    )


def _save_record(record: StoredResponse) -> None:
    """Store the response, whose input is everything that was stored up to now."""
    last_seq = Session.objects.values_list("last_seq", flat=True).get(pk=record.session_id)
    record.input_seq = last_seq
    record.save(force_insert=True)


def _record_resumed_turn(
    request: ResponseRequest, origin: Origin, session: Session, resumed_turn: resuming.ResumedTurn
) -> StoredResponse:
    """Store the response of a turn that goes on."""
    record = _build_record(request, origin, session)
    record.after_seq = resumed_turn.after_seq
    record.turn, record.after_event_seq = resumed_turn.turn, resumed_turn.after_event_seq
    record.request["approvals"] = resuming.describe_approvals(request)
    _attach_servers(record, request)
    client_tools.limit_calls(record.turn, request.echo["max_tool_calls"])
    _apply_settings(session, request, origin)
    _save_record(record)
    return record


def _attach_servers(record: StoredResponse, request: ResponseRequest) -> None:
    """Give the turn the MCP servers of the request; those that are new are listed in its output."""
    assert record.turn is not None
    server_ids = turn_servers.attach_servers(record.turn, request.servers)
    record.request["servers"] = [str(server_id) for server_id in server_ids]


def _check_out(session: Session, head_seq: int | None) -> Message | None:
    """Make a message the newest one: restore its version, supersede what follows it.

    The session's row is locked. Returns the question that followed it, if there was one.
    """
    if head_seq is None:
        return None
    current_messages = session.messages.exclude_superseded().order_by("seq")
    if head_seq == 0:
        first_message = current_messages.first()
        if first_message:
            versions.supersede_messages(session, from_message=first_message)
        return None
    head = session.messages.filter(seq=head_seq).first()
    if head is None:
        raise OpenAIProblem(404, "previous_response_not_found", "The response was deleted.")
    if head.branch is not None:
        head = versions.restore_version(head)
        session.refresh_from_db()
    next_message = current_messages.filter(seq__gt=head_seq).first()
    if next_message is None:
        return None
    versions.supersede_messages(session, after_message=head)
    session.refresh_from_db()
    return next_message if next_message.role == Message.Role.USER else None


def _apply_settings(session: Session, request: ResponseRequest, origin: Origin) -> None:
    """Store the request's model, parameters and system texts in the session, if they are new."""
    values = {
        "model": request.model,
        "params": request.params,
        "system_prompt": join_texts(
            [request.instructions, *origin.add_system_texts(request), origin.summary]
        ),
    }
    record_differences(session, values | choose_tools(session, request.search_tool))


def _start_turn(
    session: Session, messages: Sequence[ClientMessage], tools: Sequence[Mapping[str, object]]
) -> Turn:
    """Store the messages and start the turn that answers the last one."""
    if messages and messages[-1].role == "user":
        import_messages(session, messages[:-1])
        question = messages[-1]
        file_ids = store_files(session, question)
        return control.start_turn(
            session, content=question.content, attachments=file_ids, tools=tools
        )
    import_messages(session, begin_with_question(session, messages))
    last_message = session.messages.exclude_superseded().order_by("seq").last()
    if last_message is None:
        raise InvalidFieldError("input", NO_INPUT_DETAIL)
    try:
        return control.continue_from_tool_result(last_message, tools=tools)
    except versions.NoQuestionToAnswer:
        raise InvalidFieldError("input", NO_INPUT_DETAIL) from None
