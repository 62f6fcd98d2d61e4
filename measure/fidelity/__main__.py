"""Measure how much of a talk reaches the model.

python -m measure.fidelity [--seed N] [--only NAME]

It prints six tables in Markdown, a row for each policy. Without --seed it draws a new one and
prints it. It creates a database of its own, calls no model but a scripted one on loopback, and
takes a few minutes. `--only embedded` talks to the embedded language model instead.
"""

import argparse
import os
import random
import sys

import django


def main() -> int:
    """Measure what the arguments name, and return the exit code."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    # Imported here, because it imports models, which need the settings.
    from measure.fidelity import suite

    parser = argparse.ArgumentParser(prog="python -m measure.fidelity", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--full", action="store_true", help="larger talks, and more of them")
    parser.add_argument("--only", choices=[*suite.TABLES, "embedded"], action="append")
    parser.add_argument("--misses", action="store_true", help="list what was lost")
    parser.add_argument("--policies", default="", help="names with commas between; all presets")
    arguments = parser.parse_args()
    if "embedded" in (arguments.only or []) and len(arguments.only) > 1:
        parser.error("embedded is measured alone")
    return suite.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
