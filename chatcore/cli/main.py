"""The console script `chatcore`: Django's command line with our settings."""

import os
import sys

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db import OperationalError, ProgrammingError

EXIT_USAGE = 2


def main() -> None:
    """Run the management command that the process's arguments name.

    A setting or a database that cannot be used ends the process with one sentence about it. With
    --traceback, a database error shows where it was raised.
    """
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
            " CHATCORE_DATABASE_URL says where it is; `chatcore migrate` makes its tables.\n"
        )
        sys.exit(1)


def _read_arguments() -> list[str]:
    """Return the arguments; a command may be written with hyphens, as `local-model`."""
    name, *others = sys.argv[1:] or ["help"]
    return [name if name.startswith("-") else name.replace("-", "_"), *others]
