"""Measure the work before and after a model's answer, with a short and a long history."""

import json
import sqlite3
from collections.abc import Callable, Iterator

from django.conf import settings

from chatcore.context.builder import build_request
from chatcore.models import Session
from chatcore.signals import response_completed
from compaction.sessions import request_size, session_context
from measure.benchmarks.timing import FLAT, Row, measure_medians

TIMES = 60


def measure_rows(short: Session, long: Session) -> Iterator[Row]:
    """Measure the check after a response and building the next request."""
    yield from _measure_check(short, long)
    yield from _measure_next_request(short, long)


def _measure_check(short: Session, long: Session) -> Iterator[Row]:
    few, many = measure_medians(_make_check(short), _make_check(long), times=TIMES)
    yield Row(name="check after a response, 1k stored", value=few, limit=5)
    yield Row(name="check after a response, 100k stored", value=many, limit=5)
    yield Row(name="  100k against 1k", value=many / few, limit=FLAT, unit="×")
    counting, signal = measure_medians(_make_count(long), _make_signal(long), times=TIMES)
    yield Row(name="  counting the tokens alone, 100k stored", value=counting, limit=5)
    yield Row(
        name="  with its durable event, 100k stored",
        value=signal,
        note="everything that receives the signal",
    )


def _make_check(session: Session) -> Callable[[], object]:
    def check() -> object:
        now = session_context.load_session_context(session.pk)
        assert now is not None
        return request_size.describe_usage(now)

    return check


def _make_count(session: Session) -> Callable[[], object]:
    def count() -> object:
        now = session_context.load_session_context(session.pk)
        assert now is not None
        assert now.budget is not None
        return now.budget.is_over(request_size.measure_next_request(now).tokens)

    return count


def _make_signal(session: Session) -> Callable[[], object]:
    return lambda: response_completed.send_robust(
        Session, session_id=session.pk, turn_id=None, message_id=None, model=""
    )


def _measure_next_request(short: Session, long: Session) -> Iterator[Row]:
    raw = sqlite3.connect(settings.DATABASES["default"]["NAME"])
    functions = (
        lambda: build_request(short),
        lambda: build_request(long),
        lambda: _read_raw_request(raw, long),
    )
    few, many, floor = measure_medians(*functions, times=TIMES)
    raw.close()
    yield Row(name="build the next request, 1k stored", value=few, limit=1.5)
    yield Row(
        name="build the next request, 100k stored",
        value=many,
        limit=1.5,
        note=f"raw SQLite {floor:.3f} ms, {many / floor:.1f} ×",
    )
    yield Row(name="  100k against 1k", value=many / few, limit=FLAT, unit="×")


def _read_raw_request(raw: sqlite3.Connection, session: Session) -> list[dict[str, str]]:
    """Read the same request with two SQL statements and no code between."""
    summary, boundary = raw.execute(
        "SELECT compacted_summary, compact_boundary_seq FROM chatcore_session WHERE id = ?",
        (session.pk.hex,),
    ).fetchone()
    rows = raw.execute(
        "SELECT role, content, tool_calls FROM chatcore_message"
        " WHERE session_id = ? AND seq >= ? ORDER BY seq",
        (session.pk.hex, boundary),
    ).fetchall()
    return [
        {"role": "system", "content": summary},
        *(
            {"role": role, "content": content, "calls": json.loads(calls)}
            for role, content, calls in rows
        ),
    ]
