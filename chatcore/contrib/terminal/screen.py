"""A conversation at a console: its loop, its commands, and how events are shown.

Nothing here needs Django or a database: the session may be this machine's or another server's.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.markup import escape

from chatcore.contrib.terminal import meter
from chatcore.events.types import TURN_END_EVENTS, Event, EventType

# The exit codes of `chatcore chat`.
EXIT_OK = 0
EXIT_USAGE = 2
EXIT_PROVIDER = 3
EXIT_CANNOT_FIT = 4
EXIT_SIGN_IN = 5

CONTEXT_NOTE_RATIO = 0.60  # of the context window; above it a line about the context is shown
# Control characters in a message could move the cursor, change the title of the window or write to
# the clipboard. Each is replaced by a visible character, except tab and line feed; a carriage
# return is removed.
CONTROL_SIGNS = (
    {code: 0x2400 + code for code in range(32)}
    | {0x7F: 0x2421}
    | dict.fromkeys(range(0x80, 0xA0), "\ufffd")
    | {9: 9, 10: 10, 13: None}
)
NOTHING_TO_REWIND_TEXT = "There is nothing to rewind; /rewind N goes back to context version N."
HELP = "/context  /compact [focus]  /rewind [N]  /models  /export  /quit"


class ChatUnavailable(Exception):
    """The conversation cannot begin or go on. The arguments are a sentence and an exit code."""


@dataclass
class TurnResult:
    """How a turn ended. `error` has a `type` and a `detail`; None if nothing failed."""

    turn: str = ""
    status: str = ""
    content: str = ""
    notices: list[str] = field(default_factory=list)
    error: dict[str, Any] | None = None


class Screen(ABC):
    """A session at a console. The public methods return an exit code of `chatcore chat`.

    Answers, and what a command of the loop was asked for, go to `console`; errors and notices go
    to `notices`, which a program can tell from an answer.
    """

    def __init__(
        self, console: Console, *, notices: Console | None = None, as_json: bool = False
    ) -> None:
        self.console = console
        self.notices = notices or console
        self.as_json = as_json
        self.usage: dict[str, Any] = {}
        self.is_line_open = False  # words of an answer stand in the console's last line

    def send_message(self, text: str) -> int:
        """Send a message and show the answer as it comes.

        Ctrl-C stops the answer; the part that has come is stored.
        """
        try:
            result = self._follow_message(text)
        except ChatUnavailable as refusal:
            sentence, code = refusal.args
            return self._print_error(sentence, code)
        if self.as_json:
            self._print_json(result)
        else:
            if result.error:
                self._note(f"[red]{escape_text(result.error['detail'])}[/]")
            self._show_context()
        return _choose_exit_code(result)

    def run_loop(self) -> int:
        """Read and execute lines until /quit, the end of the input, or Ctrl-C twice in a row."""
        self._print(f"[dim]{escape_text(self._describe_session())} · {escape(HELP)}[/]")
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
                self.notices.print("\n[dim]Ctrl-C once more to leave[/]")
                continue
            is_leaving = False
            if line == "/quit":
                return EXIT_OK
            if line.startswith("/"):
                self._run_command(line)
            elif line:
                self.send_message(line)

    @abstractmethod
    def _describe_session(self) -> str:
        """Return the model's name and the session's id."""

    @abstractmethod
    def _get_session_id(self) -> str: ...

    @abstractmethod
    def _follow_message(self, text: str) -> TurnResult:
        """Send a message, show the events of its turn, and return the result.

        Raises ChatUnavailable for a message that is refused.
        """

    @abstractmethod
    def _compact(self, instructions: str) -> str:
        """Compact now, and return the report. Raises ChatUnavailable."""

    @abstractmethod
    def _rewind(self, version: int | None) -> int:
        """Go back to an earlier context, and return its version.

        None is the one before. Raises ChatUnavailable if there is none.
        """

    @abstractmethod
    def _list_models(self) -> Iterable[str]: ...

    @abstractmethod
    def _export(self) -> str:
        """Return the session as JSON. Raises ChatUnavailable."""

    def _format_prompt(self) -> str:
        prompt = "[bold]› [/]"
        if not self.console.is_terminal or not self.usage:
            return prompt
        color = meter.choose_color(self.usage)
        return f"[{color}]{meter.format_usage(self.usage)}[/] {prompt}"

    def _show_event(self, event: Event) -> None:
        if event.name == EventType.CONTEXT_USAGE:
            self.usage = event.data
        if self.as_json:
            return
        if event.name == EventType.MESSAGE_DELTA:
            self.is_line_open = True
            self.console.print(
                event.data["text"].translate(CONTROL_SIGNS),
                end="",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )
        elif event.name == EventType.TOOL_CALL_STARTED:
            self.notices.print(f"[dim]· {escape_text(event.data['name'])} …[/]")
        elif event.name == EventType.CONTEXT_TRIMMED:
            self.notices.print(f"\n[yellow]{escape_text(event.data['notice'])}[/]")
        elif event.name == EventType.COMPACTION_STARTED:
            self.notices.print("\n[dim]Optimizing conversation context…[/]")
        elif event.name == EventType.TURN_WAITING:
            self._note("\n[yellow]The turn waits for a decision or a result about a tool.[/]")
        elif event.name in TURN_END_EVENTS and self.is_line_open:
            self.console.print()
            self.is_line_open = False

    def _show_context(self) -> None:
        """Print how full the context is, in NeuroLink's words (compaction/systems/neurolink).

        Compaction is promised only where it begins by itself, and nothing is said where it is off.
        """
        used_tokens = self.usage.get("estimated_input_tokens")
        window = self.usage.get("context_window")
        if not used_tokens or not window or self.usage.get("automatic") == "off":
            return
        ratio = used_tokens / window
        if not self.usage.get("should_compact"):
            if ratio > CONTEXT_NOTE_RATIO:
                self._note(f"[dim]Context: {ratio:.0%} used[/]")
            return
        self._note(
            f"[yellow]Context usage: {ratio:.0%} of window ({used_tokens:,} / {window:,} tokens)[/]"
        )
        if self.usage.get("automatic") == "on":
            self.notices.print(
                "[yellow]Auto-compaction will trigger to preserve conversation quality.[/]"
            )

    def _show_stop(self) -> None:
        if not self.as_json:
            self.notices.print("\n[dim]stopped; the text so far is stored[/]")

    def _run_command(self, line: str) -> None:
        name, _, argument = line[1:].partition(" ")
        try:
            match name:
                case "context":
                    self._show_usage_table()
                case "compact":
                    self._write(self._compact(argument))
                case "rewind":
                    self._rewind_context(argument)
                case "models":
                    self._write("\n".join(self._list_models()))
                case "export":
                    self._write(self._export())
                case _:
                    self._print(f"[dim]{escape(HELP)}[/]")
        except ChatUnavailable as refusal:
            self._note(f"[red]{escape_text(refusal.args[0])}[/]")

    def _show_usage_table(self) -> None:
        if self.usage:
            self.console.print(meter.build_usage_table(self.usage))
        else:
            self.console.print("[dim]Nothing was sent yet.[/]")

    def _rewind_context(self, version: str) -> None:
        if version and not version.isdecimal():
            raise ChatUnavailable(NOTHING_TO_REWIND_TEXT, EXIT_USAGE)
        target_version = self._rewind(int(version) if version else None)
        self._print(f"[dim]The model sees again what it saw at version {target_version}.[/]")

    def _print_json(self, result: TurnResult) -> None:
        document = {
            "session": self._get_session_id(),
            "turn": result.turn,
            "status": result.status,
            "content": result.content,
            "notices": result.notices,
            "error": result.error,
            "context": self.usage,
        }
        self.console.print_json(json.dumps(document))

    def _print(self, markup: str) -> None:
        self.console.print(markup, highlight=False)

    def _note(self, markup: str) -> None:
        self.notices.print(markup, highlight=False)

    def _write(self, text: str) -> None:
        """Write a text as it is, without what could control the terminal."""
        self.console.file.write(text.rstrip("\n").translate(CONTROL_SIGNS) + "\n")

    def _print_error(self, sentence: str, code: int) -> int:
        self._note(f"[red]{escape_text(sentence)}[/]")
        return code


def escape_text(text: str) -> str:
    """Escape a text, so that it is no markup and does not control the terminal."""
    return escape(text.translate(CONTROL_SIGNS))


def _choose_exit_code(result: TurnResult) -> int:
    if not result.error:
        return EXIT_OK
    if result.error.get("type") in ("context_overflow", "context_budget_exceeded"):
        return EXIT_CANNOT_FIT
    return EXIT_PROVIDER
