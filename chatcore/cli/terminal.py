"""A conversation in a terminal. It starts turns as REST does, and follows their events."""

import contextlib
import io
import json
import time
from collections.abc import Iterator
from typing import Any

from django.core.management import CommandError, call_command
from rich.console import Console
from rich.markup import escape

from chatcore import models
from chatcore.cli import meter
from chatcore.context import revisions
from chatcore.events import log as event_log
from chatcore.events.types import TURN_END_EVENTS, Event, EventType
from chatcore.models import Session, Turn
from chatcore.turns import leases, service
from models_registry.models import AiModel

# The exit codes of `chatcore chat`.
EXIT_OK = 0
EXIT_USAGE = 2
EXIT_PROVIDER = 3
EXIT_CANNOT_FIT = 4
EXIT_SIGN_IN = 5

CONTEXT_NOTE_RATIO = 0.60  # of the context window; above it a line about the context is shown
CANCEL_SECONDS = 10  # for the turn to end after Ctrl-C
USAGE_SECONDS = 0.3  # for the event about the context that follows the end of a turn
POLL_SECONDS = 0.03

# Control characters in a message could move the cursor, change the title of the window or write to
# the clipboard. Each is replaced by a visible character, except tab and line feed; a carriage
# return is removed.
CONTROL_SIGNS = (
    {code: 0x2400 + code for code in range(32)}
    | {0x7F: 0x2421}
    | dict.fromkeys(range(0x80, 0xA0), "\ufffd")
    | {9: 9, 10: 10, 13: None}
)
HELP = "/context  /compact [focus]  /rewind [N]  /models  /export  /quit"


