"""What a client sends twice at once is settled without an error of the database.

PostgreSQL logs each statement that it refuses, so whoever watches that log would see nothing else.
"""

import functools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections
from rest_framework.test import APIClient

from chatcore.contrib.compat.chat_completions.memory import create_session
from chatcore.contrib.compat.chat_completions.request import CompletionRequest
from chatcore.contrib.compat.programs import ThreadName
from chatcore.contrib.prompts.models import Prompt
from chatcore.models import Session
from compaction.models import CompactionRun, ModelRatio
from compaction.runs.queue import find_or_create_run
from compaction.sessions.calibration import save_ratio
from models_registry.models import AiModel
from tests.support.statements import note_statements

pytestmark = pytest.mark.django_db(transaction=True)
AT_ONCE = 4
ROUNDS = 2


def do_at_once(act: Callable[[], Any]) -> list[Any]:
    """Do something in several threads at once, and check that no statement failed."""
    barrier = threading.Barrier(AT_ONCE)

    def act_with_others(_: int) -> Any:
        connections["default"].ensure_connection()
        barrier.wait(60)
        try:
            return act()
        finally:
            connections.close_all()

    with note_statements() as statements, ThreadPoolExecutor(AT_ONCE) as threads:
        results = list(threads.map(act_with_others, range(AT_ONCE)))
    assert statements.errors == []
    return results


def test_triggers_of_a_compaction_share_one_run(session: Session) -> None:
    for _ in range(ROUNDS):
        runs = do_at_once(
            lambda: find_or_create_run(session.pk, trigger=CompactionRun.Trigger.MANUAL, options={})
        )
        assert len({run.pk for run, _ in runs}) == 1
        assert sum(is_new for _, is_new in runs) == 1
        CompactionRun.objects.all().delete()


def test_first_requests_of_a_named_session_share_one(user: User, model: AiModel) -> None:
    for number in range(ROUNDS):
        thread = ThreadName(name=f"chat {number}")
        request = CompletionRequest(
            model=model, model_name="m", system=None, messages=[], thread=thread
        )
        sessions = do_at_once(functools.partial(create_session, user, request))
        assert len({session.pk for session in sessions}) == 1


def test_prompts_of_one_name_are_refused_but_one(api: APIClient, user: User) -> None:
    answers = do_at_once(lambda: api.post("/api/v1/prompts", {"name": "tea", "text": "Brew."}))
    assert sorted(answer.status_code for answer in answers) == [201, *[400] * (AT_ONCE - 1)]
    with note_statements() as statements:
        again = api.post("/api/v1/prompts", {"name": "tea", "text": "Once more."})
    assert (again.status_code, again.json()["errors"][0]["field"]) == (400, "name")
    assert statements.errors == []
    assert Prompt.objects.get(owner=user).text == "Brew."


def test_what_is_learned_of_a_model_at_once_is_one_row() -> None:
    for number in range(ROUNDS):
        do_at_once(functools.partial(save_ratio, f"scripted/{number}", ratio=1.5))
    assert ModelRatio.objects.filter(ratio=1.5).count() == ROUNDS
