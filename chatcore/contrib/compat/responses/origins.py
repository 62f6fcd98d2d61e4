"""Find where a request goes on: in which session, and behind which of its messages."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.contrib.auth.models import User

from chatcore.contrib.compat.chat_completions.client_summaries import ClientSummary
from chatcore.contrib.compat.chat_completions.errors import OpenAIProblem
from chatcore.contrib.compat.chat_completions.matching import match_history
from chatcore.contrib.compat.chat_completions.memory import find_session
from chatcore.contrib.compat.client_messages import ClientMessage
from chatcore.contrib.compat.models import StoredResponse
from chatcore.contrib.compat.responses import beside, compactions, history, ids, records
from chatcore.contrib.compat.responses.request import ResponseRequest, build_not_found
from chatcore.models import Session


@dataclass(frozen=True, kw_only=True)
class Origin:
    """What a request continues.

    Without `session` a new conversation begins. `head_seq` is the message that the input follows:
    0 for none, None for the newest one. `key` is the hash of the conversation so far, empty if it
    is unknown. `client_summary` is what the client sends in place of older messages.
    """

    messages: list[ClientMessage]
    session: Session | None = None
    head_seq: int | None = None
    previous: StoredResponse | None = None
    key: str = ""
    system_texts: list[str] = field(default_factory=list)
    summary: str = ""
    client_summary: ClientSummary | None = None

    def add_system_texts(self, request: ResponseRequest) -> list[str]:
        """Return the system texts so far with those of a request, each once.

        A client that sends its whole history sends them all again.
        """
        return list(dict.fromkeys([*self.system_texts, *request.input.system_texts]))


def find_origin(user: User, request: ResponseRequest) -> Origin:
    """Return what the request continues.

    Raises the 404 problem for a response or a conversation that is not the user's.
    """
    messages = request.input.messages
    if request.previous_response_id:
        record = records.find_owned_response(user, request.previous_response_id)
        if record is None:
            raise build_previous_problem(request.previous_response_id)
        return _continue_response(record, messages)
    if request.conversation_id:
        session = get_owned_conversation(user, request.conversation_id)
        return Origin(messages=messages, session=session)
    asked_record = _find_asked_response(user, request)
    if asked_record:
        return _continue_response(asked_record, [])
    if request.input.compaction:
        return _continue_compaction(user, request)
    named_session = find_session(user, request.thread.name)
    if request.thread.name and named_session is None:
        # A subagent may begin with all that its parent said, and a fork with what was before it.
        return Origin(messages=messages)
    known_messages = history.drop_server_calls(messages, request.input.server_call_ids)
    known_history = history.find_known_history(
        user, known_messages, seed=request.history_seed, session=named_session
    )
    if known_history:
        return _continue_response(known_history.record, known_history.new_messages)
    if named_session:
        return _continue_history(named_session, request, known_messages)
    summarized = beside.find_summarized(user, request, known_messages)
    if summarized is None:
        return Origin(messages=messages, key="")
    session, summary_length = summarized
    return _continue_history(session, request, known_messages, summary_length=summary_length)


def get_owned_conversation(user: User, conversation_id: str) -> Session:
    """Return a session of the user by its id as a conversation. Raises the 404 problem."""
    pk = ids.parse_id(conversation_id, ids.CONVERSATION_PREFIX)
    session = Session.objects.owned_by(user).filter(pk=pk).first() if pk else None
    if session is None:
        raise build_not_found("Conversation", conversation_id, param="conversation")
    return session


def build_previous_problem(response_id: str) -> OpenAIProblem:
    """Build the problem of a previous response that is not there."""
    return OpenAIProblem(
        404,
        "previous_response_not_found",
        f"Previous response with id '{response_id[:100]}' not found.",
        param="previous_response_id",
    )


def _continue_response(record: StoredResponse, messages: list[ClientMessage]) -> Origin:
    return Origin(
        messages=messages,
        session=record.session,
        head_seq=records.get_last_seq(record),
        previous=record,
        key=history.build_next_key(record),
        system_texts=record.system_texts,
    )


def _continue_history(
    session: Session,
    request: ResponseRequest,
    messages: Sequence[ClientMessage],
    *,
    summary_length: int = 0,
) -> Origin:
    """Return what a history continues of which no response is known.

    The first `summary_length` messages are known to be a summary of the program's own.
    """
    if not messages:
        return Origin(messages=request.input.messages, session=session)
    history_match = match_history(session, messages, summary_length=summary_length)
    new_messages = list(history_match.new_messages)
    head_seq = history_match.superseded_after
    if history_match.regenerate_pk is not None:
        head_seq = session.messages.get(pk=history_match.regenerate_pk).seq
    known_count = len(messages) - len(new_messages)
    return Origin(
        messages=new_messages if known_count else request.input.messages,
        session=session,
        head_seq=head_seq,
        key=history.extend_key(request.history_seed, messages[:known_count]),
        client_summary=history_match.summary,
    )


def _find_asked_response(user: User, request: ResponseRequest) -> StoredResponse | None:
    """Return the response whose question the end of a whole history answers."""
    messages = request.input.messages
    if not request.input.approvals or (messages and messages[-1].role != "assistant"):
        return None
    place = ids.parse_item_id(request.input.approvals[-1].request_id)
    message = records.find_referenced_message(user, place) if place else None
    if message is None or message.turn is None:
        return None
    rows = records.select_owned_responses(user).filter(turn=message.turn)
    return rows.filter(input_seq__lt=message.seq).order_by("-input_seq").first()


def _continue_compaction(user: User, request: ResponseRequest) -> Origin:
    seal = compactions.open_seal(user, request.input.compaction)
    session = Session.objects.owned_by(user).filter(pk=seal.session_id).first()
    messages = request.input.messages
    if session is None:
        # The session is deleted, and its summary is all that is left of it.
        return Origin(messages=messages, system_texts=seal.system_texts, summary=seal.summary)
    return Origin(
        messages=messages,
        session=session,
        head_seq=seal.seq,
        system_texts=seal.system_texts,
    )
