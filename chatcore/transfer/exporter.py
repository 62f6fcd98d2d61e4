"""Export a session: in full as JSON, or its current messages as a provider's API takes them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from chatcore.base.databases.batches import read_in_batches
from chatcore.files.rendering import fence_text
from chatcore.models import CHAT_COLUMNS, Attachment, Message, Session
from chatcore.providers import normal_form
from chatcore.providers import params as provider_params
from chatcore.providers.base import ChatMessage, File, ToolCall
from chatcore.sessions.sections import load_sections
from chatcore.transfer import context, formats, links

FORMAT = "chatcore-session-1"
BATCH_SIZE = 500  # rows loaded at a time
IMAGE_NOTE = '[The image "{name}" was attached.]'

# The columns of an exported session, besides its model and its last number.
SETTING_FIELDS = (
    "title",
    "system_prompt",
    "policy",
    "auto_compact",
    "compact_threshold",
    "tools",
    "params",
    "pinned",
    "archived",
)
# The columns of an exported message that are stored again without interpreting them.
RECORD_FIELDS = (
    "reasoning",
    "status",
    "finish_reason",
    "finish_detail",
    "model",
    "pinned",
    "token_count_input",
    "token_count_output",
    "token_count_cache_read",
    "token_count_cache_write",
    "original_chars",
    "left_out_count",
    "tool_result_limit",
)
# An older export has it too. What a provider remembers of an answer, such as signed thoughts, is
# not imported: it would be sent to the provider as it is, in the words of whoever wrote the file.
IGNORED_FIELDS = ("provider_data",)


def export_session(session: Session) -> dict[str, Any]:
    """Return a session as JSON values: its settings, all messages, and what the model sees."""
    finished_messages = session.messages.exclude(status=Message.Status.STREAMING)
    rows = finished_messages.select_related("replaces").prefetch_related("attachments")
    settings = {name: getattr(session, name) for name in (*SETTING_FIELDS, "last_seq")}
    settings["model"] = str(session.model) if session.model else None
    settings |= {name: getattr(session, name).isoformat() for name in ("created_at", "updated_at")}
    if session.parent_id:
        settings["parent"] = str(session.parent_id)
    provider = session.model.provider if session.model else None
    settings["params"] = provider_params.select_params(session.params, provider)
    return {
        "format": FORMAT,
        "session": settings,
        "messages": [
            _export_message(message) | links.export_links(message)
            for message in read_in_batches(rows, "seq")
        ],
        "context": context.export_context(session),
        **{section.name: section.export_items(session) for section in load_sections()},
    }


def export_as(session: Session, format: formats.Format) -> dict[str, object]:
    """Return the session in a format.

    `chatcore` is what `export_session` returns; the others contain the current messages as the API
    of OpenAI or Anthropic takes them.
    """
    if format == "chatcore":
        return export_session(session)
    messages: list[Mapping[str, object]] = []
    if session.system_prompt:
        messages.append({"role": "system", "content": session.system_prompt})
    current_messages = normal_form.pair_tool_calls(_load_current_messages(session))
    messages += [asdict(message) for message in current_messages]
    if format == "openai":
        return {"messages": formats.to_openai(messages)}
    return formats.to_anthropic(messages)


def _export_message(message: Message) -> dict[str, object]:
    values = {name: getattr(message, name) for name in (*CHAT_COLUMNS, *RECORD_FIELDS)}
    return values | {"created_at": message.created_at.isoformat()}


def _load_current_messages(session: Session) -> list[ChatMessage]:
    """Load the messages of the current conversation, interrupted answers too.

    The texts of their files stand in them; of images only the names.
    """
    rows = (
        session.messages.exclude_superseded()
        .exclude(status__in=(Message.Status.STREAMING, Message.Status.FAILED))
        .order_by("seq")
        .values("pk", *CHAT_COLUMNS)
    )
    messages = {
        row.pop("pk"): _build_chat_message(**row) for row in rows.iterator(chunk_size=BATCH_SIZE)
    }
    files = session.attachments.filter(kind=Attachment.Kind.FILE, message__isnull=False)
    for file in files.defer("data").order_by("created_at", "id").iterator(chunk_size=20):
        if file.message_id not in messages:
            continue
        text = IMAGE_NOTE.format(name=file.name)
        if not file.media_type.startswith("image/"):
            text = fence_text(File(name=file.name, size=file.size, text=file.text))
        message = messages[file.message_id]
        content = "\n\n".join(part for part in (message.content, text) if part)
        messages[file.message_id] = replace(message, content=content)
    return list(messages.values())


def _build_chat_message(*, tool_calls: Sequence[Mapping[str, str]], **fields: Any) -> ChatMessage:
    return ChatMessage(**fields, tool_calls=tuple(ToolCall(**call) for call in tool_calls))
