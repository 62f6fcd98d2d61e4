"""Recognize calls that clients make beside a conversation: for a title, a summary, a search.

Such a call names the same session, because the client sends the same headers with all its calls.
It is answered without a memory, and the session does not change.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from chatcore.contrib.compat.client_messages import ClientMessage
from chatcore.contrib.compat.programs import (
    CLAUDE_CODE,
    ThreadName,
    is_side_prompt,
    is_summary_prompt,
)
from chatcore.models import Session

HEAD_CHARS = 1_000  # of a text; what is asked for stands at its beginning

# Tasks that chat applications and coding tools give a model about a conversation.
_LABELS = (
    r"(?:titles?|commit messages?|tags|follow[- ]?up questions?|search quer(?:y|ies)|"
    r"(?:chat|conversation|thread|session) names?|emojis?)"
)
_LABEL_TASK = re.compile(
    rf"\b(?:generat\w+|creat\w+|writ\w+|suggest\w*|provid\w+|com\w+ up with|output\w*)\b"
    rf"[^.!?\n]{{0,80}}\b{_LABELS}\b|\b{_LABELS}\W{{1,3}}(?:generator|writer)\b",
    re.IGNORECASE,
)
# Open WebUI begins the texts of its own tasks so, and sends no system text with them.
_TASK_HEADING = re.compile(r"\A\s*#{2,4} Task:", re.IGNORECASE)
# The conversation stands inside such a text, unless it asks to answer a question from documents.
_QUOTED_HISTORY = "<chat_history>"
_CONVERSATION_LABEL = re.compile(
    r"\b(?:chat|conversation|thread|session)\b[^.!?\n]{0,20}\b(?:title|name)\b|"
    r"\btitles?\b[^.!?\n]{0,40}\b(?:chat|conversation|thread|session)\b|\btitle generator\b",
    re.IGNORECASE,
)
# Programs that shorten their conversation have it summarized in a request of its own: a system text
# that asks for the summary of a conversation, and the conversation as the text of one message.
_SUMMARY_TASK = re.compile(
    r"\b(?:summar(?:y|ies|i[sz]\w+)|compact(?:s|ing|ion)?|condens(?:e|es|ing|ation))\b",
    re.IGNORECASE,
)
_CONVERSATION = re.compile(
    r"\b(?:conversation|chat|session|dialog(?:ue)?|transcript|history|context)s?\b", re.IGNORECASE
)
_QUOTED_TAG = re.compile(r"^<(?:conversation|chat_history|transcript)>", re.MULTILINE)
_ROLES = r"(?:(user|human)|(assistant|model|agent|bot|ai))"
_QUOTED_ROLE = re.compile(
    rf"^[#*\[<(\- ]{{0,6}}{_ROLES}(?: [a-z ]{{1,20}})?(?:[*\])>]{{1,4}}:?|:|$)|"
    rf"\brole['\"]?\s?[:=]\s?['\"]?{_ROLES}\b",
    re.IGNORECASE | re.MULTILINE,
)


class AnyRequest(Protocol):
    """A request of one of the three APIs."""

    @property
    def thread(self) -> ThreadName: ...

    @property
    def system(self) -> str | None: ...

    @property
    def messages(self) -> Sequence[ClientMessage]: ...

    @property
    def tools(self) -> Sequence[Mapping[str, object]]: ...


def asks_for_summary(
    system: str, messages: Sequence[ClientMessage], tools: Sequence[object]
) -> bool:
    """Return True if a request has a conversation that it quotes summarized."""
    if tools or not messages or any(message.role != "user" for message in messages):
        return False
    heading = system[:HEAD_CHARS]
    if not (_SUMMARY_TASK.search(heading) and _CONVERSATION.search(heading)):
        return False
    text = "\n".join(message.content for message in messages)
    if _QUOTED_TAG.search(text):
        return True
    roles = [match.groups() for match in _QUOTED_ROLE.finditer(text)]
    return any(each[0] or each[2] for each in roles) and any(each[1] or each[3] for each in roles)


def asks_beside(program: str, messages: Sequence[ClientMessage]) -> bool:
    """Return True if the newest message is one by which a program asks for something else."""
    if not messages or messages[-1].role != "user":
        return False
    return is_side_prompt(program, messages[-1].content)


def is_summary_call(request: AnyRequest) -> bool:
    """Return True if a program asks for a summary, to go on with it in place of its history."""
    messages, program = request.messages, request.thread.program
    if (
        messages
        and messages[-1].role == "user"
        and is_summary_prompt(program, messages[-1].content)
    ):
        return True
    return asks_for_summary(request.system or "", messages, request.tools)


def may_ask_by_system(request: AnyRequest) -> bool:
    """Return True if the system text may ask for a summary of the history that follows it.

    A program asks so, and a bot that writes summaries has such a text as well. It is the program's
    if the conversation has another one.
    """
    has_answer = any(message.role == "assistant" for message in request.messages)
    if request.tools or not has_answer:
        return False
    heading = (request.system or "")[:HEAD_CHARS]
    return bool(_SUMMARY_TASK.search(heading) and _CONVERSATION.search(heading))


def is_side_call(request: AnyRequest, find_session: Callable[[], Session | None]) -> bool:
    """Return True if the request asks for something beside a conversation and does not continue it.

    `find_session` returns the session that the request names, None if it does not exist yet. A
    request with an answer in it has a history, so it is one only by a text that a program is known
    to ask with.
    """
    messages, thread = request.messages, request.thread
    if thread.is_beside or asks_beside(thread.program, messages):
        return True
    if not messages or any(message.role != "user" for message in messages):
        return False
    has_own_tools = any(not tool.get("native") for tool in request.tools)
    if thread.program == CLAUDE_CODE and not has_own_tools:
        # Its conversations and agents have tools. Titles and probes of a limit have none, and
        # searches only one that the provider runs.
        return True
    content = messages[-1].content
    heading = content[:HEAD_CHARS]
    asks_for_label = _QUOTED_HISTORY in content or _LABEL_TASK.search(heading)
    if _TASK_HEADING.match(heading) and asks_for_label:
        return True
    system = (request.system or "")[:HEAD_CHARS]
    wants_summary = asks_for_summary(system, messages, request.tools)
    if not (wants_summary or _LABEL_TASK.search(system)):
        return False
    session = find_session()
    if session and request.system == session.system_prompt:
        return False
    # A bot that writes commit messages may have a memory. One that names chats has none.
    return wants_summary or session is not None or bool(_CONVERSATION_LABEL.search(system))
