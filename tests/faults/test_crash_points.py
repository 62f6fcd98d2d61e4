"""Every commit of the product is hurt: the process dies there, or its database fails or is slow.

Whatever happens, the rules of stored sessions hold, nothing that was acknowledged or shown is lost,
nothing is doubled, and the conversation goes on. The commits are found by themselves
(tests/support/crash_points.py). A normal run tries three faults at some of them;
`pytest tests/faults/test_crash_points.py -m slow` tries CHATCORE_CRASH_TIMES (20) at each.
"""

import contextlib
import os
import signal
from collections.abc import Iterator
from itertools import cycle, islice

import pytest
from django.contrib.auth.models import User
from django.db import Error as DatabaseProblem
from django.db import connection

from models_registry.models import AiModel
from tests.support import crash_acts
from tests.support.crash_acts import ACTS, Stage
from tests.support.crash_child import CrashingProcess, start_crashing_process
from tests.support.crash_points import Action, CrashPoint, Moment, watch_commits
from tests.support.database import build_database_url
from tests.support.scripted_model import ScriptedModel

pytestmark = [pytest.mark.faults, pytest.mark.django_db(transaction=True)]

SEND = "chatcore.turns.control.start_turn"
WRITE_DELTAS = "chatcore.turns.delta_writer.DeltaWriter._write_locked"
STORE_ANSWER = "chatcore.turns.generation._store_answer"
MEASURE = "compaction.runs.receivers.measure_and_request_run"
WAIT = "chatcore.turns.generation._wait"
CANCEL = "chatcore.turns.control.stop_answer"
BEGIN_DRAFT = "chatcore.sessions.drafts.SessionDraft.__enter__"
WRITE_DRAFT = "chatcore.sessions.drafts.store_messages"
BEGIN_RUN = (
    "compaction.runs.lifecycle.reset_failures",
    "compaction.runs.queue._insert_run",
    "compaction.runs.tasks.send_run",
    "compaction.runs.leases.claim_run",
)
SUMMARIZE = (
    "compaction.runs.lifecycle.announce_start",
    "compaction.summaries.call_log._store_once",
)
COUNT_COST = (
    "chatcore.contrib.budgets.records._add_to_sum"  # of a summary, or an answer that was stopped
)
INSTALL = "compaction.runs.lifecycle.apply_run"
# Made by a clock: a summary that is soon written reports nothing of its progress.
TIMED_POINTS = {"compaction.runs.lifecycle.RunProgress.report"}
# Each act with all of its commits. A test fails when one is not made, or another is.
POINTS: dict[str, tuple[str, ...]] = {
    "talk": (
        SEND,
        WRITE_DELTAS,
        STORE_ANSWER,
        "chatcore.turns.generation._store_result",
    ),
    "use_client_tool": (
        SEND,
        WRITE_DELTAS,
        STORE_ANSWER,
        WAIT,
        "chatcore.turns.control._submit",
        MEASURE,
    ),
    "cancel": (SEND, WRITE_DELTAS, CANCEL, COUNT_COST, "chatcore.turns.lifecycle._close_turn"),
    "cancel_waiting": (
        SEND,
        STORE_ANSWER,
        WAIT,
        CANCEL,
        "chatcore.turns.control._cancel_waiting_turn",
    ),
    "edit": (
        SEND,
        WRITE_DELTAS,
        STORE_ANSWER,
        "chatcore.turns.control.regenerate_answer",
        "chatcore.turns.versions.restore_version",
    ),
    "compact": (*BEGIN_RUN, *SUMMARIZE, COUNT_COST, INSTALL),
    "compact_and_rewind": (
        *BEGIN_RUN,
        *SUMMARIZE,
        COUNT_COST,
        INSTALL,
        "compaction.runs.engine._rewind_context",
    ),
    "compact_in_vain": (*BEGIN_RUN, *SUMMARIZE, "compaction.runs.lifecycle.fail_run"),
    "compact_too_little": (*BEGIN_RUN, "compaction.runs.lifecycle.skip_run"),
    "delete_message": ("chatcore.turns.deletion.delete_message", MEASURE),
    "delete_session": (
        "chatcore.sessions.deletion._hide_session",
        "chatcore.sessions.deletion._empty_table",
        "chatcore.sessions.deletion._purge_step_by_step",
    ),
    "import_session": (BEGIN_DRAFT, WRITE_DRAFT, "chatcore.transfer.importer.import_session"),
    "import_messages": (
        BEGIN_DRAFT,
        WRITE_DRAFT,
        "chatcore.transfer.importer._append_many_messages",
    ),
    "fork": (
        BEGIN_DRAFT,
        "chatcore.turns.forks._copy_messages",
        "chatcore.turns.forks._copy_session",
    ),
    "pin": ("chatcore.turns.messages.pin_message",),
}
FAULTS: tuple[tuple[Moment, Action], ...] = (
    ("after", "kill"),
    ("before", "lose the connection"),
    ("after", "lose the connection"),
    ("before", "kill"),
    ("before", "refuse the statement"),
    ("before", "delay"),
    ("after", "delay"),
)
CHOSEN = (
    ("talk", STORE_ANSWER),
    ("use_client_tool", "chatcore.turns.control._submit"),
    ("compact", INSTALL),
    ("delete_session", "chatcore.sessions.deletion._hide_session"),
    ("import_session", "chatcore.transfer.importer.import_session"),
    ("fork", "chatcore.turns.forks._copy_session"),
)
TIMES = int(os.environ.get("CHATCORE_CRASH_TIMES", "20"))


