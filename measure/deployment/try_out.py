"""Try the deployment out on this machine, by hand: `python -m measure.deployment.try_out`.

Needs PostgreSQL (TRY_OUT_POSTGRES, a superuser's address), Redis, nginx, openssl and prometheus.
It makes databases of its own, starts two web processes, two workers, nginx with TLS and Prometheus
from the files of deploy/, and a scripted provider. Then it restarts the web processes one after
the other under streams, follows a stream on the other process, kills one of each, restores a
backup elsewhere, and looks at the metrics and alerts. It ends with 1 if anything was not as it
should be.
"""

import json
import os
import signal
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import psycopg

from measure.deployment.processes import PROMETHEUS_PORT, WEB_PORTS, Deployment, say, wait_for
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

STREAM_COUNT = 20
WORD_COUNT = 200
WORD_SECONDS = 0.25


class Streams:
    """STREAM_COUNT answers that are read while something happens."""

    def __init__(self, client: httpx2.Client, threads: ThreadPoolExecutor) -> None:
        self.texts: dict[int, str] = {}
        self.sessions: dict[int, str] = {}
        self._client = client
        self._futures = [threads.submit(self._read, number) for number in range(STREAM_COUNT)]

    def _read(self, number: int) -> bool:
        self.sessions[number] = self._client.post("/sessions", json={}).json()["id"]
        path = f"/sessions/{self.sessions[number]}/messages"
        body = {"content": f"Count, {number}.", "stream": True}
        with self._client.stream("POST", path, json=body) as response:
            assert response.status_code == 200, response.read()
            for text in response.iter_text():
                self.texts[number] = self.texts.get(number, "") + text
        return "event: turn.completed" in self.texts[number]

    def are_flowing(self) -> bool:
        for future in self._futures:
            if future.done():
                future.result()
        return len(self.texts) == STREAM_COUNT and all("delta" in t for t in self.texts.values())

    def count_whole(self) -> int:
        whole_count = 0
        for future in self._futures:
            try:
                whole_count += future.result(300)
            except (httpx2.HTTPError, AssertionError) as error:
                say(f"  a stream broke: {error!r}")
        return whole_count


def restart_under_streams(deployment: Deployment, client: httpx2.Client) -> None:
    """Restart both web processes, one after the other, while answers are written."""
    refused: list[Any] = []
    stop_event = threading.Event()
    turn_count = 0

    def ask_again_and_again() -> None:
        nonlocal turn_count
        while not stop_event.is_set():
            session = client.post("/sessions", json={})
            if session.status_code == 201:
                path = f"/sessions/{session.json()['id']}/messages"
                answer = client.post(path, json={"content": "Quick one."})
            else:
                answer = session
            turn_count += 1
            if answer.status_code != 201:
                refused.append((answer.status_code, answer.text[:200]))
            time.sleep(0.2)

    whole_count = 0
    with ThreadPoolExecutor(2 * STREAM_COUNT + 2) as threads:
        asking = threads.submit(ask_again_and_again)
        for number in (1, 2):
            streams = Streams(client, threads)
            wait_for(streams.are_flowing, 120, "all streams")
            process = deployment.processes[f"web{number}"]
            start = time.monotonic()
            process.send_signal(signal.SIGTERM)
            process.wait(330)
            say(f"web{number} ended {time.monotonic() - start:.1f} s after TERM")
            deployment.start_web(number)
            whole_count += streams.count_whole()
        stop_event.set()
        asking.result(300)
    say(f"rolling restart: {whole_count} of {2 * STREAM_COUNT} streams ended whole")
    say(f"  meanwhile {turn_count} new turns, {len(refused)} of them refused: {refused[:3]}")
    assert whole_count == 2 * STREAM_COUNT
    assert not refused


def follow_elsewhere(deployment: Deployment) -> None:
    """Begin an answer on one web process, and read all of it on the other."""
    with (
        deployment.open_client(WEB_PORTS[0]) as first,
        deployment.open_client(WEB_PORTS[1]) as other,
    ):
        session = first.post("/sessions", json={}).json()["id"]
        path = f"/sessions/{session}"
        begun = first.post(
            f"{path}/messages", json={"content": "Count."}, headers={"Prefer": "respond-async"}
        )
        assert begun.status_code == 202, begun.text
        text = ""
        with other.stream("GET", f"{path}/events?after=0") as response:
            for line in response.iter_lines():
                if line.startswith("data:") and '"text"' in line:
                    text += json.loads(line[5:])["text"]
                if line.startswith("event: turn."):
                    end = line
                if "turn.completed" in line:
                    break
    assert end == "event: turn.completed"
    assert text.count("word") == WORD_COUNT
    say(f"a stream of web1 was followed on web2: {WORD_COUNT} of {WORD_COUNT} words")


