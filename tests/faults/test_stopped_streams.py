"""A web process that is asked to stop tells the clients of its streams."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.served_product import ServedProduct, serve
from tests.support.served_streams import find_own_url, find_web_processes, register_model
from tests.support.waiting import wait_until

pytestmark = pytest.mark.faults

READERS = 4


@pytest.fixture
def product(tmp_path: Path, scripted: ScriptedModel) -> Iterator[ServedProduct]:
    with serve(tmp_path, "--no-local-model", "--workers", "1") as product:
        register_model(product, scripted)
        yield product


def test_streams_end_with_the_end_of_their_turn_and_are_not_broken_off(
    product: ServedProduct, scripted: ScriptedModel
) -> None:
    scripted.default = Reply(chunks=["word "] * 400, chunk_delay=0.1)
    token = product.run_command("create_token", "admin").split()[-1]
    web_process = find_web_processes(product)[0]
    texts: dict[str, str] = {}
    with (
        httpx2.Client(
            base_url=f"{find_own_url(web_process)}/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            timeout=60,
        ) as client,
        ThreadPoolExecutor(2 * READERS) as threads,
    ):

        def read(name: str, method: str, path: str, **options: Any) -> None:
            """Read a stream to its end; one that is broken off raises."""
            texts[name] = ""
            with client.stream(method, path, **options) as response:
                for text in response.iter_text():
                    texts[name] += text

        sessions = [client.post("/sessions", json={}).json()["id"] for _ in range(READERS)]
        reading = []
        for session in sessions:
            body = {"content": "Count.", "stream": True}
            path = f"/sessions/{session}"
            reading += [
                threads.submit(read, f"POST {session}", "POST", f"{path}/messages", json=body),
                threads.submit(read, f"GET {session}", "GET", f"{path}/events"),
            ]
        wait_until(
            lambda: (
                len(texts) == len(reading)
                and all(text.count("message.delta") > 1 for text in texts.values())
            )
        )
        os.kill(web_process, signal.SIGTERM)
        for future in reading:
            future.result(timeout=60)
    for text in texts.values():
        assert "event: turn.failed" in text
        assert '"type":"interrupted"' in text.replace(" ", "")
