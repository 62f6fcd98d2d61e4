"""Measure what has to be fast and print a table: python -m tests.benchmarks [COMMAND].

Without a command it measures what needs no browser: the pure functions, the requests and the first
word of an answer. `web` measures the pages in Chromium and `sse` the readers of one event stream
server. `claims` measures claims of runs while 10,000 wait, on PostgreSQL too. Three commands load
one web process, and list their options with --help: `streams` many answers at once, `readers`
thousands of readers of events, `crowd` more people than it can answer.
`rehearsal` fills a PostgreSQL database with millions of messages and explains the hot queries.
`code` prints figures about the source code. Except for `code`, it creates a database of its own.
The exit code is 1 when a value is over its limit.
"""

import os
import sys

import django
from django.test.utils import setup_test_environment

from tests.benchmarks import code
from tests.benchmarks.load import crowd, readers, streams

COMMANDS = ("claims", "code", "sse", "web")
# These run the product in processes of its own, so this one needs no Django, and take arguments.
LOAD_COMMANDS = {"crowd": crowd.main, "readers": readers.main, "streams": streams.main}


def main() -> int:
    """Run the command that the arguments name, and return its exit code."""
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    if command in LOAD_COMMANDS:
        return LOAD_COMMANDS[command](sys.argv[2:])
    if command == "rehearsal":
        return _rehearse()
    if len(sys.argv) > 2 or (command and command not in COMMANDS):
        print(__doc__, file=sys.stderr)
        return 2
    if command == "code":
        code.main()
        return 0
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.benchmarks.settings")
    django.setup()
    # Imported here, because it imports models, which need the settings.
    from tests.benchmarks import commands

    return commands.run_command(command)


def _rehearse() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.benchmarks.settings")
    django.setup()
    setup_test_environment()  # Django's client asks as the host `testserver`
    from tests.benchmarks.rehearsal import command

    return command.main(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
