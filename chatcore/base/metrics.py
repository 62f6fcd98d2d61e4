"""What happens is counted here; without the app of metrics nobody counts.

Nothing here raises, waits for a disk, or is called for each token.
"""

from datetime import datetime
from typing import cast

from django.utils.functional import SimpleLazyObject
from django.utils.module_loading import import_string

from chatcore.extension import get_extensions


class Counts:
    """What can be counted; each method does nothing until an app says more."""

    def count_turn(
        self,
        *,
        model: str,
        outcome: str,
        started_at: datetime,
        failure_type: str = "",
        recalled: bool = False,
    ) -> None:
        """Count a turn that has ended. `model` is the model's name with its provider's."""

    def count_first_token(self, model: str, seconds: float) -> None:
        """Count how long a turn took to its first token."""

    def count_tokens(self, model: str, **counts: int | None) -> None:
        """Count the tokens of an answer, by kind."""

    def count_cost(self, model: str, purpose: str, cost: float) -> None:
        """Count what a call cost, in the currency of the prices."""

    def count_refused_turn(self, reason: str) -> None:
        """Count a turn that did not begin, for lack of room."""

    def count_run(
        self,
        *,
        policy: str,
        trigger: str,
        outcome: str,
        seconds: float | None,
        tokens_before: int | None,
        tokens_after: int | None,
    ) -> None:
        """Count a compaction run that has ended, and write the counts: its process may end next."""

    def count_refused_summary(self, reason: str) -> None:
        """Count an answer of a summary model that was not used."""

    def count_streams(self, count: int) -> None:
        """Note how many streams that follow a session are open in this process."""

    def watch_statements(self) -> None:
        """Count the statements of all connections of this process from now on."""

    def serve(self, host: str, port: int) -> None:
        """Serve what this machine has counted. Raises OSError if the address cannot be had."""


def find_counts_path() -> str:
    """Return the dotted path of the class that counts; empty where none is installed."""
    return next((each.counts for each in get_extensions() if each.counts), "")


def _load() -> Counts:
    path = find_counts_path()
    loaded: Counts = import_string(path)() if path else Counts()
    return loaded


counts = cast(Counts, SimpleLazyObject(_load))
