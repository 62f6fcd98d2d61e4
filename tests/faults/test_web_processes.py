"""Several web processes on one port: each follows what the others write."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.served_product import ServedProduct, serve, wait_for
from tests.support.served_streams import (
    find_own_url,
    find_web_processes,
    join_text,
    read_events,
    register_model,
)

pytestmark = pytest.mark.faults


@pytest.fixture
def product(tmp_path: Path, scripted: ScriptedModel) -> Iterator[ServedProduct]:
    with serve(tmp_path, "--no-local-model", "--web", "2") as product:
        register_model(product, scripted)
        yield product


def test_an_answer_of_one_web_process_is_followed_on_the_other_and_stopped_there(
    product: ServedProduct, scripted: ScriptedModel
) -> None:
    chunks = [f"word{n} " for n in range(60)]
    scripted.script(Reply(chunks=chunks, chunk_delay=0.05))
    token = product.run_command("create_token", "admin").split()[-1]
    web_processes = wait_for(lambda: find_two(product), what="two web processes")
    with (
        ThreadPoolExecutor() as threads,
        open_client(find_own_url(web_processes[0]), token) as first,
        open_client(find_own_url(web_processes[1]), token) as second,
    ):
        session = first.post("/sessions", json={}).json()["id"]
        first.post(
            f"/sessions/{session}/messages",
            json={"content": "Count."},
            headers={"Prefer": "respond-async"},
        ).raise_for_status()

        def follow(api: httpx2.Client) -> list[dict[str, Any]]:
            return list(read_events(api, session, after=0, enough=has_ended))

        seen_by_both = list(threads.map(follow, (first, second)))
        assert seen_by_both[0] == seen_by_both[1]
        assert join_text(seen_by_both[0]) == "".join(chunks)

        scripted.script(Reply(chunks=chunks, chunk_delay=0.5))
        first.post(
            f"/sessions/{session}/messages",
            json={"content": "Again."},
            headers={"Prefer": "respond-async"},
        ).raise_for_status()
        assert second.post(f"/sessions/{session}/cancel").json() == {"cancelled": True}
        after = seen_by_both[1][-1]["id"]
        rest = list(read_events(second, session, after=after, enough=has_ended))
        assert rest[-1]["event"] == "turn.cancelled"


def find_two(product: ServedProduct) -> list[int] | None:
    web_processes = find_web_processes(product)
    urls = [find_own_url(web_process) for web_process in web_processes]
    return web_processes if len(urls) == 2 and all(map(is_alive, urls)) else None


def is_alive(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/livez", timeout=5).status_code == 200
    except httpx2.HTTPError:
        return False


def open_client(url: str, token: str) -> httpx2.Client:
    return httpx2.Client(
        base_url=f"{url}/api/v1", headers={"Authorization": f"Bearer {token}"}, timeout=60
    )


def has_ended(events: list[dict[str, Any]]) -> bool:
    return events[-1]["event"] in ("turn.completed", "turn.cancelled")
