"""The clock steps by days, both ways, in every process: answers and summaries go on."""

import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime

import httpx2
import pytest

from tests.support.clock import DAY, Clock
from tests.support.compaction_sessions import SUMMARY, summarize_or_chat
from tests.support.postgres_server import PostgresServer
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.served_product import ServedProduct, serve
from tests.support.served_streams import find_web_processes, register_model
from tests.support.served_talks import Listener, create_session, open_api, say
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.faults, pytest.mark.lasting, pytest.mark.slow]

COUNTING = Reply(chunks=[f"word{number} " for number in range(40)], chunk_delay=0.1)


@pytest.fixture(scope="module")
def scripted() -> Iterator[ScriptedModel]:
    with ScriptedModel() as server:
        yield server


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Clock:
    return Clock(tmp_path_factory.mktemp("clock"))


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def product(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    scripted: ScriptedModel,
    clock: Clock,
) -> Iterator[ServedProduct]:
    folder = tmp_path_factory.mktemp("clock-product")
    arguments = ("--no-local-model", "--web", "1", "--workers", "1")
    if request.param == "sqlite":
        with serve(folder, *arguments, **clock.variables) as product:
            register_model(product, scripted)
            yield product
        return
    with (
        PostgresServer() as server,
        serve(folder, *arguments, **clock.variables, **server.variables) as product,
    ):
        register_model(product, scripted)
        yield product


@pytest.fixture(scope="module")
def api(product: ServedProduct) -> Iterator[httpx2.Client]:
    with open_api(product) as api:
        yield api


@pytest.fixture(autouse=True)
def set_clock_right(clock: Clock, scripted: ScriptedModel) -> None:
    clock.set(0)
    scripted.default = summarize_or_chat()


@pytest.mark.parametrize("days", [3, -3])
def test_an_answer_in_the_middle_of_a_step_is_whole(
    api: httpx2.Client, clock: Clock, scripted: ScriptedModel, days: float
) -> None:
    scripted.script(COUNTING)
    listener = Listener(api, create_session(api))
    listener.wait_for_words()
    clock.set(days)
    listener.check()
    assert (listener.end, listener.text) == ("turn.completed", COUNTING.words)


@pytest.mark.parametrize("days", [3, -3])
def test_the_clock_of_the_processes_does_step(
    api: httpx2.Client, clock: Clock, days: float
) -> None:
    clock.set(days)

    def find_error() -> float:
        created_at = api.post("/sessions", json={}).json()["created_at"]
        return (datetime.fromisoformat(created_at) - datetime.now(UTC)).total_seconds() / DAY

    wait_until(lambda: abs(find_error() - days) < 0.1)


def test_a_process_that_died_in_the_future_leaves_no_conversation_closed(
    api: httpx2.Client, clock: Clock, scripted: ScriptedModel, product: ServedProduct
) -> None:
    clock.set(3)
    scripted.script(Reply(chunks=COUNTING.chunks, cut_after=20, hang=True))
    listener = Listener(api, create_session(api))
    listener.wait_for_words()
    clock.set(0)
    os.kill(find_web_processes(product)[0], signal.SIGKILL)
    scripted.script(Reply(text="Here I am."))
    listener.check()
    assert listener.end == "turn.failed"
    assert COUNTING.words.startswith(listener.text)
    assert say(api, listener.session)["assistant_message"]["content"] == "Here I am."


@pytest.mark.parametrize("days", [3, -3])
def test_a_summary_in_the_middle_of_a_step_is_paid_once_and_installed(
    api: httpx2.Client, clock: Clock, scripted: ScriptedModel, days: float
) -> None:
    session = create_session(api, policy="oneclaw")
    history = [
        {"role": ("user", "assistant")[number % 2], "content": "a heron on a lake " * 120}
        for number in range(14)
    ]
    api.post(f"/sessions/{session}/messages/import", json={"messages": history})
    calls_before = len(scripted.requests)
    scripted.script(Reply(text=SUMMARY, delay=3))
    run = api.post(f"/sessions/{session}/compact", json={}).json()["id"]
    wait_until(lambda: len(scripted.requests) > calls_before)
    clock.set(days)

    def is_over() -> bool:
        return api.get(f"/compactions/{run}").json()["status"] not in ("queued", "running")

    wait_until(is_over)
    ended = api.get(f"/compactions/{run}").json()
    assert (ended["status"], ended["attempts"]) == ("applied", 1), ended
    assert len(scripted.requests) == calls_before + ended["provider_calls"]


def test_what_the_wrong_clocks_left_behind_is_sound(
    api: httpx2.Client, product: ServedProduct
) -> None:
    assert product.run_command("verify").endswith("0 violations")
