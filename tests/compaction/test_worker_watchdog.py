"""The watchdog: when a cluster counts as hung, and when it is only busy."""

from compaction.worker.processes import Process
from compaction.worker.watchdog import BUSY_WORKER_NAME, CANARY_INTERVAL, PATIENCE, Watchdog

LONGEST_TASK = 900.0


class Lane:
    """A lane in which the test decides whether the canary is still out."""

    def __init__(self) -> None:
        self.out = False
        self.sent = 0

    def send_canary(self) -> None:
        self.sent += 1
        self.out = True

    def is_canary_out(self) -> bool:
        return self.out


def processes(*names: str, state: str = "S") -> list[Process]:
    return [
        Process(pid=pid, parent=1, name=name, state=state)
        for pid, name in enumerate(names, start=100)
    ]


FREE = processes("python", "jobs-free", "jobs-free")
HALF_BUSY = processes("python", "jobs-free", BUSY_WORKER_NAME)
ALL_BUSY = processes("python", BUSY_WORKER_NAME, BUSY_WORKER_NAME)


def watched(lane: Lane) -> Watchdog:
    return Watchdog(lane, workers=2, max_task_seconds=LONGEST_TASK)


def seconds_until_complaint(
    watchdog: Watchdog, members: list[Process], *, at_most: int
) -> int | None:
    return next(
        (second for second in range(1, at_most + 1) if watchdog.check_cluster(1.0, members)), None
    )


def test_a_canary_that_comes_back_proves_the_cluster_and_is_followed_by_another() -> None:
    lane = Lane()
    watchdog = watched(lane)
    for _ in range(2):
        for _ in range(int(CANARY_INTERVAL) + 2):
            assert watchdog.check_cluster(1.0, FREE) is None
            lane.out = False
    assert watchdog.has_canary_returned
    assert lane.sent == 3


def test_a_canary_that_stays_out_while_a_worker_is_free_means_hung() -> None:
    for members in (FREE, HALF_BUSY):
        waited = seconds_until_complaint(watched(Lane()), members, at_most=60)
        assert waited is not None
        assert waited <= PATIENCE + 3


def test_a_cluster_whose_workers_are_all_busy_is_given_the_time_of_the_longest_task() -> None:
    waited = seconds_until_complaint(watched(Lane()), ALL_BUSY, at_most=2000)
    assert waited is not None
    assert LONGEST_TASK <= waited <= LONGEST_TASK + PATIENCE + 3


def test_a_process_that_stays_stopped_or_unburied_means_hung_though_canaries_return() -> None:
    for state in "TZ":
        lane = Lane()
        watchdog = watched(lane)
        members = [*FREE, Process(pid=7, parent=1, name="python", state=state)]
        complaints = []
        for _ in range(int(PATIENCE)):
            complaints.append(watchdog.check_cluster(1.0, members))
            lane.out = False
        assert "process 7" in str(complaints[-1])
        assert complaints[0] is None


def test_a_process_that_died_and_was_reaped_is_no_complaint_but_sends_a_canary_at_once() -> None:
    lane = Lane()
    watchdog = watched(lane)
    for _ in range(3):
        watchdog.check_cluster(1.0, FREE)
        lane.out = False
    sent = lane.sent
    watchdog.check_cluster(1.0, FREE[:-1])
    watchdog.check_cluster(1.0, FREE[:-1])
    assert lane.sent == sent + 1


def test_a_suspended_machine_makes_no_cluster_hung() -> None:
    watchdog = watched(Lane())
    watchdog.check_cluster(1.0, FREE)
    assert (
        watchdog.check_cluster(2.0, FREE) is None
    )  # the keeper never tells of more than two seconds


def test_while_a_process_is_stuck_no_death_is_a_runs_own() -> None:
    watchdog, answers = watched(Lane()), []
    unburied = [*FREE, Process(pid=9, parent=1, name="python", state="Z")]
    for members in (FREE, unburied, FREE):
        watchdog.check_cluster(1.0, members)
        answers.append(watchdog.has_stuck_process)
    assert answers == [False, True, False]