@pytest.fixture(scope="module")
def crashing_process(django_db_setup: None) -> Iterator[CrashingProcess]:
    with start_crashing_process(build_database_url()) as process:
        yield process


@pytest.fixture
def provider(scripted: ScriptedModel) -> ScriptedModel:
    scripted.default = crash_acts.reply_to_acts
    return scripted


@pytest.mark.parametrize("act", ACTS)
def test_an_act_makes_the_commits_that_are_known(
    act: str, user: User, model: AiModel, provider: ScriptedModel
) -> None:
    stage = crash_acts.prepare_stage(act, user, model)
    points: set[str] = set()
    with watch_commits(lambda point, _moment, _wrapper: points.add(point)):
        ACTS[act](stage)
        crash_acts.stop_turns()
    assert points - TIMED_POINTS == set(POINTS[act])
    recover_and_check(stage, act)


@pytest.mark.parametrize(("act", "point"), CHOSEN)
def test_a_fault_at_a_commit_loses_and_doubles_nothing(
    act: str,
    point: str,
    user: User,
    model: AiModel,
    provider: ScriptedModel,
    crashing_process: CrashingProcess,
) -> None:
    hurt(act, point, 3, user, model, crashing_process)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("act", "point"), [(act, point) for act, points in POINTS.items() for point in points]
)
def test_many_faults_at_each_commit_lose_and_double_nothing(
    act: str,
    point: str,
    user: User,
    model: AiModel,
    provider: ScriptedModel,
    crashing_process: CrashingProcess,
) -> None:
    hurt(act, point, TIMES, user, model, crashing_process)


def hurt(
    act: str, point: str, times: int, user: User, model: AiModel, process: CrashingProcess
) -> None:
    """Let so many faults happen at the commit, each in a session of its own."""
    for index, (moment, action) in enumerate(islice(cycle(FAULTS), times)):
        stage = crash_acts.prepare_stage(act, user, model)
        number = 1 + index // len(FAULTS)  # the first time that it is made, later the second …
        if action == "kill":
            was_visited = kill_there(stage, act, point, moment, number, process)
        else:
            was_visited = fail_there(stage, act, CrashPoint(point, moment, action, number))
        assert was_visited or number > 1, f"the commit was not made: {moment}, {action}"
        recover_and_check(stage, act)


def kill_there(
    stage: Stage, act: str, point: str, moment: str, number: int, process: CrashingProcess
) -> bool:
    """Run the act in a process that dies there, and note what it was told before."""
    connection.close()
    status, stage.sent = process.crash(
        act=act, session=stage.session_id, point=point, moment=moment, number=number
    )
    assert status in (-signal.SIGKILL, 0)
    return status != 0


def fail_there(stage: Stage, act: str, point: CrashPoint) -> bool:
    """Run the act here, while its database fails or is slow there."""
    with watch_commits(point.visit), contextlib.suppress(DatabaseProblem, TimeoutError):
        ACTS[act](stage)
        crash_acts.stop_turns()
    crash_acts.stop_turns()
    return point.was_visited


def recover_and_check(stage: Stage, act: str) -> None:
    crash_acts.restart()
    crash_acts.go_on(stage, act)
    crash_acts.check(stage, act)
