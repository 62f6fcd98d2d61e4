"""Decide how much of a tool's output is stored in its message, and store the rest as a file."""

from dataclasses import dataclass
from typing import Any

from chatcore.context.compactor import get_compactor
from chatcore.models import Attachment, Message, Session
from chatcore.sessions.token_estimate import estimate_tokens
from chatcore.sessions.truncation import clean_text, cut_tool_result
from chatcore.tools import read_tool_output

MAX_STORED_BYTES = 10 * 1024 * 1024  # of one output, in UTF-8
# A result that a client sends again is compared with the stored message, this note included. So
# these texts cannot change without making old results look different.
FULL_OUTPUT_NOTE = "\n\n[The whole output is kept: {tool} with message {seq} reads it.]"
PARTIAL_OUTPUT_NOTE = (
    "\n\n[The first {kept:,} of {total:,} characters are kept:"
    " {tool} with message {seq} reads them.]"
)


@dataclass(frozen=True, kw_only=True)
class ToolOutput:
    """A tool's output that is about to be stored.

    First the message is created with `message_fields`; then `store_full_text` is called with it in
    the same transaction.
    """

    message_fields: dict[str, Any]
    full_text: str | None = None

    def render_content(self, seq: int) -> str:
        """Return the text that message number `seq` will hold, the note at its end included."""
        content: str = self.message_fields["content"]
        if self.full_text is None:
            return content
        stored_chars, total_chars = len(_cut_to_max_bytes(self.full_text)), len(self.full_text)
        note = FULL_OUTPUT_NOTE if stored_chars == total_chars else PARTIAL_OUTPUT_NOTE
        return content + note.format(
            tool=read_tool_output.TOOL.name, seq=seq, kept=stored_chars, total=total_chars
        )

    def store_full_text(self, message: Message) -> None:
        """Store the whole output as a file of the message, and add a note for the model.

        The note says with which tool and number the model can read the file.
        """
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
            data=b"",  # nothing beyond the text
            text=text,
            token_estimate=estimate_tokens(len(text)),
        )
        message.content = self.render_content(message.seq)
        message.tool_result_limit = _get_result_limit(message.content)
        message.save(update_fields=["content", "tool_result_limit", "token_estimate"])


def build_tool_output(session: Session, tool_name: str, text: str) -> ToolOutput:
    """Return what to store of a tool's output, as the compactor decides. Never raises."""
    truncation = get_compactor().truncate_tool_output(session, tool_name, clean_text(text))
    fields = {
        "content": truncation.content,
        "original_chars": truncation.original_chars,
        "tool_result_limit": _get_result_limit(truncation.content),
    }
    # A part that was read out of a stored output is not stored as a file once more.
    is_reread = tool_name == read_tool_output.TOOL.name
    full_text = None if is_reread else truncation.full_text
    return ToolOutput(message_fields=fields, full_text=full_text)


def _get_result_limit(content: str) -> int | None:
    """Return a limit under which the save hook of messages leaves the content as it is.

    None is the default limit; a compaction policy may allow more characters.
    """
    # The save hook cuts every result that is stored, also those that never pass through here
    # (imports, an embedder's own code). Only the session's policy knows that a longer text is
    # allowed, and the hook can ask nobody; so the allowed length is stored in the row.
    return None if cut_tool_result(content)[0] == content else len(content)


def _cut_to_max_bytes(text: str) -> str:
    """Return the beginning of the text that fits into MAX_STORED_BYTES, in whole characters."""
    if len(text) * 4 <= MAX_STORED_BYTES:  # UTF-8 needs at most 4 bytes for a character
        return text
    return text[:MAX_STORED_BYTES].encode()[:MAX_STORED_BYTES].decode(errors="ignore")
