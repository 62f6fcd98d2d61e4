"""Talking in a terminal: the same turns as everywhere, followed through the event log."""

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
from chatcore.events.log import Event
from chatcore.events.types import TURN_END_EVENTS, EventType
from chatcore.models import Session, Turn
from chatcore.turns import leases, service
from models_registry.models import AiModel

EXIT_OK, EXIT_USAGE, EXIT_PROVIDER, EXIT_CANNOT_FIT, EXIT_SIGN_IN = 0, 2, 3, 4, 5
CONTEXT_NOTE_RATIO = 0.60  # of the context window: where the context line begins to show
# What would move the cursor, name the window or fill the clipboard is shown as a sign that stands for it.
CONTROL_SIGNS = (
    {code: 0x2400 + code for code in range(32)}
    | {0x7F: 0x2421}
    | dict.fromkeys(range(0x80, 0xA0), "\ufffd")
    | {9: 9, 10: 10, 13: None}
)
HELP = "/context  /compact [focus]  /rewind [N]  /models  /export  /quit"


class Terminal:
    """One session at one console. Every method returns an exit code of `chatcore chat`."""

    def __init__(self, session: Session, console: Console, *, as_json: bool = False) -> None:
        self.session = session
        self.console = console
        self.as_json = as_json
        self.usage = _load_last_usage(session)

    def send_message(self, text: str) -> int:
        """Send one message and show the answer as it comes. Ctrl-C stops the answer and keeps what was said."""
        try:
            turn = service.start_turn(self.session, content=text)
        except leases.TurnRunning as error:
            activity = (
                "waiting for results of a client's tools" if error.is_waiting else "still answering"
            )
            return self._print_error(
                f"This session is {activity} (turn {error.turn_id}).", EXIT_USAGE
            )
        except service.NoModel as error:
            return self._print_error(
                f"{error} See `chatcore chat --model` and /models.", EXIT_USAGE
            )
        self._follow_turn(turn)
        turn.refresh_from_db()
        if self.as_json:
            self._print_json(turn)
        elif turn.error:
            self.console.print(f"[red]{escape_text(turn.error['detail'])}[/]", highlight=False)
        if not self.as_json:
            self._show_context()
        return self._get_exit_code(turn)

    def run_loop(self) -> int:
        """Read lines until /quit, the end of input, or Ctrl-C twice at the prompt."""
        self.console.print(
            f"[dim]{escape_text(str(self.session.model or 'no model'))} · {self.session.pk} · {escape(HELP)}[/]",
            highlight=False,
        )
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
        """With the meter in it, at a real terminal."""
        return (
            f"[{meter.choose_color(self.usage)}]{meter.format_usage(self.usage)}[/] [bold]› [/]"
            if self.console.is_terminal and self.usage
            else "[bold]› [/]"
        )

    def _follow_turn(self, turn: Turn) -> None:
        try:
            for event in _read_turn_events(turn):
                self._show_event(event)
        except KeyboardInterrupt:
            service.cancel_turn(self.session.pk)
            with contextlib.suppress(TimeoutError):
                service.wait_for_turn(turn.pk, 10)
            for event in _read_turn_events(turn):
                if event.name == EventType.TURN_CANCELLED and not self.as_json:
                    self.console.print("\n[dim]stopped; what was said is kept[/]")

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
        """The context lines of NeuroLink's seed, CLI Session Warnings."""
        used_tokens, window = (
            self.usage.get("estimated_input_tokens"),
            self.usage.get("context_window"),
        )
        if not used_tokens or not window or used_tokens / window <= CONTEXT_NOTE_RATIO:
            return
        if not self.usage.get("should_compact"):
            self.console.print(f"[dim]Context: {used_tokens / window:.0%} used[/]", highlight=False)
            return
        self.console.print(
            f"[yellow]Context usage: {used_tokens / window:.0%} of window ({used_tokens:,} / {window:,} tokens)[/]",
            highlight=False,
        )
        self.console.print(
            "[yellow]Auto-compaction will trigger to preserve conversation quality.[/]"
        )

    def _run_command(self, line: str) -> None:
        name, _, argument = line[1:].partition(" ")
        session = str(self.session.pk)
        match name:
            case "context":
                self.console.print(
                    meter.build_usage_table(self.usage)
                    if self.usage
                    else "[dim]Nothing was sent yet.[/]"
                )
            case "compact":
                self._call_management_command(
                    "compact_session", session, f"--instructions={argument}"
                )
            case "rewind":
                self._rewind_context(argument)
            case "models":
                self.console.print(
                    "\n".join(
                        str(model).translate(CONTROL_SIGNS)
                        for model in AiModel.objects.filter_usable()
                    ),
                    markup=False,
                    highlight=False,
                )
            case "export":
                self._call_management_command("export", session)
            case _:
                self.console.print(f"[dim]{escape(HELP)}[/]", highlight=False)

    def _call_management_command(self, *command: str) -> None:
        output = io.StringIO()
        try:
            call_command(*command, stdout=output)
        except CommandError as error:
            self.console.print(f"[red]{escape_text(str(error))}[/]", highlight=False)
        self.console.file.write(output.getvalue().translate(CONTROL_SIGNS))

    def _rewind_context(self, version: str) -> None:
        self.session.refresh_from_db()
        if not self.session.context_version or (version and not version.isdecimal()):
            self.console.print(
                "[dim]There is nothing to rewind; /rewind N goes back to context version N.[/]",
                highlight=False,
            )
            return
        target_version = int(version) if version else self.session.context_version - 1
        try:
            revisions.rewind_context(self.session.pk, to_version=target_version)
        except models.ContextRevision.DoesNotExist:
            self.console.print(f"[red]There is no context version {target_version}.[/]")
        else:
            self.console.print(
                f"[dim]The model sees again what it saw at version {target_version}.[/]",
                highlight=False,
            )

    def _print_json(self, turn: Turn) -> None:
        answer = turn.messages.filter(role="assistant").order_by("-seq").first()
        self.console.print_json(
            json.dumps(
                {
                    "session": str(self.session.pk),
                    "turn": str(turn.pk),
                    "status": turn.status,
                    "content": answer.content if answer else "",
                    "notices": turn.notices,
                    "error": turn.error,
                    "context": self.usage,
                }
            )
        )

    def _print_error(self, sentence: str, code: int) -> int:
        self.console.print(f"[red]{escape_text(sentence)}[/]", highlight=False)
        return code

    def _get_exit_code(self, turn: Turn) -> int:
        if not turn.error:
            return EXIT_OK
        return (
            EXIT_CANNOT_FIT
            if turn.error["type"] in ("context_overflow", "context_budget_exceeded")
            else EXIT_PROVIDER
        )


def escape_text(text: str) -> str:
    """What others wrote, for the console's markup: nothing in it is markup, and nothing steers the terminal."""
    return escape(text.translate(CONTROL_SIGNS))


def _load_last_usage(session: Session) -> dict[str, Any]:
    """What the last event about it told."""
    usage = (
        session.events.filter(name=EventType.CONTEXT_USAGE)
        .order_by("-seq")
        .values_list("data", flat=True)
        .first()
    )
    return dict(usage or {})


def _read_turn_events(turn: Turn) -> Iterator[Event]:
    """The turn's events as they come, and the usage that follows its end."""
    last_seq, end_time = turn.first_event_seq - 1, None
    while end_time is None or time.monotonic() < end_time + 0.3:
        new_events = event_log.read_events(turn.session_id, last_seq)
        for event in new_events:
            last_seq = event.seq
            yield event
            if event.name in TURN_END_EVENTS and event.data.get("turn") == str(turn.pk):
                end_time = time.monotonic()
            if event.name == EventType.CONTEXT_USAGE and end_time:
                return
        if not new_events:
            time.sleep(0.03)
