"""The web server is killed in the middle of an answer: the partial answer stays."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.served_product import ServedProduct, serve
from tests.support.served_streams import (
    find_web_processes,
    join_text,
    read_events,
    register_model,
)
from tests.support.waiting import wait_until

pytestmark = pytest.mark.faults


@pytest.fixture
def product(tmp_path: Path, scripted: ScriptedModel) -> Iterator[ServedProduct]:
    with serve(tmp_path, "--no-local-model") as product:
        register_model(product, scripted)
        yield product


@pytest.mark.lasting
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

        os.kill(find_web_processes(product)[0], signal.SIGKILL)
        wait_until(lambda: is_alive(product))
        rest = list(
            read_events(
                api,
                session,
                after=first_events[-1]["id"],
                enough=lambda events: events[-1]["event"] == "turn.failed",
            )
        )

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


def is_alive(product: ServedProduct) -> bool:
    with contextlib.suppress(httpx2.HTTPError):
        return httpx2.get(f"{product.url}/livez", timeout=2).status_code == 200
    return False
