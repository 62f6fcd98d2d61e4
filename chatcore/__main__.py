"""The console script `chatcore`, also `python -m chatcore`: Django's command line, our settings."""

import os
import sys
from contextlib import suppress

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db import OperationalError, ProgrammingError
from django.utils.module_loading import import_string

from chatcore.base.extras import describe_missing, has_extra
from chatcore.base.installed_apps import read_absent_names

EXIT_USAGE = 2


def main() -> None:
    """Run the management command that the process's arguments name.

    A setting or a database that cannot be used ends the process with one sentence about it. With
    --traceback, a database error shows where it was raised.
    """
    if sys.argv[1:2] == ["chat"]:
        _begin_chat()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatcore.settings")
    # What is written from here on, the database among it, is for the owner alone.
    os.umask(0o077)
    try:
        # Reading one setting loads all of them.
        settings.DATABASES  # noqa: B018
    except ImproperlyConfigured as configuration_error:
        sys.stderr.write(f"{configuration_error}\n")
        sys.exit(EXIT_USAGE)
    try:
        execute_from_command_line(["chatcore", *_read_arguments()])
    except (OperationalError, ProgrammingError) as error:
        if "--traceback" in sys.argv:
            raise
        reason = str(error).partition("\n")[0].rstrip(".")
        sys.stderr.write(
            f"The database cannot be used: {reason}."
            " CHATCORE_DATABASE_URL says where it is. A new one, or one of an older version that"
            " was copied before, gets its tables by `chatcore migrate`.\n"
        )
        sys.exit(1)


def _begin_chat() -> None:
    """Talk with the server that --url or CHATCORE_URL names, and exit; return if none is named.

    Django's apps and this machine's database have no part in it, so neither is loaded.
    """
    with suppress(ImproperlyConfigured):  # which is said where the settings are read
        if "terminal" in read_absent_names():
            return
    if not has_extra("terminal"):
        sys.exit(describe_missing("terminal"))
    if not os.environ.get("CHATCORE_URL") and not any(
        argument.split("=")[0] == "--url" for argument in sys.argv
    ):
        return
    # By its path: the core imports no app that can be absent.
    sys.exit(import_string("chatcore.contrib.terminal.remote.run_command")(sys.argv[2:]))


def _read_arguments() -> list[str]:
    """Return the arguments; a command may be written with hyphens, as `local-model`."""
    name, *others = sys.argv[1:] or ["help"]
    return [name if name.startswith("-") else name.replace("-", "_"), *others]


if __name__ == "__main__":
    main()
