"""Measure the fixed cost of a turn: storing a message, and the check after a response."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from django.conf import settings
from django.db import transaction

from chatcore.models import Message, Session
from chatcore.signals import response_completed
from chatcore.turns.messages import append_message
from measure.benchmarks.raw_store import RawStore
from measure.benchmarks.sample_sessions import WORDS, create_conversation, create_model
from measure.benchmarks.timing import Row, measure_in_turns, measure_once
from models_registry.models import AiModel

TIMES = 60
LIMITS = {1_000: 5, 10_000: 10}  # milliseconds for so many live messages
SETTLING = 5  # checks that come before what is measured
UNLIMITED_WINDOW = 2_000_000_000  # tokens; nothing is over the threshold
TOKENS = 18  # of each live message
BRIEF_EXCHANGE = (
    {"role": "user", "content": "And what does the next page of the report say?"},
    {"role": "assistant", "content": "It says that the numbers are of one run."},
)


def measure_rows(base_url: str) -> Iterator[Row]:
    """Measure an append and the check, each beside raw SQLite with the same durability."""
    with RawStore(Path(settings.DATA_DIR) / "raw.sqlite3") as raw:
        model = create_model(base_url, window=UNLIMITED_WINDOW)
        yield _measure_append(raw, model)
        yield from _measure_checks(raw, model)


def _measure_append(raw: RawStore, model: AiModel) -> Row:
    session = create_conversation(2, model)
    works: tuple[Callable[[], object], ...] = (
        lambda: _append(session, Message.Role.USER),
        lambda: raw.append_message("user", WORDS),
    )
    ours, floor = measure_in_turns(*(partial(measure_once, work) for work in works), times=TIMES)
    return Row(
        name="append one message, durably", value=ours, limit=1, note=describe_ratio(ours, floor)
    )


def _measure_checks(raw: RawStore, model: AiModel) -> Iterator[Row]:
    for number, limit in LIMITS.items():
        session = create_conversation(number, model, BRIEF_EXCHANGE, is_compacted=False)
        ours, floor = measure_in_turns(
            partial(_measure_check, session),
            partial(measure_once, raw.check_size),
            times=TIMES,
            warm_up=SETTLING,
        )
        yield Row(
            name=f"check after a response, {number:,} live",
            value=ours,
            limit=limit,
            note=describe_ratio(ours, floor),
        )


def _measure_check(session: Session) -> float:
    """Append a question and an answer that was counted, then measure the check in milliseconds."""
    _append(session, Message.Role.USER)
    answer = _append(session, Message.Role.ASSISTANT)
    return measure_once(
        lambda: response_completed.send_robust(
            Session, session_id=session.pk, turn_id=None, message_id=answer.pk, model=answer.model
        )
    )


def _append(session: Session, role: str) -> Message:
    with transaction.atomic():
        message = append_message(
            session.pk, None, role=role, content=WORDS, model=str(session.model)
        )
    if role == Message.Role.ASSISTANT:
        Message.objects.filter(pk=message.pk).update(
            token_count_input=message.seq * TOKENS, token_count_output=90, context_version=0
        )
    return message


def describe_ratio(value: float, floor: float, unit: str = "ms") -> str:
    """Return the note that compares a value with raw SQLite."""
    return f"raw SQLite {floor:.3f} {unit}, {value / floor:.1f} ×"
