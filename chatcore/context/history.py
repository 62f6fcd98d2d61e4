"""How a session's context came about: the steps that people can undo, and redo."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from chatcore.models import ContextRevision

MAX_REVISIONS = 200  # that are read; what is older cannot be undone
_COLUMNS = (
    "version",
    "source",
    "restores",
    "run",
    "stale",
    "summary",
    "boundary_seq",
    "kept_seqs",
    "created_at",
)
_WORD_COLUMNS = ("summary", "boundary_seq", "kept_seqs")

Source = ContextRevision.Source


@dataclass(frozen=True, kw_only=True)
class ContextStep:
    """One change of what the model sees. `previous` is the version of the step before it.

    Version 0 is the whole history, and `previous` is None where it is too old to be read.
    """

    version: int
    previous: int | None
    row: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ContextHistory:
    """The steps of a session by their versions; `current` is the one in force, `newest` the last.

    They differ after an undo. `positions` has the step that each version shows, or None where that
    is too old to be read.
    """

    steps: Mapping[int, ContextStep]
    positions: Mapping[int, int | None]
    current: int | None
    newest: int | None

    def list_path(self, version: int | None) -> list[int]:
        """Return the steps that led to what a version shows, the newest first."""
        return list(self._walk_back(self.positions.get(version or 0)))

    @property
    def undo_version(self) -> int | None:
        """The version that an undo restores; None if there is nothing to undo."""
        path = self.list_path(self.current)[1:]
        sound = (version for version in path if not self._is_stale(version))
        return next(sound, 0 if self._reaches_beginning() else None)

    @property
    def redo_version(self) -> int | None:
        """The version that a redo restores; None if nothing was undone, or it is stale by now."""
        path = self.list_path(self.newest)
        if self.current == 0:
            undone = path if self.newest is not None else []
        elif self.current in path:
            undone = path[: path.index(self.current)]
        else:
            undone = []
        return undone[-1] if undone and not self._is_stale(undone[-1]) else None

    @property
    def base_version(self) -> int | None:
        """The version under which the boundary in force was not there yet, nor a summary up to it.

        None if there is no boundary, or if the beginning is too old to be read.
        """
        path = self.list_path(self.current)
        boundary = self.steps[path[0]].row["boundary_seq"] if path else None
        if not boundary:
            return None
        first = path[0]
        for version in path:
            if self.steps[version].row["boundary_seq"] != boundary:
                return version
            first = version
        return self.steps[first].previous

    def get_summary(self, version: int | None) -> str | None:
        """Return the summary of a version; None if it has none."""
        step = self.steps.get(version or 0)
        return step.row["summary"] if step else None

    def is_edited(self, version: int | None) -> bool:
        """Return True if a person worded the summary of a version."""
        step = self.steps.get(version or 0)
        if step is None or step.row["source"] != Source.EDIT:
            return False
        earlier_step = self.steps.get(step.previous or 0)
        boundary = step.row["boundary_seq"]
        return earlier_step is not None and earlier_step.row["boundary_seq"] == boundary

    def _walk_back(self, version: int | None) -> Iterator[int]:
        while version in self.steps:
            assert version is not None
            yield version
            version = self.steps[version].previous

    def _reaches_beginning(self) -> bool:
        path = self.list_path(self.current)
        return bool(path) and self.steps[path[-1]].previous == 0

    def _is_stale(self, version: int) -> bool:
        return bool(self.steps[version].row["stale"])


def load_history(session_id: UUID) -> ContextHistory:
    """Return the steps of a session's context."""
    revisions = ContextRevision.objects.filter(session=session_id).order_by("-version")
    rows = list(revisions.values(*_COLUMNS)[:MAX_REVISIONS])
    return build_history(rows[::-1])


def build_history(rows: Sequence[Mapping[str, Any]]) -> ContextHistory:
    """Return the steps that these revisions, the oldest first, are.

    A rewind is a move between steps. A revision that changes nothing but the background belongs to
    the step before it, and a rewind with a run prepares the step of that run.
    """
    steps: dict[int, ContextStep] = {}
    positions: dict[int, int | None] = {0: 0}
    position: int | None = 0 if not rows or rows[0]["version"] == 1 else None
    newest: int | None = None
    earlier_row: Mapping[str, object] | None = None
    for row in rows:
        version = row["version"]
        if row["restores"] is not None:
            positions[version] = positions.get(row["restores"])
            if not row["run"]:
                position = positions[version]
            if row["source"] == Source.EDIT:  # messages were edited or deleted: no way back
                newest = position
        else:
            if not _has_same_words(row, earlier_row):
                steps[version] = ContextStep(version=version, previous=position, row=row)
                newest = position = version
            positions[version] = position
        earlier_row = row
    return ContextHistory(steps=steps, positions=positions, current=position, newest=newest)


def _has_same_words(row: Mapping[str, object], earlier_row: Mapping[str, object] | None) -> bool:
    if row["source"] == Source.COMPACTION:
        return False  # it may have changed how messages are shown
    if earlier_row is None:
        return row["summary"] is None and row["boundary_seq"] is None
    return all(row[name] == earlier_row[name] for name in _WORD_COLUMNS)
