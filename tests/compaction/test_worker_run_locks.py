"""The locked files of workers that die, and processes that die with their parents."""

import os
import signal
from pathlib import Path

from compaction.runs.run_locks import RunLocks
from compaction.runs.worker import let_children_die_with_parents
from tests.support.waiting import wait_until
from tests.support.worker_processes import is_living, list_living


def in_a_child(*steps: object) -> int:
    """Fork a child that runs the steps and then pauses. Return its pid when the steps are done."""
    finished, done = os.pipe()
    pid = os.fork()
    if pid == 0:
        for step in steps:
            step()  # type: ignore[operator]
        os.write(done, b".")
        signal.pause()
        os._exit(0)
    os.close(done)
    assert os.read(finished, 1), "a step failed"
    os.close(finished)
    return pid


def bury(pid: int) -> None:
    os.kill(pid, 9)
    os.waitpid(pid, 0)


def test_a_run_is_dropped_when_its_worker_dies_and_told_once(tmp_path: Path) -> None:
    hands = RunLocks(tmp_path)
    pid = in_a_child(lambda: hands.acquire_lock("run-1"))
    assert hands.collect_abandoned_runs() == []
    bury(pid)
    assert hands.collect_abandoned_runs() == ["run-1"]
    assert hands.collect_abandoned_runs() == []


def test_what_was_dropped_is_found_by_who_comes_later(tmp_path: Path) -> None:
    pid = in_a_child(lambda: RunLocks(tmp_path).acquire_lock("run-1"))
    bury(pid)
    assert RunLocks(tmp_path).collect_abandoned_runs() == ["run-1"]


def test_a_worker_that_finished_its_run_drops_nothing(tmp_path: Path) -> None:
    hands = RunLocks(tmp_path)
    pid = in_a_child(lambda: hands.acquire_lock("run-1"), hands.release_lock)
    bury(pid)
    assert hands.collect_abandoned_runs() == []
    assert list(tmp_path.iterdir()) == []


def test_a_stopped_worker_keeps_what_it_has_in_hand(tmp_path: Path) -> None:
    hands = RunLocks(tmp_path)
    pid = in_a_child(lambda: hands.acquire_lock("run-1"))
    os.kill(pid, signal.SIGSTOP)
    assert hands.collect_abandoned_runs() == []
    bury(pid)


def test_children_and_grandchildren_die_with_a_parent_that_is_killed() -> None:
    def ask_then_fork() -> None:
        let_children_die_with_parents()
        if os.fork() == 0:
            if os.fork() == 0:
                signal.pause()
            signal.pause()

    parent = in_a_child(ask_then_fork)
    wait_until(lambda: len(list_living(parent)) == 2)
    below = list_living(parent)
    bury(parent)
    wait_until(lambda: not any(map(is_living, below)))
