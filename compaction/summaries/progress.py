"""Who is told how far a summary is: calls begin, and text arrives."""

from typing import Protocol


class Progress(Protocol):
    """What the calls of a summary model tell while they are made."""

    def expect_parts(self, count: int) -> None:
        """Expect so many parts from now on."""

    def begin_part(self) -> None:
        """Begin the next part."""

    def begin_call(self) -> None:
        """Begin a call for the part; a retry writes it from its beginning."""

    def report(self, text: str) -> None:
        """Take what the call has written so far. What it raises ends the call."""


class NoProgress:
    """For summaries that nobody watches."""

    def expect_parts(self, count: int) -> None:
        """Do nothing."""

    def begin_part(self) -> None:
        """Do nothing."""

    def begin_call(self) -> None:
        """Do nothing."""

    def report(self, text: str) -> None:
        """Do nothing."""
