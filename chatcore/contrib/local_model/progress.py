"""Show the progress of a download: a bar in a terminal, elsewhere a line for each tenth."""

from typing import Self


class ProgressBar:
    """The progress of a download of `total` bytes; a context manager."""

    def __init__(self, title: str, *, total: int) -> None:
        # Here: rich comes with the extra local-model, as downloads do.
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        self.title = title
        self.total = total
        self._console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task = self._progress.add_task(title, total=total)
        self._last_tenth = -1

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def advance_to(self, byte_count: int) -> None:
        """Show that `byte_count` bytes have come; the bar never goes back."""
        done = self._progress.tasks[self._task].completed
        self._progress.update(self._task, completed=max(done, min(byte_count, self.total)))
        tenth = min(10, byte_count * 10 // self.total)
        if not self._console.is_terminal and tenth > self._last_tenth:
            self._console.print(
                f"{self.title}: {tenth * 10} % of {self.total / 1e6:,.0f} MB", highlight=False
            )
        self._last_tenth = max(self._last_tenth, tenth)
