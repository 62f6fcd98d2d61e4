"""What is stored of a tool's output: the part that CHATCORE["TOOL_OUTPUT"] keeps, and the whole beside it where that says so."""

from dataclasses import dataclass
from typing import Any, Protocol

from django.conf import settings
from django.utils.module_loading import import_string

from chatcore.models import Attachment, Message, Session
from chatcore.sessions.token_estimate import estimate_tokens
from chatcore.sessions.truncation import TOOL_RESULT_MAX_CHARS, clean_text, cut_tool_result
from chatcore.tools import read_tool_output

MAX_STORED_BYTES = 10 * 1024 * 1024  # of UTF-8; what is kept of one output
FULL_OUTPUT_NOTE = "\n\n[The whole output is kept: {tool} with message {seq} reads it.]"
PARTIAL_OUTPUT_NOTE = "\n\n[The first {kept:,} of {total:,} characters are kept: {tool} with message {seq} reads them.]"


class TruncationResult(Protocol):
    """What the delegate answers. `original_chars` is None where nothing was cut; `whole` is what to keep beside the message."""

    @property
    def content(self) -> str: ...
    @property
    def original_chars(self) -> int | None: ...
    @property
    def full_text(self) -> str | None: ...


@dataclass(frozen=True, kw_only=True)
class ToolOutput:
    """An output that is about to be stored: `fields` of its message, then `keep` in the same transaction."""

    message_fields: dict[str, Any]
    full_text: str | None = None

    def render_content(self, seq: int) -> str:
        """What the message of this number comes to hold."""
        content: str = self.message_fields["content"]
        if self.full_text is None:
            return content
        stored_chars, total_chars = len(_cut_to_max_bytes(self.full_text)), len(self.full_text)
        note = FULL_OUTPUT_NOTE if stored_chars == total_chars else PARTIAL_OUTPUT_NOTE
        return content + note.format(
            tool=read_tool_output.TOOL.name, seq=seq, kept=stored_chars, total=total_chars
        )

    def store_full_text(self, message: Message) -> None:
        """Store the whole beside the stored message, and tell the model in the message how to read it."""
        if self.full_text is None:
            return
        text = _cut_to_max_bytes(self.full_text)
        Attachment.objects.create(
            session_id=message.session_id,
            message=message,
            kind=Attachment.Kind.OUTPUT,
            name=f"{message.tool_name}.txt",
            media_type="text/plain",
            size=len(text.encode()),
            data=b"",  # the text is all of it
            text=text,
            token_estimate=estimate_tokens(len(text)),
        )
        message.content = self.render_content(message.seq)
        message.tool_result_limit = _get_result_limit(message.content)
        message.save(update_fields=["content", "tool_result_limit", "token_estimate"])


def build_tool_output(session: Session, tool_name: str, text: str) -> ToolOutput:
    """What to store of a tool's output. Asks the delegate, outside any transaction; without one it is the plain cut. Never raises."""
    text = clean_text(text)
    path = settings.CHATCORE["TOOL_OUTPUT"]
    if path is None:
        content, original_chars = cut_tool_result(text)
        return ToolOutput(message_fields={"content": content, "original_chars": original_chars})
    truncation: TruncationResult = import_string(path)(session, tool_name, text)
    fields = {
        "content": truncation.content,
        "original_chars": truncation.original_chars,
        "tool_result_limit": _get_result_limit(truncation.content),
    }
    # What is read out of a kept output is not kept once more.
    return ToolOutput(
        message_fields=fields,
        full_text=None if tool_name == read_tool_output.TOOL.name else truncation.full_text,
    )


def _get_result_limit(content: str) -> int | None:
    """What the save hook is told, so that it leaves alone what the policy allows."""
    return len(content) if len(content) > TOOL_RESULT_MAX_CHARS else None


def _cut_to_max_bytes(text: str) -> str:
    """As much as may be kept, by whole characters."""
    if len(text) * 4 <= MAX_STORED_BYTES:
        return text
    return text[:MAX_STORED_BYTES].encode()[:MAX_STORED_BYTES].decode(errors="ignore")
