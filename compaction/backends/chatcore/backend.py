"""Chatcore as the host of compaction: the one place that knows both. It translates and decides nothing."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from chatcore import signals
from chatcore.events import log as event_log
from chatcore.turns import lifecycle
from compaction.backends.chatcore.contexts import Contexts
from compaction.backends.chatcore.requests import Requests
from compaction.backends.chatcore.subjects import Subjects
from compaction.backends.chatcore.writing import Writing


class ChatcoreBackend(Subjects, Contexts, Requests, Writing):
    """Sessions, messages and providers of chatcore, in compaction's words."""

    def on_response(self, receiver: Callable[..., None], uid: str) -> None:
        """Listen to the only signal."""
        signals.response_completed.connect(receiver, dispatch_uid=uid)

    def announce(self, session_id: UUID, *events_: tuple[str, dict[str, Any]]) -> None:
        """Into the session's event log."""
        event_log.append(session_id, *events_)

    def recover(self) -> int:
        """Turns whose process died."""
        return lifecycle.recover()
