"""Two web processes over one database follow each other's answers; none takes words along."""

import contextlib
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.served_streams import join_text, read_events
from tests.support.served_talks import create_session
from tests.support.waiting import PATIENCE_SECONDS, wait_until
from tests.support.web_commands import Deployment

pytestmark = [pytest.mark.faults, pytest.mark.lasting]

READERS = 4
ASYNC = {"Prefer": "respond-async"}


@dataclass(frozen=True)
class WebProcess:
    """One of them, and the API at the address where it alone listens."""

    pid: int
    api: httpx2.Client


@pytest.fixture(scope="module")
def scripted() -> Iterator[ScriptedModel]:
    with ScriptedModel() as server:
        yield server


@pytest.fixture(scope="module")
def deployment(
    tmp_path_factory: pytest.TempPathFactory, scripted: ScriptedModel
) -> tuple[Deployment, str]:
    """One database, and a token. A web process that is asked to stop does so at once."""
    folder = tmp_path_factory.mktemp("web-processes")
    deployment = Deployment.create(folder, CHATCORE_DRAIN_SECONDS="0")
    return deployment, deployment.prepare(scripted.base_url)


@pytest.fixture
def pair(deployment: tuple[Deployment, str]) -> Iterator[list[WebProcess]]:
    commands, token = deployment
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(commands.run_web()) for _ in range(2)]
        yield [
            WebProcess(web.process.pid, stack.enter_context(web.open_client(token)))
            for web in running
        ]


@pytest.mark.slow
def test_an_answer_of_one_is_followed_on_the_other_and_stopped_there(
    pair: list[WebProcess], scripted: ScriptedModel
) -> None:
    first, second = (process.api for process in pair)
    chunks = [f"word{n} " for n in range(60)]
    scripted.script(Reply(chunks=chunks, chunk_delay=0.05))
    session = create_session(first)
    ask(first, session, "Count.")

    def follow(api: httpx2.Client) -> list[dict[str, Any]]:
        return list(read_events(api, session, after=0, enough=has_ended))

    with ThreadPoolExecutor() as threads:
        seen_by_both = list(threads.map(follow, (first, second)))
    assert seen_by_both[0] == seen_by_both[1]
    assert join_text(seen_by_both[0]) == "".join(chunks)

    scripted.script(Reply(chunks=chunks, cut_after=1, hang=True))
    ask(first, session, "Again.")
    assert second.post(f"/sessions/{session}/cancel").json() == {"cancelled": True}
    after = seen_by_both[1][-1]["id"]
    rest = list(read_events(second, session, after=after, enough=has_ended))
    assert rest[-1]["event"] == "turn.cancelled"


def ask(api: httpx2.Client, session: str, content: str) -> None:
    path = f"/sessions/{session}/messages"
    api.post(path, json={"content": content}, headers=ASYNC).raise_for_status()


def has_ended(events: list[dict[str, Any]]) -> bool:
    return events[-1]["event"] in ("turn.completed", "turn.cancelled", "turn.failed")


@pytest.mark.slow
def test_one_that_is_asked_to_stop_ends_its_streams_with_the_end_of_their_turn(
    pair: list[WebProcess], scripted: ScriptedModel
) -> None:
    scripted.script(*[Reply(chunks=["word "] * 8, cut_after=4, hang=True)] * READERS)
    leaving = pair[0]
    texts: dict[str, str] = {}

    def read(method: str, path: str, **options: Any) -> None:
        """Read a stream to its end; one that is broken off raises."""
        texts[path] = ""
        with leaving.api.stream(method, path, **options) as response:
            for text in response.iter_text():
                texts[path] += text

    with ThreadPoolExecutor(2 * READERS) as threads:
        reading = []
        for session in [create_session(leaving.api) for _ in range(READERS)]:
            path = f"/sessions/{session}"
            body = {"content": "Count.", "stream": True}
            reading += [
                threads.submit(read, "POST", f"{path}/messages", json=body),
                threads.submit(read, "GET", f"{path}/events"),
            ]
        wait_until(
            lambda: (
                len(texts) == len(reading)
                and all("message.delta" in text for text in list(texts.values()))
            ),
            what="words in all streams",
        )
        os.kill(leaving.pid, signal.SIGTERM)
        for future in reading:
            future.result(PATIENCE_SECONDS)
    for text in texts.values():
        assert "event: turn.failed" in text
        assert '"type":"interrupted"' in text.replace(" ", "")


def test_what_one_said_before_it_was_killed_is_kept_and_marked_and_the_stream_goes_on(
    pair: list[WebProcess], deployment: tuple[Deployment, str], scripted: ScriptedModel
) -> None:
    killed, other = pair
    scripted.script(Reply(chunks=[f"word{n} " for n in range(400)], chunk_delay=0.05))
    session = create_session(killed.api)
    ask(killed.api, session, "Count.")
    first_events = list(
        read_events(
            killed.api, session, after=0, enough=lambda events: len(join_text(events)) > 100
        )
    )
    os.kill(killed.pid, signal.SIGKILL)
    rest = list(read_events(other.api, session, after=first_events[-1]["id"], enough=has_ended))
    assert rest[-1]["event"] == "turn.failed"

    events = [*first_events, *rest]
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))
    messages = other.api.get(f"/sessions/{session}/messages").json()["results"]
    (answer,) = (message for message in messages if message["role"] == "assistant")
    assert answer["status"] == "interrupted"
    assert answer["content"] == join_text(events)

    scripted.script(Reply(text="Here I am again."))
    again = other.api.post(f"/sessions/{session}/messages", json={"content": "Are you there?"})
    assert again.status_code == 201
    assert again.json()["assistant_message"]["content"] == "Here I am again."
    assert [m["content"] for m in scripted.requests[-1].json["messages"]][-3:] == [
        "Count.",
        answer["content"],
        "Are you there?",
    ]
    assert deployment[0].run("verify").stdout.strip().endswith("0 violations")
