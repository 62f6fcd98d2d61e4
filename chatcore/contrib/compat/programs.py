"""Coding programs: how each names its conversations, and which of its requests belong to none.

Programs run agents of their own below a conversation, several at once. The requests of such a
subagent carry the name of the whole conversation and the subagent's own: it has a session below
that of the conversation, and neither reads the other.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from knox.models import AuthToken

MAX_SESSION_NAME_CHARS = 255
SESSION_HEADER = "X-Session-Id"

Headers = Mapping[str, str]  # which finds a header in any spelling
Fields = Mapping[str, Any]  # of a request's body


@dataclass(frozen=True, kw_only=True)
class Keeping:
    """Whether conversations that programs do not ask to store are stored for a token.

    `token_id` identifies the token; it is empty for a browser.
    """

    is_on: bool = True
    token_id: str = ""


@dataclass(frozen=True, kw_only=True)
class ThreadName:
    """The name of a request's session, and that of the session above it; empty if there is none.

    `program` is the program that sent the request, if it is a known one. A request that `is_beside`
    the conversation is answered without it and leaves it as it is. `summary_length` is the number
    of messages at its beginning that are known to be a summary of the program's own.
    """

    name: str = ""
    parent: str = ""
    program: str = ""
    is_beside: bool = False
    summary_length: int = 0


@dataclass(frozen=True, kw_only=True)
class _Names:
    """What the request of a program says of its conversation.

    `session` is the name of the whole conversation, `subagent` that of the subagent that sends the
    request, and `above` that of the subagent above it, empty below the conversation itself. Where
    `has_own_names`, that of a subagent is a name without the conversation's, and `above` may be
    that of the conversation.
    """

    session: str = ""
    subagent: str = ""
    above: str = ""
    has_own_names: bool = False
    is_beside: bool = False


def get_keeping(token: AuthToken | None) -> Keeping:
    """Return what the server and the token of a request say; a browser has no token."""
    is_on = settings.CHATCORE["KEEP_PROGRAM_CONVERSATIONS"]
    if token is None:
        return Keeping(is_on=is_on)
    token_name = getattr(token, "token_name", None)  # not every token has one
    is_on = is_on and (token_name is None or token_name.keeps_conversations)
    return Keeping(is_on=is_on, token_id=token.digest)


def name_thread(name: str, headers: Headers, body: Fields, keeping: Keeping) -> ThreadName:
    """Return the thread of a request.

    `name` is what its user calls the conversation, which wins. Otherwise the program's own name
    counts if its conversations are kept.
    """
    program, names = _read_names(headers, body)
    session_name = name or (_check(names.session) if keeping.is_on else "")
    if not session_name:
        return ThreadName(program=program, is_beside=names.is_beside)
    has_own_names = names.has_own_names and not name
    parent = ""
    if names.subagent:
        parent = names.above if has_own_names else _join(session_name, names.above, names.session)
        session_name = names.subagent if has_own_names else _join(session_name, names.subagent)
    elif names.above:
        parent = names.above
    return ThreadName(
        name=session_name, parent=_check(parent), program=program, is_beside=names.is_beside
    )


def _read_claude_code(headers: Headers, body: Fields) -> _Names | None:
    """Claude Code: a header, or else a member of the metadata, and a header for subagents."""
    session = headers.get("X-Claude-Code-Session-Id") or _read_user_id(body)
    subagent = headers.get("X-Claude-Code-Agent-Id", "")
    if not session and not subagent:
        return None
    above = headers.get("X-Claude-Code-Parent-Agent-Id", "")
    return _Names(session=session, subagent=subagent, above=above)


def _read_user_id(body: Fields) -> str:
    """Return the session in `metadata.user_id`, which older versions of Claude Code write alone."""
    metadata = body.get("metadata")
    user_id = metadata.get("user_id") if isinstance(metadata, Mapping) else None
    if not isinstance(user_id, str):
        return ""
    match = re.fullmatch(r"user_\w+_account_[\w-]*_session_([\w-]+)", user_id)
    if match:
        return match[1]
    members = _parse_object(user_id) if user_id.startswith("{") else {}
    session = members.get("session_id")
    return session if isinstance(session, str) else ""


def _read_codex(headers: Headers, body: Fields) -> _Names | None:
    """Codex CLI: only `thread-id` is a thread's own, the other names are the parent's as well.

    Over a WebSocket the same members stand in each request, with the headers of the handshake.
    """
    metadata = body.get("client_metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}

    def read(name: str) -> str:
        value = metadata.get(name) or metadata.get(name.replace("-", "_")) or headers.get(name)
        return value if isinstance(value, str) else ""

    turn = _parse_object(read("x-codex-turn-metadata"))
    above = read("x-codex-parent-thread-id")
    is_codex = headers.get("Originator", headers.get("User-Agent", "")).startswith("codex")
    if not (is_codex or turn or above):
        return None
    session, cache_key = read("session-id"), body.get("prompt_cache_key")
    thread = read("thread-id") or session or (cache_key if isinstance(cache_key, str) else "")
    # Its own summaries and notes are written in the thread that they are about.
    is_beside = turn.get("request_kind", "turn") not in ("turn", "prewarm")
    if not above:
        is_beside = is_beside or bool(read("x-openai-subagent"))
        return _Names(session=thread, is_beside=is_beside)
    return _Names(session=session or above, subagent=thread, above=above, has_own_names=True)


def _read_opencode(headers: Headers, body: Fields) -> _Names | None:
    """opencode: each session has a name, also that of a subagent, which names its parent."""
    above = headers.get("X-Parent-Session-Id", "")
    if not above and not headers.get("User-Agent", "").startswith("opencode/"):
        return None
    return _Names(session=headers.get("X-Session-Affinity", ""), above=above)


CLAUDE_CODE, CODEX, OPENCODE = "Claude Code", "Codex", "opencode"
UNKNOWN = ""  # the programs that name nothing
# The only table of programs that name their conversations.
PROGRAMS: Mapping[str, Callable[[Headers, Fields], _Names | None]] = {
    CLAUDE_CODE: _read_claude_code,
    CODEX: _read_codex,
    OPENCODE: _read_opencode,
}
# A line of the user's last message by which a program has its whole history summarized, to go on
# with the summary in its place.
_SUMMARY_PROMPTS: Mapping[str, tuple[str, ...]] = {
    CLAUDE_CODE: (
        r"CRITICAL: Respond with TEXT ONLY\. Do NOT call any tools\.",
        r"Your task is to create a detailed summary of (the|this) conversation",
    ),
    CODEX: (r"You are performing a CONTEXT CHECKPOINT COMPACTION\.",),
    OPENCODE: (r"Provide a detailed prompt for continuing our conversation above\.",),
    UNKNOWN: (
        # Continue
        r"Please provide a concise summary of our conversation so far, capturing the key context,",
        # Qwen Code
        r"You are the component that summarizes a conversation when its context window is about",
    ),
}
# The same for other things beside the conversation: what could be said next, a note.
_CLAUDE_PROMPTS = (
    r"\[SUGGESTION MODE:",
    r"(<system-reminder>)?This is a side question from the user\.",
    r"The user stepped away and is coming back\.",
    r"Describe your most recent action in 3-5 words",
    r"You are now acting as the memory extraction subagent\.",
)
_OTHER_PROMPTS: Mapping[str, tuple[str, ...]] = {
    CLAUDE_CODE: _CLAUDE_PROMPTS,
    UNKNOWN: (
        *_CLAUDE_PROMPTS,  # Qwen Code has some of these
        r"Scan the recent conversation history in your context and update durable managed memory",
        # Gemini CLI and its descendants ask who speaks next.
        r"Analyze \*only\* the content and structure of your immediately preceding response",
    ),
}


def _compile_lines(prompts: Mapping[str, tuple[str, ...]]) -> Mapping[str, re.Pattern[str]]:
    return {
        program: re.compile(rf"^({'|'.join(lines)})", re.MULTILINE)
        for program, lines in prompts.items()
    }


_SUMMARY_LINES = _compile_lines(_SUMMARY_PROMPTS)
_OTHER_LINES = _compile_lines(_OTHER_PROMPTS)


def is_summary_prompt(program: str, text: str) -> bool:
    """Return True for a text by which a program has its conversation summarized."""
    return program in _SUMMARY_LINES and bool(_SUMMARY_LINES[program].search(text))


def is_side_prompt(program: str, text: str) -> bool:
    """Return True for a text by which a program asks for something beside the conversation."""
    is_other = program in _OTHER_LINES and bool(_OTHER_LINES[program].search(text))
    return is_other or is_summary_prompt(program, text)


def find_program(headers: Headers, body: Fields) -> str:
    """Return the program that sent a request; empty for an unknown one."""
    return _read_names(headers, body)[0]


def _read_names(headers: Headers, body: Fields) -> tuple[str, _Names]:
    """Return the program that sent a request, empty for an unknown one, and its names."""
    for program, read in PROGRAMS.items():
        names = read(headers, body)
        if names:
            return program, names
    return "", _Names()


def _join(name: str, subagent: str, session: str = "") -> str:
    """Return the name of a subagent's session in a named conversation.

    It is that of the conversation without a subagent, or with the conversation's own name.
    """
    if subagent in ("", session):
        return name
    joined_name = f"{name}/{subagent}"
    return _check(joined_name) or hashlib.sha256(joined_name.encode()).hexdigest()


def _check(name: str) -> str:
    """Return a name if it can be that of a session, else an empty one."""
    return name if len(name) <= MAX_SESSION_NAME_CHARS and name.isprintable() else ""


def _parse_object(text: str) -> Mapping[str, Any]:
    value: object = None
    with suppress(ValueError, RecursionError):
        value = json.loads(text)
    return value if isinstance(value, Mapping) else {}
