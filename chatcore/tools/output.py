"""What is stored of a tool's output: the part that CHATCORE["TOOL_OUTPUT"] keeps, and the whole beside it where that says so."""

from dataclasses import dataclass
from typing import Any, Protocol

from django.conf import settings
from django.utils.module_loading import import_string

from chatcore.models import Attachment, Message, Session
from chatcore.sessions.token_estimate import estimate_tokens
from chatcore.sessions.truncation import TOOL_RESULT_MAX_CHARS, clean_text, cut_tool_result
from chatcore.tools import read_tool_output

WHOLE_BYTES = 10 * 1024 * 1024  # of UTF-8; what is kept of one output
KEPT = "\n\n[The whole output is kept: {tool} with message {seq} reads it.]"
PARTLY_KEPT = "\n\n[The first {kept:,} of {total:,} characters are kept: {tool} with message {seq} reads them.]"


class Cut(Protocol):
    """What the delegate answers. `original_chars` is None where nothing was cut; `whole` is what to keep beside the message."""

    @property
    def content(self) -> str: ...
    @property
    def original_chars(self) -> int | None: ...
    @property
    def whole(self) -> str | None: ...


@dataclass(frozen=True, kw_only=True)
class Output:
    """An output that is about to be stored: `fields` of its message, then `keep` in the same transaction."""

    fields: dict[str, Any]
    whole: str | None = None

    def shown(self, seq: int) -> str:
        """What the message of this number comes to hold."""
        content: str = self.fields["content"]
        if self.whole is None:
            return content
        kept, total = len(_beginning(self.whole)), len(self.whole)
        note = KEPT if kept == total else PARTLY_KEPT
        return content + note.format(
            tool=read_tool_output.TOOL.name, seq=seq, kept=kept, total=total
        )

    def keep(self, message: Message) -> None:
        """Store the whole beside the stored message, and tell the model in the message how to read it."""
        if self.whole is None:
            return
        text = _beginning(self.whole)
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
        message.content = self.shown(message.seq)
        message.tool_result_limit = _limit(message.content)
        message.save(update_fields=["content", "tool_result_limit", "token_estimate"])


def of(session: Session, tool_name: str, text: str) -> Output:
    """What to store of a tool's output. Asks the delegate, outside any transaction; without one it is the plain cut. Never raises."""
    text = clean_text(text)
    path = settings.CHATCORE["TOOL_OUTPUT"]
    if path is None:
        content, original = cut_tool_result(text)
        return Output(fields={"content": content, "original_chars": original})
    done: Cut = import_string(path)(session, tool_name, text)
    fields = {
        "content": done.content,
        "original_chars": done.original_chars,
        "tool_result_limit": _limit(done.content),
    }
    # What is read out of a kept output is not kept once more.
    return Output(
        fields=fields, whole=None if tool_name == read_tool_output.TOOL.name else done.whole
    )


def _limit(content: str) -> int | None:
    """What the save hook is told, so that it leaves alone what the policy allows."""
    return len(content) if len(content) > TOOL_RESULT_MAX_CHARS else None


def _beginning(text: str) -> str:
    """As much as may be kept, by whole characters."""
    if len(text) * 4 <= WHOLE_BYTES:
        return text
    return text[:WHOLE_BYTES].encode()[:WHOLE_BYTES].decode(errors="ignore")
