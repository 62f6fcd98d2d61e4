"""The web server is killed in the middle of a response in the background: what is read is true."""

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.open_responses import check_response, check_stream
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.served_product import ServedProduct, serve, wait_for
from tests.support.served_streams import WITHIN, find_web_processes, register_model

pytestmark = [pytest.mark.faults, pytest.mark.slow]
Events = list[dict[str, Any]]


@pytest.fixture
def product(tmp_path: Path, scripted: ScriptedModel) -> Iterator[ServedProduct]:
    with serve(tmp_path, "--no-local-model") as product:
        register_model(product, scripted)
        yield product


@pytest.mark.lasting
def test_the_words_that_were_sent_are_kept_and_the_stream_goes_on_after_its_number(
    product: ServedProduct, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(chunks=[f"word{n} " for n in range(400)], chunk_delay=0.05))
    with httpx2.Client(
        base_url=f"{product.url}/v1",
        headers={"Authorization": f"Bearer {product.token}"},
        timeout=WITHIN,
    ) as client:
        body = {"model": "test-model", "input": "Count.", "background": True, "stream": True}
        seen: Events = []
        with client.stream("POST", "/responses", json=body) as stream:
            for event in read_events(stream):
                seen.append(event)
                if len(join_deltas(seen)) > 100:
                    break
        path = f"/responses/{seen[0]['response']['id']}"

        os.kill(find_web_processes(product)[0], signal.SIGKILL)
        resource = wait_for(lambda: try_to_read(client, path), WITHIN)
        assert resource["status"] in ("in_progress", "failed")  # never completed

        # The connection is open before the answer is closed: the end comes over it.
        query = {"stream": "true", "starting_after": seen[-1]["sequence_number"]}
        with client.stream("GET", path, params=query) as stream:
            events = [*seen, *read_events(stream)]
        check_stream(events)
        assert [event["type"] for event in events[-2:]] == ["error", "response.failed"]

        resource = client.get(path).json()
        check_response(resource)
        assert (resource["status"], resource["error"]["code"]) == ("failed", "interrupted")
        [item] = resource["output"]
        assert item["status"] == "incomplete"
        assert item["content"][0]["text"] == join_deltas(events)
        with client.stream("GET", path, params={"stream": "true"}) as stream:
            assert list(read_events(stream)) == events

        body = {"model": "test-model", "input": "Go on.", "previous_response_id": resource["id"]}
        scripted.script(Reply(text="Here I am again."))
        answer = client.post("/responses", json=body).json()
        assert answer["output"][0]["content"][0]["text"] == "Here I am again."
        assert [m["content"] for m in scripted.requests[-1].json["messages"]][-3:] == [
            "Count.",
            join_deltas(events),
            "Go on.",
        ]
    assert product.run_command("verify").endswith("0 violations")


def read_events(stream: httpx2.Response) -> Iterator[dict[str, Any]]:
    """Yield the events of a response as they arrive."""
    for line in stream.iter_lines():
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


def join_deltas(events: Events) -> str:
    return "".join(
        event["delta"] for event in events if event["type"] == "response.output_text.delta"
    )


def try_to_read(client: httpx2.Client, path: str) -> dict[str, Any] | None:
    """Return a response as soon as a web server answers again."""
    with contextlib.suppress(httpx2.HTTPError):
        response = client.get(path)
        if response.status_code == 200:
            body: dict[str, Any] = response.json()
            return body
    return None
