"""Measure the room on disk of a thousand messages, with everything that is stored of them."""

import random
import re
import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db.models import F

from chatcore.events import retention
from chatcore.models import Session, SessionEvent, Turn
from chatcore.turns import control
from measure.benchmarks.raw_store import RawStore, count_used_bytes
from measure.benchmarks.sample_sessions import get_user
from measure.benchmarks.timing import Row
from models_registry.models import AiModel
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

ROOT = Path(__file__).resolve().parents[2]
SESSIONS, TURNS = 25, 20  # a thousand messages
QUESTION_CHARS, ANSWER_CHARS = 300, 900
AGE = timedelta(days=60)  # nobody resumes a stream after so long
MEGABYTE = 1_000_000


def measure_rows(scripted: ScriptedModel, model: AiModel) -> Iterator[Row]:
    """Measure real turns, as soon as they are written and when their events are old."""
    questions, answers = _write_texts()
    words = sum(len(text.encode()) for text in (*questions, *answers))
    before = _count_bytes()
    _run_turns(scripted, model, questions, answers)
    fresh = _count_bytes() - before
    SessionEvent.objects.update(at=F("at") - AGE)
    Turn.objects.update(finished_at=F("finished_at") - AGE)
    retention.prune_events()
    old = _count_bytes() - before
    with RawStore(Path(settings.DATA_DIR) / "raw-room.sqlite3") as raw:
        empty = raw.count_bytes()
        raw.append_messages(
            pair
            for question, answer in zip(questions, answers, strict=True)
            for pair in (("user", question), ("assistant", answer))
        )
        floor = raw.count_bytes() - empty
    for name, size, limit in (
        ("a thousand messages on disk, just written", fresh, None),
        ("a thousand messages on disk, events old", old, 1.2),
    ):
        yield Row(
            name=name,
            value=size / MEGABYTE,
            limit=limit,
            unit="MB",
            note=f"words {words / MEGABYTE:.2f} MB, raw SQLite {floor / MEGABYTE:.2f} MB,"
            f" {size / floor:.1f} ×",
        )


def _write_texts() -> tuple[list[str], list[str]]:
    """Return questions and answers in words as frequent as in the project's own prose."""
    vocabulary = re.findall(r"[^\s|`#*]+", (ROOT / "docs" / "developers.md").read_text())
    dice = random.Random(11)

    def write_text(characters: int) -> str:
        text = ""
        while len(text) < characters:
            text += dice.choice(vocabulary) + " "
        return text.strip()

    lengths = (QUESTION_CHARS, ANSWER_CHARS)
    questions, answers = (
        [write_text(length) for _ in range(SESSIONS * TURNS)] for length in lengths
    )
    return questions, answers


def _run_turns(
    scripted: ScriptedModel, model: AiModel, questions: list[str], answers: list[str]
) -> None:
    for place, (question, answer) in enumerate(zip(questions, answers, strict=True)):
        if place % TURNS == 0:
            session = Session.objects.create(owner=get_user(), model=model)
        scripted.default = Reply(text=answer)
        turn = control.wait_for_turn(control.start_turn(session, content=question).pk, 30)
        assert turn.status == Turn.Status.COMPLETED, turn.error


def _count_bytes() -> int:
    connection = sqlite3.connect(settings.DATABASES["default"]["NAME"])
    try:
        return count_used_bytes(connection)
    finally:
        connection.close()
