"""Run many new random programs: `python -m measure.programs [--count 10000] [--steps 50]`.

They run on SQLite, or where CHATCORE_TEST_DATABASE_URL says. The suite runs a few of them, always
the same (tests/chatcore/test_programs.py).
"""

import argparse
import os
import sys

import pytest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=50)
    options = parser.parse_args()
    os.environ |= {
        "CHATCORE_HYPOTHESIS": "random",
        "CHATCORE_PROGRAMS": str(options.count),
        "CHATCORE_PROGRAM_STEPS": str(options.steps),
    }
    sys.exit(pytest.main(["-q", "tests/chatcore/test_programs.py"]))


if __name__ == "__main__":
    main()
