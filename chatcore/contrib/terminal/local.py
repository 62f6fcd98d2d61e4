"""A conversation in a terminal of this machine. It starts turns as REST does, and follows them."""

import contextlib
import io
import time
from collections.abc import Iterator

from django.core.management import CommandError, call_command
from rich.console import Console

from chatcore import models
from chatcore.accounts.rights import ModelNotAllowed, select_models
from chatcore.context import revisions
from chatcore.contrib.terminal.screen import (
    EXIT_CANNOT_FIT,
    EXIT_OK,
    EXIT_PROVIDER,
    EXIT_SIGN_IN,
    EXIT_USAGE,
    NOTHING_TO_REWIND_TEXT,
    ChatUnavailable,
    Screen,
    TurnResult,
)
from chatcore.events import log as event_log
from chatcore.events.types import PAUSE_EVENTS, Event, EventType
from chatcore.models import Session, Turn
from chatcore.turns import control, leases

__all__ = [
    "EXIT_CANNOT_FIT",
    "EXIT_OK",
    "EXIT_PROVIDER",
    "EXIT_SIGN_IN",
    "EXIT_USAGE",
    "Terminal",
]

CANCEL_SECONDS = 10  # for the turn to end after Ctrl-C
USAGE_SECONDS = 0.3  # for the event about the context that follows the end of a turn
POLL_SECONDS = 0.03


class Terminal(Screen):
    """A session of this machine's database at a console."""

    def __init__(
        self,
        session: Session,
        console: Console,
        *,
        notices: Console | None = None,
        as_json: bool = False,
    ) -> None:
        super().__init__(console, notices=notices, as_json=as_json)
        self.session = session
        self.usage = _load_last_usage(session)

    def _describe_session(self) -> str:
        return f"{self.session.model or 'no model'} · {self.session.pk}"

    def _get_session_id(self) -> str:
        return str(self.session.pk)

    def _follow_message(self, text: str) -> TurnResult:
        try:
            turn = control.start_turn(self.session, content=text)
        except leases.TurnRunning as error:
            activity = "still answering"
            if error.is_waiting:
                activity = "waiting for results of a client's tools"
            sentence = f"This session is {activity} (turn {error.turn_id})."
            raise ChatUnavailable(sentence, EXIT_USAGE) from None
        except (control.NoModel, ModelNotAllowed) as error:
            sentence = f"{error} See `chatcore chat --model` and /models."
            raise ChatUnavailable(sentence, EXIT_USAGE) from None
        self._follow_turn(turn)
        turn.refresh_from_db()
        answer = turn.messages.filter(role="assistant").order_by("-seq").first()
        return TurnResult(
            turn=str(turn.pk),
            status=turn.status,
            content=answer.content if answer else "",
            notices=turn.list_new_notices(),
            error=turn.error,
        )

    def _follow_turn(self, turn: Turn) -> None:
        try:
            for event in _read_turn_events(turn):
                self._show_event(event)
        except KeyboardInterrupt:
            control.cancel_turn(self.session.pk)
            with contextlib.suppress(TimeoutError):
                control.wait_for_turn(turn.pk, CANCEL_SECONDS)
            for event in _read_turn_events(turn):
                if event.name == EventType.TURN_CANCELLED:
                    self._show_stop()

    def _compact(self, instructions: str) -> str:
        session_id = str(self.session.pk)
        return self._call_management_command(
            "compact_session", session_id, f"--instructions={instructions}"
        )

    def _rewind(self, version: int | None) -> int:
        self.session.refresh_from_db()
        if not self.session.context_version:
            raise ChatUnavailable(NOTHING_TO_REWIND_TEXT, EXIT_USAGE)
        target_version = self.session.context_version - 1 if version is None else version
        try:
            revisions.rewind_context(self.session.pk, to_version=target_version)
        except models.ContextRevision.DoesNotExist:
            sentence = f"There is no context version {target_version}."
            raise ChatUnavailable(sentence, EXIT_USAGE) from None
        return target_version

    def _list_models(self) -> list[str]:
        return [str(model) for model in select_models(self.session.owner_id).filter_usable()]

    def _export(self) -> str:
        return self._call_management_command("export", str(self.session.pk))

    def _call_management_command(self, *command: str) -> str:
        output = io.StringIO()
        try:
            call_command(*command, stdout=output)
        except CommandError as error:
            raise ChatUnavailable(f"{output.getvalue()}{error}", EXIT_USAGE) from None
        return output.getvalue()


def _load_last_usage(session: Session) -> dict[str, object]:
    """Return the data of the session's last event `context.usage`; empty without one."""
    usage = (
        session.events.filter(name=EventType.CONTEXT_USAGE)
        .order_by("-seq")
        .values_list("data", flat=True)
        .first()
    )
    return dict(usage or {})


def _read_turn_events(turn: Turn) -> Iterator[Event]:
    """Yield the events of a turn as they come, and the event `context.usage` after its end.

    That event comes from another thread, and sometimes not at all. So the wait for it is short.
    """
    last_seq = turn.first_event_seq - 1
    end_time: float | None = None
    while end_time is None or time.monotonic() < end_time + USAGE_SECONDS:
        new_events = event_log.read_events(turn.session_id, last_seq)
        for event in new_events:
            last_seq = event.seq
            yield event
            if event.name in PAUSE_EVENTS and event.data.get("turn") == str(turn.pk):
                end_time = time.monotonic()
            if event.name == EventType.CONTEXT_USAGE and end_time:
                return
        if not new_events:
            time.sleep(POLL_SECONDS)