class Terminal:
    """A session at a console. The public methods return an exit code of `chatcore chat`."""

    def __init__(self, session: Session, console: Console, *, as_json: bool = False) -> None:
        self.session = session
        self.console = console
        self.as_json = as_json
        self.usage = _load_last_usage(session)

    def send_message(self, text: str) -> int:
        """Send a message and show the answer as it comes.

        Ctrl-C stops the answer; the part that has come is stored.
        """
        try:
            turn = service.start_turn(self.session, content=text)
        except leases.TurnRunning as error:
            activity = "still answering"
            if error.is_waiting:
                activity = "waiting for results of a client's tools"
            sentence = f"This session is {activity} (turn {error.turn_id})."
            return self._print_error(sentence, EXIT_USAGE)
        except service.NoModel as error:
            sentence = f"{error} See `chatcore chat --model` and /models."
            return self._print_error(sentence, EXIT_USAGE)
        self._follow_turn(turn)
        turn.refresh_from_db()
        if self.as_json:
            self._print_json(turn)
        else:
            if turn.error:
                self._print(f"[red]{escape_text(turn.error['detail'])}[/]")
            self._show_context()
        return self._get_exit_code(turn)

    def run_loop(self) -> int:
        """Read and execute lines until /quit, the end of the input, or Ctrl-C twice in a row."""
        model_name = escape_text(str(self.session.model or "no model"))
        self._print(f"[dim]{model_name} · {self.session.pk} · {escape(HELP)}[/]")
        is_leaving = False
        while True:
            try:
                line = self.console.input(self._format_prompt()).strip()
            except EOFError:
                return EXIT_OK
            except KeyboardInterrupt:
                if is_leaving:
                    return EXIT_OK
                is_leaving = True
                self.console.print("\n[dim]Ctrl-C once more to leave[/]")
                continue
            is_leaving = False
            if line == "/quit":
                return EXIT_OK
            if line.startswith("/"):
                self._run_command(line)
            elif line:
                self.send_message(line)

    def _format_prompt(self) -> str:
        prompt = "[bold]› [/]"
        if not self.console.is_terminal or not self.usage:
            return prompt
        color = meter.choose_color(self.usage)
        return f"[{color}]{meter.format_usage(self.usage)}[/] {prompt}"

    def _follow_turn(self, turn: Turn) -> None:
        try:
            for event in _read_turn_events(turn):
                self._show_event(event)
        except KeyboardInterrupt:
            service.cancel_turn(self.session.pk)
            with contextlib.suppress(TimeoutError):
                service.wait_for_turn(turn.pk, CANCEL_SECONDS)
            for event in _read_turn_events(turn):
                if event.name == EventType.TURN_CANCELLED and not self.as_json:
                    self.console.print("\n[dim]stopped; the text so far is stored[/]")

    def _show_event(self, event: Event) -> None:
        if event.name == EventType.CONTEXT_USAGE:
            self.usage = event.data
        if self.as_json:
            return
        if event.name == EventType.MESSAGE_DELTA:
            self.console.print(
                event.data["text"].translate(CONTROL_SIGNS),
                end="",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )
        elif event.name == EventType.TOOL_CALL_STARTED:
            self.console.print(f"[dim]· {escape_text(event.data['name'])} …[/]")
        elif event.name == EventType.CONTEXT_TRIMMED:
            self.console.print(f"\n[yellow]{escape_text(event.data['notice'])}[/]")
        elif event.name == EventType.COMPACTION_STARTED:
            self.console.print("\n[dim]Optimizing conversation context…[/]")
        elif event.name in TURN_END_EVENTS:
            self.console.print()

    def _show_context(self) -> None:
        """Print how full the context is, in NeuroLink's words (docs/origins.md#neurolink).

        Compaction is promised only where it begins by itself, and nothing is said where it is off.
        """
        used_tokens = self.usage.get("estimated_input_tokens")
        window = self.usage.get("context_window")
        if not used_tokens or not window or self.usage.get("automatic") == "off":
            return
        ratio = used_tokens / window
        if not self.usage.get("should_compact"):
            if ratio > CONTEXT_NOTE_RATIO:
                self._print(f"[dim]Context: {ratio:.0%} used[/]")
            return
        self._print(
            f"[yellow]Context usage: {ratio:.0%} of window ({used_tokens:,} / {window:,} tokens)[/]"
        )
        if self.usage.get("automatic") == "on":
            self.console.print(
                "[yellow]Auto-compaction will trigger to preserve conversation quality.[/]"
            )

    def _run_command(self, line: str) -> None:
        name, _, argument = line[1:].partition(" ")
        session = str(self.session.pk)
        match name:
            case "context":
                self._show_usage_table()
            case "compact":
                instructions = f"--instructions={argument}"
                self._call_management_command("compact_session", session, instructions)
            case "rewind":
                self._rewind_context(argument)
            case "models":
                names = [str(model) for model in AiModel.objects.filter_usable()]
                text = "\n".join(names).translate(CONTROL_SIGNS)
                self.console.print(text, markup=False, highlight=False)
            case "export":
                self._call_management_command("export", session)
            case _:
                self._print(f"[dim]{escape(HELP)}[/]")

    def _show_usage_table(self) -> None:
        if self.usage:
            self.console.print(meter.build_usage_table(self.usage))
        else:
            self.console.print("[dim]Nothing was sent yet.[/]")

    def _call_management_command(self, *command: str) -> None:
        output = io.StringIO()
        try:
            call_command(*command, stdout=output)
        except CommandError as error:
            self._print(f"[red]{escape_text(str(error))}[/]")
        self.console.file.write(output.getvalue().translate(CONTROL_SIGNS))

    def _rewind_context(self, version: str) -> None:
        self.session.refresh_from_db()
        is_usable = version == "" or version.isdecimal()
        if not self.session.context_version or not is_usable:
            self._print(
                "[dim]There is nothing to rewind; /rewind N goes back to context version N.[/]"
            )
            return
        target_version = int(version) if version else self.session.context_version - 1
        try:
            revisions.rewind_context(self.session.pk, to_version=target_version)
        except models.ContextRevision.DoesNotExist:
            self.console.print(f"[red]There is no context version {target_version}.[/]")
        else:
            self._print(f"[dim]The model sees again what it saw at version {target_version}.[/]")

    def _print_json(self, turn: Turn) -> None:
        answer = turn.messages.filter(role="assistant").order_by("-seq").first()
        result = {
            "session": str(self.session.pk),
            "turn": str(turn.pk),
            "status": turn.status,
            "content": answer.content if answer else "",
            "notices": turn.notices,
            "error": turn.error,
            "context": self.usage,
        }
        self.console.print_json(json.dumps(result))

    def _print(self, markup: str) -> None:
        self.console.print(markup, highlight=False)

    def _print_error(self, sentence: str, code: int) -> int:
        self._print(f"[red]{escape_text(sentence)}[/]")
        return code

    def _get_exit_code(self, turn: Turn) -> int:
        if not turn.error:
            return EXIT_OK
        if turn.error["type"] in ("context_overflow", "context_budget_exceeded"):
            return EXIT_CANNOT_FIT
        return EXIT_PROVIDER


def escape_text(text: str) -> str:
    """Escape a text, so that it is no markup and does not control the terminal."""
    return escape(text.translate(CONTROL_SIGNS))


def _load_last_usage(session: Session) -> dict[str, Any]:
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
            if event.name in TURN_END_EVENTS and event.data.get("turn") == str(turn.pk):
                end_time = time.monotonic()
            if event.name == EventType.CONTEXT_USAGE and end_time:
                return
        if not new_events:
            time.sleep(POLL_SECONDS)
