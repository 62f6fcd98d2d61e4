"""Tell those who watch a session how far the summary is that is being written."""

from django.db import transaction

from chatcore.events.log import append_events
from chatcore.events.types import CompactionProgressPayload, EventType
from compaction.models import CompactionRun
from compaction.runs import leases


class RunProgress:
    """What was announced of a run: the part that is being summarized, and its text so far."""

    def __init__(self, run: CompactionRun) -> None:
        self.run = run
        self.part = 0
        self.parts = 1
        self._announced_chars: int | None = None

    def expect_parts(self, count: int) -> None:
        """Expect so many calls of a model from now on."""
        self.parts = self.part + max(1, count)

    def begin_part(self) -> None:
        """Begin the next part, which may be one more than was expected."""
        self.part += 1
        self.parts = max(self.parts, self.part)

    def begin_call(self) -> None:
        """Begin to write the part, once more if it is a retry."""
        self._announced_chars = None

    def report(self, text: str) -> None:
        """Announce the text so far, if there is news. Raises RunLeaseLost."""
        if not leases.select_claimed_run(self.run).exists():
            raise leases.RunLeaseLost
        if self._announced_chars is not None and len(text) == self._announced_chars:
            return
        offset = self._announced_chars or 0
        payload: CompactionProgressPayload = {
            "run": str(self.run.pk),
            "part": self.part,
            "parts": self.parts,
            "offset": offset,
            "text": text[offset:],
        }
        with transaction.atomic():
            append_events(self.run.session_id, (EventType.COMPACTION_PROGRESS, payload))
        self._announced_chars = len(text)
