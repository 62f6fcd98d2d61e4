"""Read what a stored response says: its messages, its status, its items."""

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db.models import QuerySet

from chatcore.contrib.compat.models import StoredResponse
from chatcore.contrib.compat.responses import ids
from chatcore.contrib.compat.responses.mcp import items as mcp_items
from chatcore.contrib.compat.responses.output_items import (
    Answer,
    Item,
    ItemStatus,
    build_answer_items,
    build_stored_answer,
    list_client_calls,
)
from chatcore.contrib.compat.responses.request import build_not_found, get_reasoning_form
from chatcore.models import McpServer, Message, Session, Turn

RELATED_ROWS = ("session__model__provider", "turn", "previous")


def get_owned_response(user: User, response_id: str) -> StoredResponse:
    """Return a response of the user. Raises the 404 problem."""
    record = find_owned_response(user, response_id)
    if record is None:
        raise build_not_found("Response", response_id)
    return record


def find_owned_response(user: User, response_id: str) -> StoredResponse | None:
    """Return a response of the user, or None."""
    pk = ids.parse_id(response_id, ids.RESPONSE_PREFIX)
    if pk is None:
        return None
    return select_owned_responses(user).filter(pk=pk).first()


def select_owned_responses(user: User) -> QuerySet[StoredResponse]:
    """Return the user's responses, with what most readers of them need."""
    return StoredResponse.objects.filter(
        session__owner=user, session__discard_at=None
    ).select_related(*RELATED_ROWS)


def reload_response(record: StoredResponse) -> StoredResponse:
    """Return the response as it is now."""
    return StoredResponse.objects.select_related(*RELATED_ROWS).get(pk=record.pk)


def load_output_messages(record: StoredResponse) -> list[Message]:
    """Return the model's messages of a response, up to calls that its client runs or allows."""
    if record.turn is None:
        return []
    messages = (
        record.turn.messages.filter(seq__gt=record.input_seq, role=Message.Role.ASSISTANT)
        .exclude(status=Message.Status.STREAMING)
        .order_by("seq")
    )
    output_messages = []
    for message in messages:
        message.turn = record.turn
        output_messages.append(message)
        if list_client_calls(message) or _has_questions(message):
            break
    return output_messages


def build_output(record: StoredResponse, messages: Sequence[Message], status: str) -> list[Item]:
    """Return the items of a response, given its messages."""
    items: list[Item] = []
    if record.compaction:
        items.append(build_compaction_item(record))
    items += build_first_items(record)
    form = get_reasoning_form(record.request)
    for message in messages:
        items += build_answer_items(build_answer(record, message, messages, status), form)
    return items


def build_first_items(record: StoredResponse) -> list[Item]:
    """Return what comes before the messages: tools of servers, and calls that were allowed."""
    items = [mcp_items.build_list_item(server) for server in load_servers(record)]
    return items + [mcp_items.build_call_item(call) for call in load_asked_calls(record)]


def load_servers(record: StoredResponse) -> list[McpServer]:
    """Return the MCP servers that the request of a response brought along."""
    server_ids = record.request.get("servers")
    if not server_ids:
        return []
    rows = {str(row.pk): row for row in McpServer.objects.filter(pk__in=server_ids)}
    return [rows[server_id] for server_id in server_ids if server_id in rows]


def load_asked_calls(record: StoredResponse) -> list[mcp_items.ServerCall]:
    """Return the calls that the input of a response has allowed or refused."""
    if record.turn is None or not record.request.get("approvals"):
        return []
    return mcp_items.load_asked_calls(record.turn, record.input_seq)


def build_answer(
    record: StoredResponse, message: Message, messages: Sequence[Message], status: str
) -> Answer:
    """Return one message of a response. The last one is incomplete if the response is."""
    item_status: ItemStatus = "completed"
    if status == "incomplete" and message is messages[-1]:
        item_status = "incomplete"
    return build_stored_answer(message, status=item_status)


def build_compaction_item(record: StoredResponse) -> Item:
    """Return the compaction with which a response begins."""
    assert record.compaction
    return {
        "id": f"cmp_{ids.build_stem(record.session_id, record.input_seq)}",
        "type": "compaction",
        "encrypted_content": record.compaction["encrypted_content"],
    }


def get_status(record: StoredResponse, messages: Sequence[Message]) -> str:
    """Return the status of a response, in the words of the API."""
    if record.turn is None or (messages and _waits_for_client(messages[-1])):
        return "completed"
    match record.turn.status:
        case Turn.Status.RUNNING | Turn.Status.WAITING:
            return "in_progress"
        case Turn.Status.CANCELLED:
            return "cancelled"
        case Turn.Status.COMPLETED:
            is_cut = bool(messages) and messages[-1].is_cut
            return "incomplete" if is_cut else "completed"
    return "failed"


def get_last_seq(record: StoredResponse) -> int:
    """Return the number of the response's last message."""
    messages = load_output_messages(record)
    return messages[-1].seq if messages else record.input_seq


def query_input_messages(record: StoredResponse) -> QuerySet[Message]:
    """Select the messages of the input of a response, without those of earlier responses."""
    return record.session.messages.filter(seq__gt=record.after_seq, seq__lte=record.input_seq)


def find_referenced_message(user: User, item_id: ids.ItemId) -> Message | None:
    """Return the message of an item of the user's."""
    return (
        Message.objects.filter(
            session__in=Session.objects.owned_by(user).filter(pk=item_id.session_id),
            seq=item_id.seq,
        )
        .select_related("turn")
        .first()
    )


def _has_questions(message: Message) -> bool:
    return any(call.is_asked for call in mcp_items.load_server_calls(message))


def _waits_for_client(message: Message) -> bool:
    """Return True if what follows a message is the output of a later response."""
    calls = mcp_items.load_server_calls(message)
    # Calls that nobody has to allow run at the same time, and belong to this response.
    is_busy = any(not call.is_asked and call.output is None and not call.is_over for call in calls)
    return not is_busy and bool(list_client_calls(message) or any(call.is_asked for call in calls))
