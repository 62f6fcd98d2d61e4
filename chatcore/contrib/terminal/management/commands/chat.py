"""`chatcore chat`: talk with a language model in a terminal."""

import logging
import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand
from rich.console import Console

from chatcore.accounts.rights import find_default_model, select_models
from chatcore.base.runner import turn_runner
from chatcore.context.compactor import get_compactor
from chatcore.contrib.terminal import arguments
from chatcore.contrib.terminal.local import Terminal
from chatcore.contrib.terminal.screen import EXIT_SIGN_IN, EXIT_USAGE, ChatUnavailable
from chatcore.models import Session
from chatcore.sessions.archive import archive_surplus_sessions


class Command(BaseCommand):
    help = arguments.HELP

    def add_arguments(self, parser: ArgumentParser) -> None:
        arguments.add_arguments(parser)

    def handle(self, *args: object, **options: Any) -> None:
        """Open the session, talk, and exit with the code of the last turn."""
        options = arguments.add_server(options, os.environ)
        if options["url"]:
            # The command line does not come here: chatcore/__main__.py has done it.
            from chatcore.contrib.terminal import remote

            sys.exit(remote.run_chat(options, sys.stdin))
        try:
            text = arguments.build_text(options["text"], sys.stdin)
            session = _open_session(options)
        except ChatUnavailable as error:
            sentence, code = error.args
            self.stderr.write(sentence)
            sys.exit(code)
        terminal = Terminal(
            session, Console(), notices=Console(stderr=True), as_json=options["json"]
        )
        with _reduce_logging():
            code = terminal.send_message(text) if text else terminal.run_loop()
            # Generation runs in threads of this process and must end before the process does.
            turn_runner.drain()
        sys.exit(code)


@contextmanager
def _reduce_logging() -> Iterator[None]:
    """Log only warnings at the usual level, so that log lines do not mix with the answer."""
    root_logger = logging.getLogger()
    level = root_logger.level
    if level == logging.INFO:
        root_logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        root_logger.setLevel(level)


def _open_session(options: dict[str, Any]) -> Session:
    """Load or create the session, with the settings that the options give."""
    if options["session"]:
        session = _find_session(options)
    else:
        owner = _find_user(options["user"])
        session = Session(owner=owner, model=find_default_model(owner.pk))
    if options["model"]:
        session.model = select_models(session.owner_id).find_by_name(options["model"])
        if session.model is None:
            raise ChatUnavailable(
                f"There is no usable model called {options['model']}.", EXIT_USAGE
            )
    if options["system"] is not None:
        session.system_prompt = options["system"]
    if options["policy"]:
        session.policy = _check_policy(options["policy"])
    if options["compact_threshold"] is not None:
        session.compact_threshold = _check_threshold(options["compact_threshold"], session)
    if options["disable_compaction"]:
        session.auto_compact = False
    session.save()
    if not options["session"]:
        archive_surplus_sessions(session)
    return session


def _check_policy(name: str) -> str:
    names = get_compactor().list_policies()
    if names and name not in names:
        raise ChatUnavailable(
            f"There is no policy called {name}; there are {', '.join(names)}.", EXIT_USAGE
        )
    return name


def _check_threshold(ratio: float, session: Session) -> float:
    try:
        policy = get_compactor().choose_policy(*session.policy_names)
        policy.validate_threshold(ratio, model=session.model)
    except ValidationError as error:
        reason = " ".join(error.messages)
        raise ChatUnavailable(f"--compact-threshold: {reason}", EXIT_USAGE) from None
    return ratio


def _find_session(options: dict[str, Any]) -> Session:
    try:
        return Session.objects.owned_by(_find_user(options["user"])).get(pk=options["session"])
    except (Session.DoesNotExist, ValidationError):
        raise ChatUnavailable(f"You have no session {options['session']}.", EXIT_USAGE) from None


def _find_user(name: str | None) -> Any:
    """Return the active user with this name, or without a name the only active superuser."""
    users = get_user_model().objects.filter(is_active=True)
    users = users.filter(username=name) if name else users.filter(is_superuser=True)
    matches = list(users[:2])
    if not matches:
        sentence = "There is no such user; `chatcore serve` makes the first."
        raise ChatUnavailable(sentence, EXIT_SIGN_IN)
    if len(matches) > 1:
        raise ChatUnavailable("Say who you are with --user NAME.", EXIT_SIGN_IN)
    return matches[0]