def kill_one_of_each(deployment: Deployment, client: httpx2.Client) -> None:
    """Kill a web process and a worker under load; what they had in hand is closed or taken up."""
    with deployment.open_client(WEB_PORTS[0]) as first:
        session = first.post("/sessions", json={}).json()["id"]
        path = f"/sessions/{session}"
        first.post(
            f"{path}/messages", json={"content": "Count."}, headers={"Prefer": "respond-async"}
        )
        time.sleep(3)
    for name in ("web1", "worker1"):
        os.killpg(deployment.processes[name].pid, signal.SIGKILL)
        deployment.processes[name].wait(10)
    start = time.monotonic()

    def find_end() -> bool:
        messages = client.get(f"{path}/messages").json()["results"]
        return any(message["status"] == "interrupted" for message in messages)

    wait_for(find_end, 90, "the end of the killed turn")
    say(f"web1 killed: its answer was closed with its words after {time.monotonic() - start:.0f} s")
    messages = [
        {"role": ("user", "assistant")[n % 2], "content": f"Message {n}. " + "A heron. " * 200}
        for n in range(40)
    ]
    client.post(f"{path}/messages/import", json={"messages": messages}).raise_for_status()
    run = client.post(f"{path}/compact", json={}).json()
    wait_for(
        lambda: client.get(f"/compactions/{run['id']}").json()["status"] in ("applied", "skipped"),
        120,
        "a compaction by worker2",
    )
    say("worker1 killed: worker2 compacts")
    deployment.start_web(1)


def restore_elsewhere(deployment: Deployment) -> None:
    """Back up while everything runs, restore into another database, and verify it."""
    backup = deployment.folder / "backup"
    start = time.monotonic()
    deployment.run("backup", str(backup))
    say(f"backup: {backup.stat().st_size / 1024:.0f} KB in {time.monotonic() - start:.1f} s")
    elsewhere = deployment.create_database("chatcore_try_out_restored")
    start = time.monotonic()
    deployment.run("restore", str(backup), name="restored3", database=elsewhere)
    say(f"restored elsewhere in {time.monotonic() - start:.1f} s")
    output = deployment.run("verify", name="restored3", database=elsewhere)
    counts = []
    for address in (deployment.database, elsewhere):
        with psycopg.connect(address) as connection:
            row = connection.execute("SELECT count(*) FROM chatcore_message").fetchone()
            counts.append(row[0] if row else None)
    say(f"verify: {output.strip().splitlines()[-1]}; messages here and there: {counts}")
    assert counts[0] == counts[1]


def ask_prometheus(query: str) -> list[Any]:
    answer = httpx2.get(
        f"http://127.0.0.1:{PROMETHEUS_PORT}/api/v1/query", params={"query": query}, timeout=10
    )
    result: list[Any] = answer.json()["data"]["result"]
    return result


def watch_prometheus(deployment: Deployment) -> None:
    """See what Prometheus has scraped, and an alert that goes on."""
    for query in (
        'sum(chatcore_turns_total{outcome="completed"})',
        "sum(chatcore_compaction_runs_total)",
        "max(chatcore_workers)",
        "max(chatcore_database_up)",
        "count(up == 1)",
    ):
        value = wait_for(partial(ask_prometheus, query), 60, query)[0]["value"][1]
        say(f"prometheus: {query} = {value}")
    rules = httpx2.get(f"http://127.0.0.1:{PROMETHEUS_PORT}/api/v1/rules", timeout=10).json()
    alerts = rules["data"]["groups"][0]["rules"]
    assert all(rule["health"] == "ok" for rule in alerts), alerts
    # worker1 was killed: its target does not answer, so its alert is waiting to go off.
    states = {rule["name"]: rule["state"] for rule in alerts if rule["state"] != "inactive"}
    say(f"alert rules: {len(alerts)} are evaluated; not inactive: {states}")
    assert states.get("ChatcoreDown") in ("pending", "firing")


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="chatcore-try-out-"))
    folder.chmod(0o755)  # nginx's own user reads here
    os.umask(0o022)
    say(f"logs are in {folder}")
    words = [f"word{number} " for number in range(WORD_COUNT)]

    def answer(request: dict[str, Any]) -> Reply:
        last_text = str(request["messages"][-1]["content"])
        if last_text.startswith("Count"):
            return Reply(chunks=words, chunk_delay=WORD_SECONDS)
        is_summary = "<transcript>" in str(request["messages"])
        return Reply(text="## Goal\nHerons are counted.\n" if is_summary else "Quick answer.")

    with ScriptedModel() as scripted:
        scripted.default = answer
        deployment = Deployment(folder, scripted.base_url)
        try:
            deployment.start_nginx()
            for number in (1, 2):
                deployment.start_worker(number)
                deployment.start_web(number)
            deployment.start_prometheus()
            with deployment.open_client() as client:
                wait_for(lambda: client.get("/models").status_code == 200, 60, "nginx")
                say("two web processes, two workers, nginx and Prometheus are up")
                follow_elsewhere(deployment)
                restart_under_streams(deployment, client)
                kill_one_of_each(deployment, client)
            restore_elsewhere(deployment)
            watch_prometheus(deployment)
        finally:
            deployment.stop_all()
    say("Everything was as it should be.")


if __name__ == "__main__":
    main()
