"""The whole promise with a real language model: a chat compacts itself, is rewound and goes on."""

import re
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.support.served_product import STORY, ServedProduct, serve, wait_for
from tests.support.served_sessions import read_json, wait_for_newest_run

pytestmark = pytest.mark.slow

WINDOW = 2048
ANSWER_TOKENS = 48


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedProduct]:
    folder = tmp_path_factory.mktemp("journey")
    with serve(
        folder, CHATCORE_LOCAL_MODEL="0.5b", CHATCORE_LOCAL_MODEL_WINDOW=str(WINDOW)
    ) as product:
        wait_for(lambda: any("embedded model is ready" in line for line in product.lines), 600)
        yield product


@pytest.fixture(scope="module")
def api(product: ServedProduct) -> Iterator[httpx2.Client]:
    token = product.run_command("create_token", "admin").split()[-1]
    headers = {"Authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=f"{product.url}/api/v1", headers=headers, timeout=300) as client:
        yield client


def send_note(api: httpx2.Client, session: str, number: int) -> dict[str, Any]:
    notes = " ".join(STORY[(3 * number + each) % len(STORY)] for each in range(3))
    text = f"Note {number}. {notes} Please confirm note {number} in one short sentence."
    return dict(read_json(api.post(f"/sessions/{session}/messages", json={"content": text}), 201))


def test_a_conversation_fills_its_window_compacts_itself_and_goes_on(
    api: httpx2.Client, product: ServedProduct
) -> None:
    new = {
        "params": {"max_tokens": ANSWER_TOKENS, "temperature": 0},
        "system_prompt": "You take notes. Answer in one sentence.",
    }
    session = read_json(api.post("/sessions", json=new), 201)["id"]
    assert read_json(api.get(f"/sessions/{session}/context"), 200)["context_window"] == WINDOW

    # Talk until it compacts by itself. A small model may fail at a summary. Then the requests leave
    # out the oldest messages, the conversation goes on, and a later run succeeds.
    ratios = [0.0]
    number = 0
    run = None
    while run is None or run["status"] != "applied":
        number += 1
        assert number < 30, (ratios, run)
        send_note(api, session, number)
        ratios.append(read_json(api.get(f"/sessions/{session}/context"), 200)["usage_ratio"])
        run = wait_for_newest_run(api, session)
    assert max(ratios) > 0.85
    assert run["trigger"] == "after_response"
    assert run["tokens_after"] < run["tokens_before"]

    # See the stored summary, and that the next request holds it and the tail only.
    now = read_json(api.get(f"/sessions/{session}"), 200)
    assert now["compacted_summary"] == run["summary_after"]
    assert re.search(r"Ada|Pacheco|party|Lentos|bakery", now["compacted_summary"])
    preview = read_json(api.get(f"/sessions/{session}/context/preview"), 200)
    messages = read_json(
        api.get(f"/sessions/{session}/messages", params={"limit": 100, "order": "asc"}), 200
    )["results"]
    tail = [message for message in messages if message["seq"] >= now["compact_boundary_seq"]]
    assert [m["content"] for m in preview["messages"]] == [m["content"] for m in tail]
    assert now["compacted_summary"] in preview["system"]
    assert len(messages) == 2 * number == now["message_count"]

    assert read_json(api.get(f"/sessions/{session}/context"), 200)["usage_ratio"] < 0.85

    # Talk on, with the summary.
    send_note(api, session, number + 1)
    assert read_json(api.get(f"/sessions/{session}/context"), 200)["usage_ratio"] < 1

    # Rewind, and talk on once more.
    read_json(api.post(f"/compactions/{run['id']}/rewind"), 200)
    assert read_json(api.get(f"/sessions/{session}"), 200)["compacted_summary"] is None
    now = read_json(api.get(f"/sessions/{session}/context"), 200)
    assert now["live_message_count"] == 2 * number + 2  # what does not fit stays out of requests
    answer = send_note(api, session, number + 2)
    assert answer["assistant_message"]["content"]
    assert product.run_command("verify").endswith("0 violations")
