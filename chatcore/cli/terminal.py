"""Talking in a terminal: the same turns as everywhere, followed through the event log."""

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
from chatcore.models import Session, Turn
from chatcore.turns import leases, service
from models_registry.models import AiModel

OK, USAGE, PROVIDER, CANNOT_FIT, SIGN_IN = 0, 2, 3, 4, 5
INFORMATIONAL = 0.60  # of the context window: where the context line begins to show
# What would move the cursor, name the window or fill the clipboard is shown as a sign that stands for it.
SIGNS = (
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
        self.usage = _last_usage(session)

    def say(self, text: str) -> int:
        """Send one message and show the answer as it comes. Ctrl-C stops the answer and keeps what was said."""
        try:
            turn = service.start(self.session, content=text)
        except leases.TurnRunning as error:
            doing = (
                "waiting for results of a client's tools" if error.waiting else "still answering"
            )
            return self._complain(f"This session is {doing} (turn {error.turn_id}).", USAGE)
        except service.NoModel as error:
            return self._complain(f"{error} See `chatcore chat --model` and /models.", USAGE)
        self._follow(turn)
        turn.refresh_from_db()
        if self.as_json:
            self._print_json(turn)
        elif turn.error:
            self.console.print(f"[red]{words(turn.error['detail'])}[/]", highlight=False)
        if not self.as_json:
            self._show_context()
        return self._code(turn)

    def loop(self) -> int:
        """Read lines until /quit, the end of input, or Ctrl-C twice at the prompt."""
        self.console.print(
            f"[dim]{words(str(self.session.model or 'no model'))} · {self.session.pk} · {escape(HELP)}[/]",
            highlight=False,
        )
        leaving = False
        while True:
            try:
                line = self.console.input(self._prompt()).strip()
            except EOFError:
                return OK
            except KeyboardInterrupt:
                if leaving:
                    return OK
                leaving = True
                self.console.print("\n[dim]Ctrl-C once more to leave[/]")
                continue
            leaving = False
            if line == "/quit":
                return OK
            if line.startswith("/"):
                self._command(line)
            elif line:
                self.say(line)

    def _prompt(self) -> str:
        """With the meter in it, at a real terminal."""
        return (
            f"[{meter.color(self.usage)}]{meter.line(self.usage)}[/] [bold]› [/]"
            if self.console.is_terminal and self.usage
            else "[bold]› [/]"
        )

    def _follow(self, turn: Turn) -> None:
        try:
            for event in _until_the_end(turn):
                self._show(event)
        except KeyboardInterrupt:
            service.cancel(self.session.pk)
            for event in _until_the_end(service.wait(turn.pk, 10)):
                if event.name == "turn.cancelled" and not self.as_json:
                    self.console.print("\n[dim]stopped; what was said is kept[/]")

    def _show(self, event: Event) -> None:
        if event.name == "context.usage":
            self.usage = event.data
        if self.as_json:
            return
        if event.name == "message.delta":
            self.console.print(
                event.data["text"].translate(SIGNS),
                end="",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )
        elif event.name == "tool_call.started":
            self.console.print(f"[dim]· {words(event.data['name'])} …[/]")
        elif event.name == "context.trimmed":
            self.console.print(f"\n[yellow]{words(event.data['notice'])}[/]")
        elif event.name == "compaction.started":
            self.console.print("\n[dim]Optimizing conversation context…[/]")
        elif event.name in event_log.ENDS_A_TURN:
            self.console.print()

    def _show_context(self) -> None:
        """The context lines of NeuroLink's seed, CLI Session Warnings."""
        used, window = self.usage.get("estimated_input_tokens"), self.usage.get("context_window")
        if not used or not window or used / window <= INFORMATIONAL:
            return
        if not self.usage.get("should_compact"):
            self.console.print(f"[dim]Context: {used / window:.0%} used[/]", highlight=False)
            return
        self.console.print(
            f"[yellow]Context usage: {used / window:.0%} of window ({used:,} / {window:,} tokens)[/]",
            highlight=False,
        )
        self.console.print(
            "[yellow]Auto-compaction will trigger to preserve conversation quality.[/]"
        )

    def _command(self, line: str) -> None:
        name, _, rest = line[1:].partition(" ")
        session = str(self.session.pk)
        match name:
            case "context":
                self.console.print(
                    meter.table(self.usage) if self.usage else "[dim]Nothing was sent yet.[/]"
                )
            case "compact":
                self._call("compact_session", session, f"--instructions={rest}")
            case "rewind":
                self._rewind(rest)
            case "models":
                self.console.print(
                    "\n".join(str(model).translate(SIGNS) for model in AiModel.objects.usable()),
                    markup=False,
                    highlight=False,
                )
            case "export":
                self._call("export", session)
            case _:
                self.console.print(f"[dim]{escape(HELP)}[/]", highlight=False)

    def _call(self, *command: str) -> None:
        told = io.StringIO()
        try:
            call_command(*command, stdout=told)
        except CommandError as error:
            self.console.print(f"[red]{words(str(error))}[/]", highlight=False)
        self.console.file.write(told.getvalue().translate(SIGNS))

    def _rewind(self, version: str) -> None:
        self.session.refresh_from_db()
        if not self.session.context_version or (version and not version.isdecimal()):
            self.console.print(
                "[dim]There is nothing to rewind; /rewind N goes back to context version N.[/]",
                highlight=False,
            )
            return
        to = int(version) if version else self.session.context_version - 1
        try:
            revisions.rewind(self.session.pk, to_version=to)
        except models.ContextRevision.DoesNotExist:
            self.console.print(f"[red]There is no context version {to}.[/]")
        else:
            self.console.print(
                f"[dim]The model sees again what it saw at version {to}.[/]", highlight=False
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

    def _complain(self, sentence: str, code: int) -> int:
        self.console.print(f"[red]{words(sentence)}[/]", highlight=False)
        return code

    def _code(self, turn: Turn) -> int:
        if not turn.error:
            return OK
        return (
            CANNOT_FIT
            if turn.error["type"] in ("context_overflow", "context_budget_exceeded")
            else PROVIDER
        )


def words(text: str) -> str:
    """What others wrote, for the console's markup: nothing in it is markup, and nothing steers the terminal."""
    return escape(text.translate(SIGNS))


def _last_usage(session: Session) -> dict[str, Any]:
    """What the last event about it told."""
    told = (
        session.events.filter(name="context.usage")
        .order_by("-seq")
        .values_list("data", flat=True)
        .first()
    )
    return dict(told or {})


def _until_the_end(turn: Turn) -> Iterator[Event]:
    """The turn's events as they come, and the usage that follows its end."""
    after, ended = turn.first_event_seq - 1, None
    while ended is None or time.monotonic() < ended + 0.3:
        news = event_log.read(turn.session_id, after)
        for event in news:
            after = event.seq
            yield event
            if event.name in event_log.ENDS_A_TURN and event.data.get("turn") == str(turn.pk):
                ended = time.monotonic()
            if event.name == "context.usage" and ended:
                return
        if not news:
            time.sleep(0.03)
