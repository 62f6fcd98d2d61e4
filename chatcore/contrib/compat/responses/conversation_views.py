"""Conversations and their items: sessions under OpenAI's names."""

from collections.abc import Mapping

from django.db import transaction
from rest_framework.response import Response

from chatcore.accounts.rights import find_default_model
from chatcore.base.rest.auth import SignedInRequest
from chatcore.base.rest.problems import InvalidFieldError
from chatcore.contrib.compat.responses import ids, item_lists, origins, storage
from chatcore.contrib.compat.responses.errors import ResponsesAPIView
from chatcore.contrib.compat.responses.input_items import ResponseInput, parse_input
from chatcore.contrib.compat.responses.request import MetadataBody, build_not_found
from chatcore.models import Message, Session
from chatcore.sessions.archive import archive_surplus_sessions
from chatcore.sessions.deletion import delete_session
from chatcore.turns.deletion import delete_message

MAX_NEW_ITEMS = 20


class ConversationListView(ResponsesAPIView):
    """Conversations."""

    def post(self, request: SignedInRequest) -> Response:
        """Create a conversation, with items if the body has some."""
        body = _get_body(request)
        metadata = MetadataBody.parse(body).metadata
        response_input = _parse_items(request, body) if body.get("items") else ResponseInput()
        model = find_default_model(request.user.pk)
        session = Session(owner=request.user, model=model, tools=[])
        session.external_id = ids.format_conversation_id(session.pk)
        session.metadata = metadata
        session.system_prompt = "\n\n".join(response_input.system_texts)
        with transaction.atomic():
            session.save(force_insert=True)
            storage.import_messages(session, response_input.messages)
        archive_surplus_sessions(session)
        return _respond(session, _format_conversation(session))


class ConversationDetailView(ResponsesAPIView):
    """One conversation."""

    def get(self, request: SignedInRequest, conversation_id: str) -> Response:
        """Return the conversation."""
        session = origins.get_owned_conversation(request.user, conversation_id)
        return _respond(session, _format_conversation(session))

    def post(self, request: SignedInRequest, conversation_id: str) -> Response:
        """Replace the metadata."""
        session = origins.get_owned_conversation(request.user, conversation_id)
        session.metadata = MetadataBody.parse(_get_body(request)).metadata
        session.save(update_fields=["metadata"])
        return _respond(session, _format_conversation(session))

    def delete(self, request: SignedInRequest, conversation_id: str) -> Response:
        """Delete the session with everything in it."""
        session = origins.get_owned_conversation(request.user, conversation_id)
        delete_session(session.pk)
        return Response(
            {
                "id": ids.format_conversation_id(session.pk),
                "object": "conversation.deleted",
                "deleted": True,
            }
        )


class ItemListView(ResponsesAPIView):
    """The items of a conversation."""

    def get(self, request: SignedInRequest, conversation_id: str) -> Response:
        """Return a page of items, the newest first unless `order` is asc."""
        session = origins.get_owned_conversation(request.user, conversation_id)
        messages = session.messages.exclude_superseded().exclude(status=Message.Status.STREAMING)
        return _respond(session, item_lists.paginate(messages, request.query_params))

    def post(self, request: SignedInRequest, conversation_id: str) -> Response:
        """Append items without calling a model."""
        session = origins.get_owned_conversation(request.user, conversation_id)
        body = _get_body(request)
        response_input = _parse_items(request, body)
        with transaction.atomic():
            rows = storage.import_messages(session, response_input.messages)
            if response_input.system_texts:
                texts = [session.system_prompt, *response_input.system_texts]
                Session.objects.filter(pk=session.pk).update(
                    system_prompt="\n\n".join(text for text in texts if text)
                )
        new_messages = session.messages.filter(pk__in=[row.pk for row in rows])
        page = item_lists.paginate(new_messages, {"limit": "100"}, default_order="asc")
        return _respond(session, page)


class ItemDetailView(ResponsesAPIView):
    """One item of a conversation."""

    def get(self, request: SignedInRequest, conversation_id: str, item_id: str) -> Response:
        """Return the item."""
        session = origins.get_owned_conversation(request.user, conversation_id)
        _get_message(session, item_id)
        item = item_lists.find_item(request.user, item_id)
        if item is None:
            raise build_not_found("Item", item_id)
        return _respond(session, item)

    def delete(self, request: SignedInRequest, conversation_id: str, item_id: str) -> Response:
        """Delete the message of an item, with the results of its calls."""
        session = origins.get_owned_conversation(request.user, conversation_id)
        delete_message(_get_message(session, item_id))
        return _respond(session, _format_conversation(session))


def _get_body(request: SignedInRequest) -> Mapping[str, object]:
    body = request.data
    if not body:
        return {}
    if not isinstance(body, Mapping):
        raise InvalidFieldError("body", "A JSON object.")
    return body


def _parse_items(request: SignedInRequest, body: Mapping[str, object]) -> ResponseInput:
    items = body.get("items")
    if not isinstance(items, list) or not 1 <= len(items) <= MAX_NEW_ITEMS:
        raise InvalidFieldError("items", f"A list of 1 to {MAX_NEW_ITEMS} items.")
    return parse_input(items, item_lists.build_loader(request.user))


def _get_message(session: Session, item_id: str) -> Message:
    place = ids.parse_item_id(item_id)
    message = None
    if place and place.session_id == session.pk:
        message = session.messages.exclude_superseded().filter(seq=place.seq).first()
    if message is None:
        raise build_not_found("Item", item_id)
    return message


def _format_conversation(session: Session) -> dict[str, object]:
    return {
        "id": ids.format_conversation_id(session.pk),
        "object": "conversation",
        "created_at": int(session.created_at.timestamp()),
        "metadata": session.metadata,
    }


def _respond(session: Session, body: Mapping[str, object]) -> Response:
    return Response(body, headers={"X-Session-Id": str(session.pk)})
