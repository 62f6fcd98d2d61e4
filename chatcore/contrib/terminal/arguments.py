"""The arguments of `chatcore chat`, and the text that it sends at once."""

import io
import os
import re
import stat
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any, TextIO

from chatcore.contrib.terminal.screen import EXIT_USAGE, ChatUnavailable

HELP = (
    "Talk in a terminal. With TEXT (or a pipe) one shot; with both, the piped text follows TEXT."
    " Exit codes: 0 ok, 2 usage, 3 provider, 4 cannot fit, 5 sign-in."
)
MAX_TEXT_BYTES = 256 * 1024  # as for a message over REST


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments that a conversation takes, here or on another server."""
    parser.add_argument("text", nargs="?", metavar="TEXT")
    parser.add_argument("--session", help="Go on with this session.")
    parser.add_argument("--user", help="Whose session; the only superuser when not given.")
    parser.add_argument(
        "--url", help="A server elsewhere, as https://chat.example.com (or CHATCORE_URL)."
    )
    parser.add_argument("--token", help="An API token of that server (or CHATCORE_TOKEN).")
    parser.add_argument("--model", help="A model's name, or provider/name.")
    parser.add_argument("--system", help="System prompt.")
    parser.add_argument("--policy", help="Compaction policy.")
    parser.add_argument(
        "--compact-threshold",
        type=float,
        metavar="R",
        help="Compact above this share of the context, 0 to 1.",
    )
    parser.add_argument("--disable-compaction", action="store_true")
    parser.add_argument("--json", action="store_true")


def add_server(options: Mapping[str, object], environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the options with the server and the token that the environment names."""
    return {
        **options,
        "url": options["url"] or environment.get("CHATCORE_URL") or "",
        "token": options["token"] or environment.get("CHATCORE_TOKEN") or "",
    }


def build_text(text: str | None, stdin: TextIO | None) -> str:
    """Return the message of one shot: TEXT, then what is piped, in a fence; empty without both.

    Raises ChatUnavailable for a text that is too long, or is none.
    """
    piped_text = _read_piped_text(stdin, is_alone=not text)
    if text and piped_text:
        piped_text = _fence(piped_text)
    message = "\n\n".join(part for part in (text, piped_text) if part)
    if len(message.encode(errors="replace")) > MAX_TEXT_BYTES:
        sentence = f"The text is longer than {MAX_TEXT_BYTES // 1024} KB."
        raise ChatUnavailable(sentence, EXIT_USAGE)
    return message


def _read_piped_text(stdin: TextIO | None, *, is_alone: bool) -> str:
    """Return what a pipe or a file gives as standard input; empty for anything else."""
    if stdin is None or stdin.closed or not (_is_pipe_or_file(stdin) or is_alone):
        return ""
    if stdin.isatty():
        return ""
    try:
        # A byte more than may be sent shows that it is too long.
        buffer = getattr(stdin, "buffer", None)
        content = buffer.read(MAX_TEXT_BYTES + 1) if buffer else stdin.read(MAX_TEXT_BYTES + 1)
        text = content if isinstance(content, str) else _decode(content)
    except UnicodeDecodeError:
        raise ChatUnavailable("Standard input is no text in UTF-8.", EXIT_USAGE) from None
    return text.strip()


def _decode(content: bytes) -> str:
    if len(content) > MAX_TEXT_BYTES:  # cut, perhaps inside of a character
        return content.decode(errors="replace")
    return content.decode()


def _is_pipe_or_file(stdin: TextIO) -> bool:
    """Return False for what nobody has written to, as /dev/null or the input of a service."""
    try:
        mode = os.fstat(stdin.fileno()).st_mode
    except (OSError, ValueError, io.UnsupportedOperation):
        return isinstance(stdin, io.StringIO)
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def _fence(text: str) -> str:
    """Return the text between fences that are longer than every fence in it."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"
