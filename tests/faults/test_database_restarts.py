"""PostgreSQL is restarted, stopped at once or killed: no shown word is lost, all goes on."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest

from tests.support.compaction_sessions import SUMMARY, summarize_or_chat
from tests.support.postgres_server import PostgresServer
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.served_product import ServedProduct, serve, wait_for
from tests.support.served_streams import find_web_processes, register_model
from tests.support.served_talks import Listener, create_session, open_api, say

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PostgresServer.is_installed(), reason="there is no PostgreSQL here"),
]

STREAMS = 6
AWAY_SECONDS = 2.0
ZOMBIE_SECONDS = 40.0  # longer than the lease of a turn
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


def stop_for_a_while(mode: str) -> Callable[[PostgresServer], None]:
    def stop(database: PostgresServer) -> None:
        database.stop(mode)
        time.sleep(AWAY_SECONDS)
        database.start()

    return stop


def kill(database: PostgresServer) -> None:
    database.kill()
    time.sleep(AWAY_SECONDS)
    database.start()


RESTARTS = {"fast": stop_for_a_while("fast"), "immediate": stop_for_a_while("immediate")}
RESTARTS["killed"] = kill


@pytest.mark.parametrize("how", RESTARTS)
def test_answers_in_the_middle_of_a_restart_keep_every_word(
    api: httpx2.Client, database: PostgresServer, scripted: ScriptedModel, how: str
) -> None:
    scripted.script(*[COUNTING] * STREAMS)
    listeners = [Listener(api, create_session(api)) for _ in range(STREAMS)]
    for listener in listeners:
        listener.wait_for_words()
    RESTARTS[how](database)
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
    api: httpx2.Client, database: PostgresServer, scripted: ScriptedModel, how: str, moment: str
) -> None:
    session = create_session(api, policy="oneclaw")
    history = [
        {"role": ("user", "assistant")[number % 2], "content": "a heron on a lake " * 120}
        for number in range(14)
    ]
    api.post(f"/sessions/{session}/messages/import", json={"messages": history})
    restart = threading.Thread(target=RESTARTS[how], args=(database,))

    def write_summary(_: Any) -> Reply:
        restart.start()
        if moment == "while it is written":
            return Reply(text=SUMMARY, delay=AWAY_SECONDS + 2)
        wait_for(lambda: not database.answers(), 60, every=0.02)
        return Reply(text=SUMMARY)

    scripted.script(write_summary)
    run = api.post(f"/sessions/{session}/compact", json={}).json()["id"]
    wait_for(restart.is_alive, 60, every=0.05)
    restart.join()
    start = time.monotonic()
    wait_for(lambda: find_end(api, run), RUN_SECONDS)
    print(f"{how}, {moment}: over {time.monotonic() - start:.0f} s after the return")
    ended = api.get(f"/compactions/{run}").json()
    assert ended["status"] == "applied", ended
    assert say(api, session)["assistant_message"]["status"] == "complete"


def find_end(api: httpx2.Client, run: str) -> str | None:
    answer = api.get(f"/compactions/{run}")
    status = answer.json().get("status") if answer.is_success else None
    return None if status in ("queued", "running", None) else str(status)


def test_a_web_process_that_sleeps_for_longer_than_its_lease_writes_nothing_more(
    api: httpx2.Client, product: ServedProduct, scripted: ScriptedModel
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
        time.sleep(ZOMBIE_SECONDS)
    finally:
        for pid in reversed(sleeping):
            os.kill(pid, signal.SIGCONT)
    for listener in listeners:
        listener.check()
        assert say(api, listener.session)["assistant_message"]["status"] == "complete"
