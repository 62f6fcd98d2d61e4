"""Measure what has to be fast and print a table: python -m measure.benchmarks [COMMAND].

Without a command it measures what needs no browser: the pure functions, the requests and the first
word of an answer. `web` measures the pages in Chromium and `sse` the readers of one event stream
server. `claims` measures claims of runs while 10,000 wait, on PostgreSQL too. Three commands load
one web process, and list their options with --help: `streams` many answers at once, `readers`
thousands of readers of events, `crowd` more people than it can answer.
Each creates a database of its own. The exit code is 1 when a value is over its limit.
"""

import os
import sys

import django

from measure.benchmarks.load import crowd, readers, streams

COMMANDS = ("claims", "sse", "web")
# These run the product in processes of its own, so this one needs no Django, and take arguments.
LOAD_COMMANDS = {"crowd": crowd.main, "readers": readers.main, "streams": streams.main}


def main() -> int:
    """Run the command that the arguments name, and return its exit code."""
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    if command in LOAD_COMMANDS:
        return LOAD_COMMANDS[command](sys.argv[2:])
    if len(sys.argv) > 2 or (command and command not in COMMANDS):
        print(__doc__, file=sys.stderr)
        return 2
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "measure.benchmarks.settings")
    django.setup()
    # Imported here, because it imports models, which need the settings.
    from measure.benchmarks import commands

    return commands.run_command(command)


if __name__ == "__main__":
    sys.exit(main())
