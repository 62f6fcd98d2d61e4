"""Measure a compaction run of 10,000 candidates from its request to its end."""

import contextlib
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch
from uuid import UUID

from django.conf import settings

from chatcore.models import Session
from compaction.models import CompactionRun
from compaction.runs import engine
from compaction.summaries import calls
from compaction.summaries.model_calls import CallResult, Prompt
from measure.benchmarks.raw_store import RawStore
from measure.benchmarks.sample_sessions import EXCHANGE, create_conversation, create_model
from measure.benchmarks.timing import Row, measure_once
from measure.benchmarks.turn_costs import describe_ratio
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

CANDIDATES = 10_000
TIMES = 5
WINDOW = 1_000_000  # tokens; the candidates have a little more
SUMMARY = (
    "The quick brown fox jumps over the lazy dog, again and again, and writes a report about it "
    "each time. Nothing else was said, and nothing is open."
)


def measure_rows(scripted: ScriptedModel) -> Iterator[Row]:
    """Measure runs of the default policy over real HTTP, without the time of the model's calls."""
    scripted.default = Reply(text=SUMMARY)
    model = create_model(scripted.base_url, window=WINDOW)
    sessions = [
        create_conversation(CANDIDATES, model, is_compacted=False) for _ in range(TIMES + 1)
    ]
    pairs = (
        (EXCHANGE[seq % 2]["role"], f"{seq}\n\n{EXCHANGE[0]['content']}")
        for seq in range(CANDIDATES)
    )
    with RawStore(Path(settings.DATA_DIR) / "raw-pass.sqlite3") as raw:
        raw.append_messages(pairs)
        values = [
            (_measure_run(session), measure_once(lambda: raw.compact(SUMMARY)))
            for session in sessions
        ][1:]
    ours, floor = (statistics.median(column) for column in zip(*values, strict=True))
    yield Row(
        name=f"compact {CANDIDATES:,} stored messages",
        value=ours,
        limit=150,
        note=f"without the model; {describe_ratio(ours, floor)}",
    )


def _measure_run(session: Session) -> float:
    """Return the milliseconds of a run, without those of its summary calls."""
    with _time_summary_calls() as call_times:
        start = time.perf_counter()
        run = engine.compact_now(session.pk, trigger=CompactionRun.Trigger.MANUAL)
        elapsed = time.perf_counter() - start
    assert run.status == CompactionRun.Status.APPLIED, (run.status, run.reason)
    assert call_times, "the model wrote no summary"
    return (elapsed - sum(call_times)) * 1000


@contextlib.contextmanager
def _time_summary_calls() -> Iterator[list[float]]:
    """Note the seconds of each call of the summary model, which goes on as it always does."""
    call = calls.call_summary_model
    times: list[float] = []

    def call_and_note(session_id: UUID, prompt: Prompt) -> CallResult:
        start = time.perf_counter()
        try:
            return call(session_id, prompt)
        finally:
            times.append(time.perf_counter() - start)

    with patch.object(calls, "call_summary_model", call_and_note):
        yield times
