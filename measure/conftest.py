"""The fixtures of the tests, for the checks of measurements."""

from tests.conftest import *  # noqa: F403
