"""A web process that is asked to stop ends what it has begun, and sends everybody else on."""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from tests.support.postgres_server import PostgresServer
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.served_streams import join_text, read_events
from tests.support.waiting import PATIENCE_SECONDS, wait_until
from tests.support.web_commands import Deployment, GatedWords

pytestmark = [pytest.mark.faults, pytest.mark.lasting]
TURN_ENDS = ("turn.completed", "turn.failed", "turn.cancelled")
POSTGRESQL = pytest.param(
    "postgresql",
    marks=[
        pytest.mark.slow,
        pytest.mark.postgres,
        pytest.mark.skipif(not PostgresServer.is_installed(), reason="no PostgreSQL is installed"),
    ],
)


@pytest.fixture(params=["sqlite", POSTGRESQL])
def deployment(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Deployment]:
    if request.param == "sqlite":
        yield Deployment.create(tmp_path)
        return
    with PostgresServer() as server:
        yield Deployment.create(tmp_path, **server.variables)


class Reader:
    """Reads one stream in a thread; its text is in `text` as far as it has come."""

    def __init__(self, client: httpx2.Client, method: str, path: str, **options: object) -> None:
        self.text = ""
        self._client = client
        self._request = (method, path, options)

    def read(self) -> None:
        """Read to the end; a stream that is broken off raises."""
        method, path, options = self._request
        with self._client.stream(method, path, **options) as response:  # type: ignore[arg-type]
            for text in response.iter_text():
                self.text += text

    def count_words(self) -> int:
        return self.text.count("word")


@pytest.mark.slow
def test_streams_in_flight_end_whole_and_new_turns_go_to_the_other_process(
    deployment: Deployment, scripted: ScriptedModel
) -> None:
    words = GatedWords(40)
    scripted.script(Reply(chunks=words))
    token = deployment.prepare(scripted.base_url)
    with (
        deployment.run_web() as leaving,
        deployment.run_web() as staying,
        leaving.open_client(token) as old,
        staying.open_client(token) as other,
        ThreadPoolExecutor() as threads,
    ):
        session = old.post("/sessions", json={}).json()["id"]
        path = f"/sessions/{session}"
        body = {"content": "Count.", "stream": True}
        answer = Reader(old, "POST", f"{path}/messages", json=body)
        page = Reader(old, "GET", f"{path}/events?after=0")
        reading = [threads.submit(reader.read) for reader in (answer, page)]
        wait_until(lambda: answer.count_words() and page.count_words())

        leaving.ask_to_stop()
        wait_until(leaving.is_draining)
        reading[1].result(
            PATIENCE_SECONDS
        )  # handed over: its stream ends although the answer goes on
        assert "turn.completed" not in page.text
        follow_again = threads.submit(follow_to_the_end, other, session, page.text)

        elsewhere = other.post("/sessions", json={}).json()["id"]
        check_refusal(old, elsewhere)
        assert old.get(f"/sessions/{session}/events").status_code == 503
        scripted.script(Reply(text="Here."))
        reply = other.post(f"/sessions/{elsewhere}/messages", json={"content": "Who?"})
        assert reply.json()["assistant_message"]["content"] == "Here."
        assert leaving.process.poll() is None

        words.gate.set()
        reading[0].result(PATIENCE_SECONDS)
        assert "event: turn.completed" in answer.text
        assert follow_again.result(PATIENCE_SECONDS) == words.join()
        assert leaving.process.wait(PATIENCE_SECONDS) == -signal.SIGTERM
        stored = other.get(f"/sessions/{session}/messages").json()["results"]
        assert [message["status"] for message in stored] == ["complete", "complete"]


def follow_to_the_end(client: httpx2.Client, session: str, seen: str) -> str:
    """Go on as a browser does, after the last event that it has, and return the whole answer."""
    last_id = seen.rpartition("\nid: ")[2].partition("\n")[0]
    events = list(
        read_events(
            client, session, after=int(last_id), enough=lambda seen: seen[-1]["event"] in TURN_ENDS
        )
    )
    assert events[-1]["event"] == "turn.completed"
    everything = read_events(
        client, session, after=0, enough=lambda seen: seen[-1]["event"] in TURN_ENDS
    )
    return join_text(list(everything))


def check_refusal(client: httpx2.Client, session: str) -> None:
    refusal = client.post(f"/sessions/{session}/messages", json={"content": "Hello?"})
    assert (refusal.status_code, refusal.json()["type"]) == (503, "overloaded")
    assert "about to stop" in refusal.json()["detail"]
    assert "Nothing was stored." in refusal.json()["detail"]
    assert int(refusal.headers["Retry-After"]) > 0
    assert refusal.headers["Connection"] == "close"


@pytest.mark.slow
def test_a_second_signal_ends_the_answers_at_once(tmp_path: Path, scripted: ScriptedModel) -> None:
    scripted.script(Reply(chunks=["word "] * 4, cut_after=2, hang=True))
    deployment = Deployment.create(tmp_path)
    token = deployment.prepare(scripted.base_url)
    with (
        deployment.run_web() as web,
        web.open_client(token) as client,
        ThreadPoolExecutor() as threads,
    ):
        path = f"/sessions/{client.post('/sessions', json={}).json()['id']}/messages"
        answer = Reader(client, "POST", path, json={"content": "Go.", "stream": True})
        reading = threads.submit(answer.read)
        wait_until(answer.count_words)
        web.ask_to_stop()
        wait_until(web.is_draining)
        assert web.process.poll() is None
        web.ask_to_stop()
        reading.result(PATIENCE_SECONDS)
        assert web.process.wait(PATIENCE_SECONDS) == -signal.SIGTERM
    assert "event: turn.failed" in answer.text
    assert '"type":"interrupted"' in answer.text.replace(" ", "")


@pytest.mark.slow
def test_it_does_not_start_on_a_database_of_another_version(tmp_path: Path) -> None:
    refusal = Deployment.create(tmp_path).run("web", is_checked=False)
    assert refusal.returncode == 1
    assert "`chatcore prepare` applies them, and so does --migrate." in refusal.stderr
