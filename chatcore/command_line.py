"""The console script `chatcore`: Django's command line with our settings."""

import os
import sys

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line

USAGE = 2


def main() -> None:
    """Run one management command; argv is the process's own. A setting that cannot be used ends it with the sentence that names it."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatcore.settings")
    try:
        settings.DATABASES  # noqa: B018 - reads them all
    except ImproperlyConfigured as wrong:
        sys.stderr.write(f"{wrong}\n")
        sys.exit(USAGE)
    execute_from_command_line(["chatcore", *sys.argv[1:]])
