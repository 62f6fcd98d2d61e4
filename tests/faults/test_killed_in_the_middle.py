"""The web server is killed in the middle of an answer: the partial answer stays."""

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from compaction.worker.processes import list_descendants
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.served_product import ServedProduct, serve, wait_for

pytestmark = pytest.mark.faults
WITHIN = 90  # seconds until a partial answer must be marked as interrupted
REGISTER = (
    "from models_registry.models import AiModel, Provider;"
    "p = Provider.objects.create(name='scripted', protocol='openai', base_url='{url}');"
    "AiModel.objects.create("
    "provider=p, name='test-model', context_window_size=8192, is_default=True)"
)


@pytest.fixture
def product(tmp_path: Path, scripted: ScriptedModel) -> Iterator[ServedProduct]:
    with serve(tmp_path, "--no-local-model") as product:
        assert product.sign_in_link
        product.run_command("shell", "-c", REGISTER.format(url=scripted.base_url))
        yield product


def test_what_was_said_is_kept_and_marked_and_the_stream_goes_on_from_where_it_was(
    product: ServedProduct, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(chunks=[f"word{n} " for n in range(400)], chunk_delay=0.05))
    token = product.run_command("create_token", "admin").split()[-1]
    with httpx2.Client(
        base_url=f"{product.url}/api/v1", headers={"Authorization": f"Bearer {token}"}, timeout=60
    ) as api:
        session = api.post("/sessions", json={}).json()["id"]
        api.post(
            f"/sessions/{session}/messages",
            json={"content": "Count."},
            headers={"Prefer": "respond-async"},
        ).raise_for_status()
        first_events = list(
            read_events(api, session, after=0, enough=lambda events: len(join_text(events)) > 100)
        )

        os.kill(find_web_process(product), signal.SIGKILL)
        kill_time = time.monotonic()
        wait_for(lambda: is_alive(product), 60)
        rest = list(
            read_events(
                api,
                session,
                after=first_events[-1]["id"],
                enough=lambda events: events[-1]["event"] == "turn.failed",
            )
        )
        assert time.monotonic() - kill_time < WITHIN

        (answer,) = [
            m
            for m in api.get(f"/sessions/{session}/messages").json()["results"]
            if m["role"] == "assistant"
        ]
        assert answer["status"] == "interrupted"
        assert answer["content"] == join_text([*first_events, *rest])
        assert [event["id"] for event in [*first_events, *rest]] == list(
            range(1, rest[-1]["id"] + 1)
        )

        scripted.script(Reply(text="Here I am again."))
        again = api.post(f"/sessions/{session}/messages", json={"content": "Are you there?"})
        assert again.status_code == 201
        assert again.json()["assistant_message"]["content"] == "Here I am again."
        assert [m["content"] for m in scripted.requests[-1].json["messages"]][-3:] == [
            "Count.",
            answer["content"],
            "Are you there?",
        ]
    assert product.run_command("verify").endswith("0 violations")


def read_events(
    api: httpx2.Client, session: str, *, after: int, enough: Any
) -> Iterator[dict[str, Any]]:
    """Yield events as a browser receives them, until there are enough."""
    seen: list[dict[str, Any]] = []
    with api.stream(
        "GET", f"/sessions/{session}/events", headers={"Last-Event-ID": str(after)}, timeout=WITHIN
    ) as stream:
        event: dict[str, Any] = {}
        for line in stream.iter_lines():
            name, _, value = line.partition(": ")
            if name in ("id", "event", "data"):
                event[name] = value if name == "event" else json.loads(value)
            elif not line and "id" in event:
                seen.append(event)
                yield event
                event = {}
                if enough(seen):
                    return


def join_text(events: list[dict[str, Any]]) -> str:
    text = ""
    for event in events:
        if event["event"] == "message.delta":
            assert event["data"]["offset"] == len(text)
            text += event["data"]["text"]
    return text


def find_web_process(product: ServedProduct) -> int:
    (pid,) = [
        process.pid
        for process in list_descendants(product.pid)
        if process.parent == product.pid
        and b"uvicorn" in Path(f"/proc/{process.pid}/cmdline").read_bytes()
    ]
    return pid


def is_alive(product: ServedProduct) -> bool:
    with contextlib.suppress(httpx2.HTTPError):
        return httpx2.get(f"{product.url}/livez", timeout=2).status_code == 200
    return False
