"""Messages as clients send them, before they are stored or sent on."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from uuid import UUID

from chatcore.base.truncation import clean_json
from chatcore.contrib.compat.bodies import Body
from chatcore.files.rendering import IMAGE_UNSUPPORTED_NOTE, NO_TEXT_NOTE, fence_text
from chatcore.models import Attachment, Message, Session
from chatcore.providers.base import ChatMessage, File, Image, ToolCall
from chatcore.providers.normal_form import EARLIER_MESSAGES_NOTICE
from chatcore.providers.provider_data import CACHE_CONTROL
from chatcore.transfer import importer
from chatcore.turns import client_tools
from models_registry.models import AiModel


@dataclass(frozen=True, kw_only=True)
class ClientMessage:
    """A message as a client sent it. Its files are not stored yet."""

    role: Literal["user", "assistant", "tool"]
    content: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    is_error: bool = False
    files: tuple[Attachment, ...] = ()
    provider_data: dict[str, Any] = field(default_factory=dict)

    @property
    def has_content(self) -> bool:
        """False for an empty message, which clients store for an answer that failed."""
        return bool(self.content or self.calls or self.files or self.role == "tool")

    def to_import_record(self) -> dict[str, object]:
        """Return the message in the form that `transfer.importer.import_messages` reads."""
        record: dict[str, object] = {"role": self.role, "content": self.content}
        if self.calls:
            record["tool_calls"] = [
                {"id": call.id, "name": call.name, "arguments": call.arguments}
                for call in self.calls
            ]
        if self.role == "tool":
            record["tool_call_id"] = self.call_id
            record["is_error"] = self.is_error
        return record

    def to_chat_message(self, *, supports_images: bool) -> ChatMessage:
        """Return the message for a provider, with its files in its text or as images."""
        texts = [self.content]
        image_parts = []
        for file in self.files:
            if file.media_type.startswith("image/"):
                if supports_images:
                    image_parts.append(Image(media_type=file.media_type, data=bytes(file.data)))
                else:
                    texts.append(IMAGE_UNSUPPORTED_NOTE.format(name=file.name))
            elif file.text.strip():
                texts.append(fence_text(File(name=file.name, size=file.size, text=file.text)))
            else:
                texts.append(NO_TEXT_NOTE.format(name=file.name))
        return ChatMessage(
            role=self.role,
            content="\n\n".join(text for text in texts if text),
            tool_calls=self.calls,
            tool_call_id=self.call_id,
            is_error=self.is_error,
            images=tuple(image_parts),
            provider_data=self.provider_data,
        )


def convert_messages(messages: Iterable[ClientMessage], model: AiModel) -> list[ChatMessage]:
    """Return messages for the provider of a model."""
    return [message.to_chat_message(supports_images=model.may_see_images) for message in messages]


def begin_with_question(
    session: Session, messages: Sequence[ClientMessage]
) -> Sequence[ClientMessage]:
    """Return messages for a session, behind a note in place of a question if there is none.

    Programs that cut their history may leave out every message of the user.
    """
    if session.last_seq or not messages or any(message.role == "user" for message in messages):
        return messages
    return [ClientMessage(role="user", content=EARLIER_MESSAGES_NOTICE), *messages]


def has_new_results(messages: Sequence[ClientMessage]) -> bool:
    """Return True if results of tools follow the last answer: they continue it."""
    for message in reversed(messages):
        if message.role != "user":
            return message.role == "tool"
    return False


def add_system_text(messages: list[ClientMessage], text: str) -> None:
    """Add a text of the system that follows other messages, marked, in its place.

    Programs remind their model in the middle of a conversation. In front of it, each new reminder
    would change the first words of the request, and its provider would read everything anew. Few
    models take such a message where it stands, so it ends the message of the user or the result of
    a tool before it. Before the calls of an answer it would part them from their results.
    """
    marked_text = f"<system-message>\n{text}\n</system-message>"
    for index in reversed(range(len(messages))):
        message = messages[index]
        if message.role != "assistant":
            content = "\n\n".join(part for part in (message.content, marked_text) if part)
            messages[index] = replace(message, content=content)
            return
        if not message.calls:
            break
    messages.append(ClientMessage(role="user", content=marked_text))


def store_files(
    session: Session, message: ClientMessage, *, row: Message | None = None
) -> list[UUID]:
    """Store the files of a message, and return their ids; `row` is None until it is stored."""
    for file in message.files:
        file.session = session
        file.message = row
        file.save(force_insert=True)
    return [file.pk for file in message.files]


def import_messages(
    session: Session, messages: Sequence[ClientMessage], *, after_seq: int | None = None
) -> list[Message]:
    """Append messages to a session with their files, without calling a model.

    What a provider wants back with an answer is stored with it. It names its model, and no other
    one is sent it. Raises what `transfer.importer.import_messages` raises.
    """
    if not messages:
        return []

    def store_provider_data(rows: Sequence[Message]) -> None:
        answers = []
        for message, row in zip(messages, rows, strict=True):
            # A mark of the cache moves with each request.
            data = {k: v for k, v in message.provider_data.items() if k != CACHE_CONTROL}
            if data and message.role == "assistant":
                row.provider_data = clean_json(data)
                answers.append(row)
        Message.objects.bulk_update(answers, ["provider_data"])

    records = [message.to_import_record() for message in messages]
    rows = importer.import_messages(
        session, records, after_seq=after_seq, on_stored=store_provider_data
    )
    for message, row in zip(messages, rows, strict=True):
        store_files(session, message, row=row)
    session.refresh_from_db(fields=["last_seq"])
    return rows


class ClientFunction(Body):
    """What each API says of a tool that the client runs."""

    name: str
    description: str | None = None
    strict: bool | None = None

    def build_definition(self) -> dict[str, Any]:
        """Return the tool in the form that `build_tools` reads."""
        return self.model_dump(exclude_none=True)


def build_tools(definitions: Sequence[Mapping[str, Any]], model: AiModel) -> list[dict[str, Any]]:
    """Return a request's tools in the form in which they are stored. Raises InvalidClientTools."""
    # An unsaved session without tools of its own, since the client's are the only ones here.
    session = Session(model=model, tools=[])
    return client_tools.validate_tools(session, definitions)
