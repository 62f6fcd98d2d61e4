"""`chatcore chat`: talk in a terminal."""

import logging
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand
from django.utils.module_loading import import_string
from rich.console import Console

from chatcore.cli.terminal import SIGN_IN, USAGE, Terminal
from chatcore.models import Session
from chatcore.turns.runner import generator
from models_registry.models import AiModel


class Leave(Exception):
    """Nothing to talk with: a sentence and an exit code."""


class Command(BaseCommand):
    help = "Talk in a terminal. With TEXT (or a pipe) one shot. Exit codes: 0 ok, 2 usage, 3 provider, 4 cannot fit, 5 sign-in."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("text", nargs="?", metavar="TEXT")
        parser.add_argument("--session", help="Go on with this session.")
        parser.add_argument("--user", help="Whose session; the only superuser when not given.")
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

    def handle(self, *args: Any, **options: Any) -> None:
        """Open the session, talk, and leave with the exit code."""
        try:
            terminal = Terminal(_session(options), Console(), as_json=options["json"])
        except Leave as why:
            sentence, code = why.args
            self.stderr.write(sentence)
            sys.exit(code)
        text = options["text"] or ("" if sys.stdin.isatty() else sys.stdin.read().strip())
        with _quietly():
            code = terminal.say(text) if text else terminal.loop()
            generator.drain()
        sys.exit(code)


@contextmanager
def _quietly() -> Iterator[None]:
    """What goes well is told by the answer, not by the log, unless that is asked for more."""
    log = logging.getLogger()
    level = log.level
    log.setLevel(logging.WARNING if level == logging.INFO else level)
    try:
        yield
    finally:
        log.setLevel(level)


def _session(options: dict[str, Any]) -> Session:
    session = (
        _existing(options)
        if options["session"]
        else Session(owner=_user(options["user"]), model=AiModel.objects.default())
    )
    if options["model"]:
        session.model = AiModel.objects.named(options["model"])
        if session.model is None:
            raise Leave(f"There is no usable model called {options['model']}.", USAGE)
    if options["system"] is not None:
        session.system_prompt = options["system"]
    if options["policy"]:
        session.policy = _policy(options["policy"])
    if options["compact_threshold"] is not None:
        session.compact_threshold = _threshold(options["compact_threshold"], session)
    if options["disable_compaction"]:
        session.auto_compact = False
    session.save()
    return session


def _policy(name: str) -> str:
    offered = settings.CHATCORE["POLICIES"]
    if offered and name not in (known := import_string(offered)()):
        raise Leave(f"There is no policy called {name}; there are {', '.join(known)}.", USAGE)
    return name


def _threshold(ratio: float, session: Session) -> float:
    check = settings.CHATCORE["VALIDATE_OVERRIDE"]
    try:
        if check:
            import_string(check)(
                ratio, session.policy, session.model.policy if session.model else ""
            )
    except ValidationError as wrong:
        raise Leave(f"--compact-threshold: {' '.join(wrong.messages)}", USAGE) from None
    return ratio


def _existing(options: dict[str, Any]) -> Session:
    try:
        return Session.objects.owned_by(_user(options["user"])).get(pk=options["session"])
    except (Session.DoesNotExist, ValidationError):
        raise Leave(f"You have no session {options['session']}.", USAGE) from None


def _user(name: str | None) -> Any:
    users = get_user_model().objects.filter(is_active=True)
    found = list(users.filter(username=name) if name else users.filter(is_superuser=True))
    if len(found) != 1:
        raise Leave(
            "Say who you are with --user NAME."
            if found
            else "There is no such user; `chatcore serve` makes the first.",
            SIGN_IN,
        )
    return found[0]
