"""Chatcore as the host of compaction: the one place that knows both. It translates and decides nothing."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from chatcore import events, signals, turns
from compaction.backends.chatcore.contexts import Contexts
from compaction.backends.chatcore.requests import Requests
from compaction.backends.chatcore.subjects import Subjects
from compaction.backends.chatcore.writing import Writing

__all__ = ["ChatcoreBackend"]


class ChatcoreBackend(Subjects, Contexts, Requests, Writing):
    """Sessions, messages and providers of chatcore, in compaction's words."""

    def on_response(self, receiver: Callable[..., None], uid: str) -> None:
        """Listen to the only signal."""
        signals.response_completed.connect(receiver, dispatch_uid=uid)

    def announce(self, session_id: UUID, *events_: tuple[str, dict[str, Any]]) -> None:
        """Into the session's event log."""
        events.append(session_id, *events_)

    def recover(self) -> int:
        """Turns whose process died."""
        return turns.recover()
