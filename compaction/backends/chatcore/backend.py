"""Chatcore as the host of compaction: the one place that knows both. It translates and decides nothing."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from chatcore import signals
from chatcore.events import log as event_log
from chatcore.turns import lifecycle
from compaction.backends.chatcore.contexts import ContextStore
from compaction.backends.chatcore.requests import RequestAdapter
from compaction.backends.chatcore.subjects import SessionReader
from compaction.backends.chatcore.writing import SummaryModelCaller


class ChatcoreBackend(SessionReader, ContextStore, RequestAdapter, SummaryModelCaller):
    """Sessions, messages and providers of chatcore, in compaction's words."""

    def subscribe_to_responses(self, receiver: Callable[..., None], uid: str) -> None:
        """Listen to the only signal."""
        signals.response_completed.connect(receiver, dispatch_uid=uid)

    def announce_events(
        self, session_id: UUID, *session_events: tuple[str, dict[str, Any]]
    ) -> None:
        """Into the session's event log."""
        event_log.append_events(session_id, *session_events)

    def recover_turns(self) -> int:
        """Turns whose process died."""
        return lifecycle.recover_dead_turns()
