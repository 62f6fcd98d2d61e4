"""PostgreSQL is restarted, stopped at once or killed: no shown word is lost, all goes on."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

from tests.support.compaction_sessions import SUMMARY, summarize_or_chat
from tests.support.postgres_server import PostgresServer
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.served_product import ServedProduct, serve
from tests.support.served_streams import find_web_processes, register_model
from tests.support.served_talks import Listener, create_session, open_api, say
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PostgresServer.is_installed(), reason="there is no PostgreSQL here"),
]

STREAMS = 6
RUN_SECONDS = 90.0  # until a run is over whose database was away
COUNTING = Reply(chunks=[f"word{number} " for number in range(60)], chunk_delay=0.1)


@pytest.fixture(scope="module")
def scripted() -> Iterator[ScriptedModel]:
    with ScriptedModel() as server:
        yield server


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="module")
def product(
    tmp_path_factory: pytest.TempPathFactory, database: PostgresServer, scripted: ScriptedModel
) -> Iterator[ServedProduct]:
    arguments = ("--no-local-model", "--web", "2", "--workers", "1")
    folder = tmp_path_factory.mktemp("restarts")
    with serve(folder, *arguments, **database.variables) as product:
        register_model(product, scripted)
        yield product


@pytest.fixture(scope="module")
def api(product: ServedProduct) -> Iterator[httpx2.Client]:
    with open_api(product) as api:
        yield api


@pytest.fixture(autouse=True)
def sound(product: ServedProduct, scripted: ScriptedModel) -> Iterator[None]:
    """Whatever happened, what is stored holds what must hold."""
    scripted.default = summarize_or_chat()
    yield
    assert product.run_command("verify").endswith("0 violations")


RESTARTS: dict[str, Callable[[PostgresServer], None]] = {
    "fast": lambda database: database.stop("fast"),
    "immediate": lambda database: database.stop("immediate"),
    "killed": lambda database: database.kill(),
}


def restart(database: PostgresServer, product: ServedProduct, how: str) -> None:
    """Stop the database, and start it again once the product has missed it."""
    RESTARTS[how](database)
    wait_until(lambda: misses_database(product), what="the product misses its database")
    database.start()


def misses_database(product: ServedProduct) -> bool:
    try:
        return "database" in httpx2.get(f"{product.url}/readyz", timeout=30).json()["missing"]
    except httpx2.HTTPError:
        return False


@pytest.mark.parametrize("how", RESTARTS)
def test_answers_in_the_middle_of_a_restart_keep_every_word(
    api: httpx2.Client,
    database: PostgresServer,
    product: ServedProduct,
    scripted: ScriptedModel,
    how: str,
) -> None:
    scripted.script(*[COUNTING] * STREAMS)
    listeners = [Listener(api, create_session(api)) for _ in range(STREAMS)]
    for listener in listeners:
        listener.wait_for_words()
    restart(database, product, how)
    for listener in listeners:
        listener.check()
        assert COUNTING.words.startswith(listener.text)
        assert say(api, listener.session)["assistant_message"]["status"] == "complete"
    whole = sum(listener.text == COUNTING.words for listener in listeners)
    print(f"{how}: {whole} of {STREAMS} answers are whole")
    assert whole == STREAMS, "a short absence costs no answer"


@pytest.mark.parametrize("moment", ["while it is written", "when it is installed"])
@pytest.mark.parametrize("how", RESTARTS)
def test_a_summary_in_the_middle_of_a_restart_is_installed_soon(
    api: httpx2.Client,
    database: PostgresServer,
    product: ServedProduct,
    scripted: ScriptedModel,
    how: str,
    moment: str,
) -> None:
    session = create_session(api, policy="oneclaw")
    history = [
        {"role": ("user", "assistant")[number % 2], "content": "a heron on a lake " * 120}
        for number in range(14)
    ]
    api.post(f"/sessions/{session}/messages/import", json={"messages": history})
    restarting = threading.Thread(target=restart, args=(database, product, how))

    def write_summary(_: Any) -> Reply:
        restarting.start()
        if moment == "while it is written":
            restarting.join()
            return Reply(text=SUMMARY)
        wait_until(lambda: not database.answers(), what="the stop of PostgreSQL")
        return Reply(text=SUMMARY)

    scripted.script(write_summary)
    run = api.post(f"/sessions/{session}/compact", json={}).json()["id"]
    wait_until(lambda: restarting.ident, what="the request for the summary")
    restarting.join()
    seconds = wait_until(lambda: find_end(api, run), seconds=RUN_SECONDS)
    print(f"{how}, {moment}: over {seconds:.0f} s after the return")
    ended = api.get(f"/compactions/{run}").json()
    assert ended["status"] == "applied", ended
    assert say(api, session)["assistant_message"]["status"] == "complete"


def find_end(api: httpx2.Client, run: str) -> str | None:
    answer = api.get(f"/compactions/{run}")
    status = answer.json().get("status") if answer.is_success else None
    return None if status in ("queued", "running", None) else str(status)


def test_a_web_process_that_sleeps_for_longer_than_its_lease_writes_nothing_more(
    api: httpx2.Client, database: PostgresServer, product: ServedProduct, scripted: ScriptedModel
) -> None:
    scripted.script(*[COUNTING] * STREAMS)
    listeners = [Listener(api, create_session(api)) for _ in range(STREAMS)]
    for listener in listeners:
        listener.wait_for_words()
    # The supervisor would replace a process that does not answer, so it sleeps as well.
    sleeping = [product.pid, find_web_processes(product)[0]]
    for pid in sleeping:
        os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: not count_running_turns(database), what="the end of all leases")
    finally:
        for pid in reversed(sleeping):
            os.kill(pid, signal.SIGCONT)
    for listener in listeners:
        listener.check()
        assert say(api, listener.session)["assistant_message"]["status"] == "complete"


def test_connections_from_before_a_restart_do_not_refuse_one_after_another(
    tmp_path: Path, scripted: ScriptedModel
) -> None:
    arguments = ("--no-local-model", "--web", "1", "--workers", "1")
    with (
        PostgresServer() as database,
        serve(tmp_path, *arguments, **database.variables) as product,
    ):
        register_model(product, scripted)
        with open_api(product) as api, ThreadPoolExecutor(20) as readers:

            def read(_: int) -> int:
                return api.get("/sessions").status_code

            assert set(readers.map(read, range(200))) == {200}  # many connections are open now
            database.stop("fast")
            database.start()
            statuses = [read(number) for number in range(60)]
            assert statuses.count(200) >= 59, "the first to find a dead connection may be refused"


def count_running_turns(database: PostgresServer) -> int:
    with psycopg.connect(database.url) as connection:
        row = connection.execute(
            "SELECT count(*) FROM chatcore_turn WHERE status = 'running'"
        ).fetchone()
        assert row
        return int(row[0])
