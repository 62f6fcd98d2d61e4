"""Writers of one SQLite file wait in line: nobody is passed over, and nobody waits for a ghost."""

import gc
import multiprocessing
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection, transaction

from chatcore.databases.sqlite import QueueingConnection
from chatcore.databases.writer_queue import get_queue, stand_first
from tests.support.waiting import wait_until

LONG = 30.0  # seconds; no test waits so long unless it fails


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "shared.sqlite3")
    setup = sqlite3.connect(path, isolation_level=None)
    setup.execute("PRAGMA journal_mode=WAL")
    setup.execute("CREATE TABLE entry (writer TEXT)")
    setup.close()
    return path


def open_writer(path: str, *, timeout: float = LONG) -> QueueingConnection:
    return sqlite3.connect(
        path,
        timeout=timeout,
        factory=QueueingConnection,
        isolation_level=None,
        check_same_thread=False,
    )


def begin(writer: sqlite3.Connection) -> None:
    writer.cursor().execute("BEGIN IMMEDIATE")


def write(path: str, name: str) -> None:
    writer = open_writer(path)
    begin(writer)
    writer.cursor().execute("INSERT INTO entry VALUES (?)", (name,))
    writer.commit()
    writer.close()


def list_entries(path: str) -> list[str]:
    reader = sqlite3.connect(path)
    names = [name for (name,) in reader.execute("SELECT writer FROM entry ORDER BY rowid")]
    reader.close()
    return names


def start(work: Callable[..., None], *args: object) -> threading.Thread:
    thread = threading.Thread(target=work, args=args, daemon=True)
    thread.start()
    return thread


def test_writers_are_served_in_the_order_in_which_they_came(path: str) -> None:
    first = open_writer(path)
    begin(first)
    names = [f"writer {number}" for number in range(20)]
    threads = []
    for name in names:
        threads.append(start(write, path, name))
        wait_until(lambda: get_queue(path).count_waiters() == len(threads))
    first.commit()
    for thread in threads:
        thread.join(LONG)
    assert list_entries(path) == names


def test_who_writes_for_many_stands_first(path: str) -> None:
    def write_first() -> None:
        with stand_first():
            write(path, "for many")

    first = open_writer(path)
    begin(first)
    threads = []
    for work in (lambda: write(path, "one"), lambda: write(path, "another"), write_first):
        threads.append(start(work))
        wait_until(lambda: get_queue(path).count_waiters() == len(threads))
    first.commit()
    for thread in threads:
        thread.join(LONG)
    assert list_entries(path) == ["for many", "one", "another"]


def test_a_writer_that_never_rests_lets_the_others_pass(path: str) -> None:
    restless = open_writer(path)
    begin(restless)
    other = start(write, path, "other")
    wait_until(lambda: get_queue(path).count_waiters() == 1)
    for number in range(3):
        restless.cursor().execute("INSERT INTO entry VALUES (?)", (f"restless {number}",))
        restless.commit()
        begin(restless)
    restless.commit()
    other.join(LONG)
    assert list_entries(path) == ["restless 0", "other", "restless 1", "restless 2"]


def test_a_single_statement_waits_in_the_same_line(path: str) -> None:
    first = open_writer(path)
    begin(first)

    def write_single() -> None:
        open_writer(path).cursor().execute("\n  INSERT INTO entry VALUES ('single')")

    single = start(write_single)
    wait_until(lambda: get_queue(path).count_waiters() == 1)
    last = start(write, path, "last")
    wait_until(lambda: get_queue(path).count_waiters() == 2)
    first.commit()
    single.join(LONG)
    last.join(LONG)
    assert list_entries(path) == ["single", "last"]


def test_reading_waits_for_nobody(path: str) -> None:
    writer = open_writer(path)
    begin(writer)
    assert open_writer(path).cursor().execute("SELECT count(*) FROM entry").fetchone() == (0,)


def test_who_waits_too_long_leaves_the_line_with_sqlites_own_error(path: str) -> None:
    first = open_writer(path)
    begin(first)
    impatient = open_writer(path, timeout=0.05)
    with pytest.raises(sqlite3.OperationalError, match="database is locked") as caught:
        begin(impatient)
    assert caught.value.sqlite_errorcode == sqlite3.SQLITE_BUSY
    patient = start(write, path, "patient")
    wait_until(lambda: get_queue(path).count_waiters() == 1)
    first.commit()
    patient.join(LONG)
    assert list_entries(path) == ["patient"]
    begin(impatient)
    impatient.rollback()


@pytest.mark.parametrize("end", ["commit", "rollback", "close"])
def test_each_end_of_a_transaction_lets_the_next_begin(path: str, end: str) -> None:
    first = open_writer(path)
    begin(first)
    getattr(first, end)()
    write(path, "next")
    assert list_entries(path) == ["next"]


def test_a_transaction_ended_by_a_statement_lets_the_next_begin(path: str) -> None:
    first = open_writer(path)
    begin(first)
    first.cursor().execute("COMMIT")
    write(path, "next")
    assert list_entries(path) == ["next"]


def test_a_connection_forgotten_in_a_transaction_lets_the_next_begin(path: str) -> None:
    def forget() -> None:
        forgotten = open_writer(path)
        begin(forgotten)
        forgotten.cursor().execute("INSERT INTO entry VALUES ('forgotten')")

    thread = start(forget)
    thread.join(LONG)
    gc.collect()
    write(path, "next")
    assert list_entries(path) == ["next"]


def test_a_failed_statement_ends_the_turn(path: str) -> None:
    failing = open_writer(path)
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        failing.cursor().execute("INSERT INTO nowhere VALUES (1)")
    write(path, "next")
    assert list_entries(path) == ["next"]


def test_a_writer_of_another_process_is_waited_for(path: str) -> None:
    foreign = sqlite3.connect(path, isolation_level=None)  # it does not know of the line
    foreign.execute("BEGIN IMMEDIATE")
    impatient = open_writer(path, timeout=0.05)
    with pytest.raises(sqlite3.OperationalError, match="database is locked"):
        begin(impatient)
    patient = start(write, path, "patient")
    foreign.execute("INSERT INTO entry VALUES ('foreign')")
    foreign.commit()
    patient.join(LONG)
    assert list_entries(path) == ["foreign", "patient"]


class ParentsWriter:
    """A connection of the parent; SQLite forbids to carry a real one through a fork."""


def test_a_forked_process_does_not_wait_for_its_parents_threads(path: str) -> None:
    parents_writer = ParentsWriter()
    assert get_queue(path).acquire(parents_writer, timeout=0)
    child = multiprocessing.get_context("fork").Process(target=write, args=(path, "child"))
    child.start()
    child.join(LONG)
    assert child.exitcode == 0
    assert list_entries(path) == ["child"]
    assert not get_queue(path).acquire(ParentsWriter(), timeout=0.01)


def test_a_database_in_memory_has_no_line() -> None:
    first = open_writer(":memory:")
    begin(first)
    second = open_writer(":memory:")
    begin(second)
    assert first.in_transaction
    assert second.in_transaction


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL has many writers at once.")
@pytest.mark.django_db(transaction=True)
def test_djangos_transactions_wait_in_line() -> None:
    with transaction.atomic():
        queue = get_queue(str(connection.settings_dict["NAME"]))
        follower = start(_write_in_a_transaction)
        wait_until(lambda: queue.count_waiters() == 1)
    follower.join(LONG)
    assert queue.count_waiters() == 0


def _write_in_a_transaction() -> None:
    with transaction.atomic():
        pass
    connection.close()
