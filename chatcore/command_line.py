"""The console script `chatcore`: Django's command line with our settings."""

import os
import sys

from django.core.management import execute_from_command_line


def main() -> None:
    """Run one management command; argv is the process's own."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatcore.settings")
    execute_from_command_line(["chatcore", *sys.argv[1:]])
