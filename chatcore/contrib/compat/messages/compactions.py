"""Compact for Anthropic's clients: runs of our engine, and the blocks that stand for their result.

A block has the summary, and word for word what the engine leaves as it is, since its client sends
it in place of everything before. It is signed for its owner.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.contrib.auth.models import User
from django.core import signing

from chatcore.base.rest.routes import get_base_path
from chatcore.context import builder, summary_block
from chatcore.context.compactor import CompactionReport, get_compactor
from chatcore.contrib.compat.chat_completions import memory
from chatcore.contrib.compat.client_messages import ClientMessage, import_messages
from chatcore.contrib.compat.content_parts import parse_required_text
from chatcore.contrib.compat.messages.context_edits import CompactEdit, Summary
from chatcore.contrib.compat.messages.errors import MessagesProblem
from chatcore.contrib.compat.messages.message_form import MessageForm
from chatcore.contrib.compat.messages.message_format import Compaction
from chatcore.contrib.compat.messages.request import MessageRequest
from chatcore.contrib.compat.programs import SESSION_HEADER
from chatcore.models import Session
from chatcore.providers.base import ChatMessage
from chatcore.sessions.deletion import delete_session

SALT = "chatcore.messages.compaction"
DEFAULT_TRIGGER = 150_000  # tokens
WINDOW_SHARE = 0.8  # of the window, from which on a conversation is compacted in any case
SPEAKERS = {"user": "User", "assistant": "Assistant", "tool": "Result of a tool"}
# Asked where everything that was said lies in the block, also the question.
GO_ON = "Go on."


def check_block(user: User, path: str, block: Mapping[str, object]) -> str:
    """Return what a block says. Raises the 400 problem if its signature is not right."""
    content = parse_required_text(block.get("content"), f"{path}.content")
    signature = block.get("signature")
    if signature is not None and not (
        isinstance(signature, str) and _sign(user, content) == signature
    ):
        detail = f"{path}: The signature of the compaction block is not ours for this content."
        raise MessagesProblem("compaction_signature_invalid", detail)
    return content


def add_summary(user: User, request: MessageRequest, content: str) -> MessageRequest:
    """Return the request with what a block says, which was said before its messages.

    A session that has messages knows it already; in a new one it becomes the first message.
    """
    messages = request.messages or [ClientMessage(role="user", content=GO_ON)]
    if not request.thread.name:
        return replace(request, messages=messages, summary=content)
    session = memory.find_session(user, request.thread.name)
    if session is None or not session.last_seq:
        messages = [_build_summary_message(content), *messages]
    return replace(request, messages=messages)


def summarize(user: User, request: MessageRequest, edit: Summary) -> Compaction:
    """Compact the whole conversation of a request; a session that it names keeps it."""
    if request.thread.name:
        session = memory.find_session(user, request.thread.name) or memory.create_session(
            user, request
        )
        memory.store_history(session, request)
        return _compact(user, session, edit, is_stored=True)
    return _compact_copy(user, request, edit)


def compact_if_asked(
    user: User, request: MessageRequest, edit: CompactEdit
) -> tuple[MessageRequest, Compaction | None]:
    """Compact what a request says, or its session, if that has reached the trigger of the edit.

    Returns the request to answer: its newest messages, behind the block.
    """
    model = request.model
    limit = model.request_limit
    trigger = edit.trigger.value if edit.trigger else DEFAULT_TRIGGER
    if limit:
        trigger = min(trigger, int(limit * WINDOW_SHARE))
    compactor = get_compactor()
    if request.thread.name:
        session = memory.find_session(user, request.thread.name)
        if session is None or compactor.estimate_tokens(session) < trigger:
            return request, None
        return request, _compact(user, session, edit, is_stored=True)
    provider_request = MessageForm(request).build_provider_request()
    if compactor.estimate_request(model, provider_request) < trigger:
        return request, None
    compaction = _compact_copy(user, request, edit)
    newest_messages = request.messages[_find_newest(request.messages) :]
    return add_summary(
        user, replace(request, messages=newest_messages), compaction.content
    ), compaction


def _compact_copy(user: User, request: MessageRequest, edit: Summary) -> Compaction:
    """Compact a conversation of which nothing is to stay: its session is deleted again."""
    session = Session(owner=user, model=request.model, tools=[])
    session.system_prompt = request.system or ""
    session.save(force_insert=True)
    try:
        earlier_messages = [_build_summary_message(request.summary)] if request.summary else []
        import_messages(session, [*earlier_messages, *request.messages])
        return _compact(user, session, edit, is_stored=False)
    finally:
        delete_session(session.pk)


def _compact(user: User, session: Session, edit: Summary, *, is_stored: bool) -> Compaction:
    report = get_compactor().compact_session(
        session, instructions=(edit.instructions or "").strip()
    )
    if report is None or report.status not in ("applied", "skipped", "fell_back"):
        raise MessagesProblem(
            "compaction_unavailable", "The conversation could not be compacted.", status=529
        )
    session.refresh_from_db()
    parts = [session.compacted_summary or "", *_render_messages(builder.build_request(session))]
    content = "\n\n".join(part for part in parts if part)
    if not content:
        raise MessagesProblem("compaction_nothing_to_summarize", "There is nothing to summarize.")
    block = {
        "type": "compaction",
        "content": content,
        "encrypted_content": None,
        "signature": _sign(user, content),
    }
    headers = {}
    if is_stored:
        link = f"{get_base_path()}/api/v1/compactions/{report.run_id}"
        headers = {SESSION_HEADER: str(session.pk), "X-Compaction": link}
    return Compaction(block=block, usage=_format_usage(report), headers=headers)


def _build_summary_message(content: str) -> ClientMessage:
    return ClientMessage(role="user", content=summary_block.wrap_in_envelope(content))


def _render_messages(request: Any) -> Iterator[str]:
    """Yield the messages that the engine leaves as they are, each with its speaker."""
    for message in request.messages:
        if not message.aside:
            yield f"{SPEAKERS[message.role]}: {_render_message(message)}"


def _render_message(message: ChatMessage) -> str:
    texts = [message.content]
    texts += [f"[calls {call.name} with {call.arguments}]" for call in message.tool_calls]
    return "\n".join(text for text in texts if text)


def _find_newest(messages: Sequence[ClientMessage]) -> int:
    """Return where the newest messages begin: a question, or calls with their results."""
    start = len(messages) - 1
    while start > 0 and messages[start].role == "tool":
        start -= 1
    return max(start, 0)


def _format_usage(report: CompactionReport) -> dict[str, object]:
    return {
        "type": "compaction",
        "input_tokens": report.input_tokens,
        "output_tokens": report.output_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
    }


def _sign(user: User, content: str) -> str:
    return signing.Signer(salt=SALT).signature(f"{user.pk}:{content}")
