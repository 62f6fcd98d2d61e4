"""Decide how much of a tool's output is stored in its message, and keep the whole beside it."""

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from django.core.exceptions import SuspiciousFileOperation

from chatcore.base.databases.outages import StorageAway
from chatcore.base.token_estimate import estimate_tokens
from chatcore.base.truncation import clean_text, cut_tool_result
from chatcore.context.compactor import get_compactor
from chatcore.files import output_store
from chatcore.files.output_store import StoredObject, StoreFull
from chatcore.models import Attachment, Message, Session
from chatcore.tools import read_attachment, read_tool_output

logger = logging.getLogger(__name__)

MAX_STORED_BYTES = 10 * 1024 * 1024  # of one output, in UTF-8
# A result that a client sends again is compared with the stored message, this note included. So
# these texts cannot change without making old results look different.
FULL_OUTPUT_NOTE = "\n\n[The whole output is kept: {tool} with message {seq} reads it.]"
PARTIAL_OUTPUT_NOTE = (
    "\n\n[The first {kept:,} of {total:,} characters are kept:"
    " {tool} with message {seq} reads them.]"
)

NO_SPACE_NOTE = "\n\n[The whole output is not kept: there is no room for it.]"
NOT_STORED_NOTE = "\n\n[The whole output is not kept: it could not be stored.]"


@dataclass(frozen=True, kw_only=True)
class ToolOutput:
    """A tool's output that is about to be stored.

    First `put_away` is called, outside any transaction. Then, in one, the message is created with
    `message_fields`, and `attach_full_text` is called with it.
    """

    message_fields: dict[str, Any]
    full_text: str | None = None
    stored_text: StoredObject | None = field(default=None, compare=False)
    refusal: str = ""  # the note that says why the full text is not kept

    def put_away(self, session: Session) -> "ToolOutput":
        """Return the output with its full text in the store, or with the reason why it is not.

        A store that is full costs the full text and never the turn. One that is away costs
        nothing: the text stays in the database. Never raises.
        """
        if self.full_text is None or not output_store.has_store():
            return self
        try:
            text = _cut_to_max_bytes(self.full_text)
            stored_text = output_store.save_text(session.owner_id, text)
        except StoreFull:
            return replace(self, refusal=NO_SPACE_NOTE)
        except StorageAway:
            return self
        except (OSError, SuspiciousFileOperation):
            logger.exception("an output of session %s could not be stored", session.pk)
            return replace(self, refusal=NOT_STORED_NOTE)
        return replace(self, stored_text=stored_text)

    def discard_unused(self) -> None:
        """Delete the file if no message refers to it; a sweep finds what stays."""
        if self.stored_text:
            with contextlib.suppress(Exception):
                output_store.delete_unused([self.stored_text.name])

    def is_in(self, message_content: str, seq: int) -> bool:
        """Return True if message number `seq`, with this content, was made of this output."""
        return message_content in self._render_variants(seq)

    def attach_full_text(self, message: Message) -> None:
        """Store where the whole output is, and add a note for the model.

        The note says with which tool and number the model can read it, or why it is not kept.
        """
        if self.full_text is None:
            return
        self.store_full_text(message)
        self.write_note(message)
        message.save(update_fields=["content"])

    def write_note(self, message: Message) -> None:
        """Write the note into a numbered message, which the caller saves."""
        message.content = self._render_content(message.seq, self.refusal)
        message.tool_result_limit = _get_result_limit(message.content)

    def store_full_text(self, message: Message) -> None:
        """Store where the whole output of a stored message is, unless it was refused."""
        assert self.full_text is not None
        if self.refusal:
            return
        text = _cut_to_max_bytes(self.full_text)
        attachment = Attachment.objects.create(
            session_id=message.session_id,
            message=message,
            kind=Attachment.Kind.OUTPUT,
            name=f"{message.tool_name}.txt",
            media_type="text/plain",
            size=len(text.encode()),
            data=b"",
            text="" if self.stored_text else text,
            token_estimate=estimate_tokens(len(text)),
        )
        if self.stored_text:
            self.stored_text.attach(attachment)

    def _render_variants(self, seq: int) -> Iterator[str]:
        if self.full_text is None:
            yield self.message_fields["content"]
            return
        for refusal in ("", NO_SPACE_NOTE, NOT_STORED_NOTE):
            yield self._render_content(seq, refusal)

    def _render_content(self, seq: int, refusal: str) -> str:
        """Return the text that message number `seq` holds, the note at its end included."""
        assert self.full_text is not None
        content: str = self.message_fields["content"]
        if refusal:
            return content + refusal
        stored_chars, total_chars = len(_cut_to_max_bytes(self.full_text)), len(self.full_text)
        note = FULL_OUTPUT_NOTE if stored_chars == total_chars else PARTIAL_OUTPUT_NOTE
        return content + note.format(
            tool=read_tool_output.TOOL.name, seq=seq, kept=stored_chars, total=total_chars
        )


def build_tool_output(session: Session, tool_name: str, text: str) -> ToolOutput:
    """Return what to store of a tool's output, as its session's policy decides. Never raises."""
    policy = get_compactor().choose_policy(*session.policy_names)
    truncation = policy.truncate_output(clean_text(text))
    fields = {
        "content": truncation.content,
        "original_chars": truncation.original_chars,
        "tool_result_limit": _get_result_limit(truncation.content),
    }
    # A part that was read out of a stored file is not stored as a file once more.
    is_reread = tool_name in (read_attachment.TOOL.name, read_tool_output.TOOL.name)
    full_text = None if is_reread else truncation.full_text
    return ToolOutput(message_fields=fields, full_text=full_text)


def _get_result_limit(content: str) -> int | None:
    """Return the limit that is stored with the content: None for the default one.

    The save hook cuts every result that is stored, also those that never pass through here
    (imports, an embedder's own code). Of a higher limit it asks the policy again.
    """
    return None if cut_tool_result(content)[0] == content else len(content)


def _cut_to_max_bytes(text: str) -> str:
    """Return the beginning of the text that fits into MAX_STORED_BYTES, in whole characters."""
    if len(text) * 4 <= MAX_STORED_BYTES:  # UTF-8 needs at most 4 bytes for a character
        return text
    return text[:MAX_STORED_BYTES].encode()[:MAX_STORED_BYTES].decode(errors="ignore")
