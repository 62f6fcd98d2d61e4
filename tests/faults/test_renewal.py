"""HUP renews web processes while clients use connections that they have kept."""

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import httpx2
import psutil
import pytest

from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import wait_until
from tests.support.web_commands import Deployment, WebCommand

pytestmark = [pytest.mark.faults, pytest.mark.lasting]
CLIENTS = 4


class Talker:
    """Sends messages over one connection, as long as it is kept, until it is told to stop."""

    def __init__(self, client: httpx2.Client) -> None:
        self.statuses: list[int] = []
        self.refusals: list[str] = []
        self.goodbyes = 0  # how often the server closed the connection
        self._client = client

    def talk(self, is_over: Event) -> None:
        session = self._client.post("/sessions", json={}).json()["id"]
        while not is_over.is_set():
            body = {"content": "Hello?"}
            answer = self._client.post(f"/sessions/{session}/messages", json=body)
            self.statuses.append(answer.status_code)
            if not answer.is_success:
                self.refusals.append(answer.text)
            self.goodbyes += answer.headers.get("Connection") == "close"


def find_web_processes(web: WebCommand) -> set[int]:
    return {child.pid for child in psutil.Process(web.process.pid).children()}


@pytest.mark.slow
def test_nobody_is_refused_on_a_kept_connection(tmp_path: Path, scripted: ScriptedModel) -> None:
    deployment = Deployment.create(tmp_path, CHATCORE_TURNS_PER_MINUTE="100000")
    token = deployment.prepare(scripted.base_url)
    is_over = Event()
    with (
        deployment.run_web("--processes", "2") as web,
        ThreadPoolExecutor(CLIENTS) as threads,
    ):
        talkers = [Talker(web.open_client(token)) for _ in range(CLIENTS)]
        talks = [threads.submit(talker.talk, is_over) for talker in talkers]
        try:
            wait_until(lambda: all(talker.statuses for talker in talkers))
            old = find_web_processes(web)
            web.process.send_signal(signal.SIGHUP)
            wait_until(lambda: not old & find_web_processes(web), what="the end of the old ones")
        finally:
            is_over.set()
        for talk in talks:
            talk.result()
        assert [refusal for talker in talkers for refusal in talker.refusals] == []
        assert {status for talker in talkers for status in talker.statuses} == {201}
        assert all(talker.goodbyes for talker in talkers)
