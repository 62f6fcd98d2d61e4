"""How a context came about, as far as people can undo it and redo it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class ContextHistory(Protocol):
    """How a context came about; each step is known by its version, and 0 is the whole history."""

    @property
    def current(self) -> int | None:
        """The step in force."""
        ...

    @property
    def undo_version(self) -> int | None:
        """The step that an undo restores; None if there is nothing to undo."""
        ...

    @property
    def redo_version(self) -> int | None:
        """The step that a redo restores; None if nothing was undone."""
        ...

    @property
    def base_version(self) -> int | None:
        """The step before the first with the boundary in force; None if there is none."""
        ...

    def list_path(self, version: int | None) -> Sequence[int]:
        """Return the steps that led to this one, the newest first."""
        ...

    def get_summary(self, version: int | None) -> str | None:
        """Return the summary of a step; None if it has none."""
        ...

    def is_edited(self, version: int | None) -> bool:
        """Return True if a person worded the summary of this step."""
        ...


@dataclass(frozen=True)
class NoHistory:
    """The history of a host that keeps none: nothing can be undone or redone step by step."""

    current: None = None
    undo_version: None = None
    redo_version: None = None
    base_version: None = None

    def list_path(self, version: int | None) -> Sequence[int]:
        """Return no steps."""
        return ()

    def get_summary(self, version: int | None) -> None:
        """Return no summary."""

    def is_edited(self, version: int | None) -> bool:
        """Return False: nothing is known of it."""
        return False
