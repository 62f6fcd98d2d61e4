"""Every preset with a real language model: a history is imported, compacted and continued.

The embedded model may fail to write a useful summary. The promise is that the conversation goes on
either way.
"""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from chatcore.contrib.local_model.server import find_free_port
from compaction.core.presets import PRESETS
from tests.support.served_product import ROOT, STORY, ServedProduct, serve, wait_for
from tests.support.served_sessions import read_json, wait_for_newest_run

pytestmark = [pytest.mark.slow, pytest.mark.model]

WINDOW = 2048
API_KEY = "a key of this test"
SESSION_FIELDS = {
    "params": {"max_tokens": 32, "temperature": 0},
    "system_prompt": "You take notes. Answer in one short sentence.",
}
LIST = (ROOT / "tests" / "support" / "served_list.txt").read_text()
READS = 3  # repeated reads of the same file, which a stage may remove without a model
MAX_TURNS = 8  # until the preset acts
MAX_RUNS = 3  # manual runs, where the model wrote no usable summary


@pytest.fixture(scope="module")
def port() -> int:
    return find_free_port()


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory, port: int) -> Iterator[ServedProduct]:
    settings = {
        "CHATCORE_LOCAL_MODEL_WINDOW": str(WINDOW),
        "CHATCORE_LOCAL_MODEL_PORT": str(port),
        "CHATCORE_LOCAL_MODEL_API_KEY": API_KEY,
    }
    with serve(
        tmp_path_factory.mktemp("presets"), CHATCORE_LOCAL_MODEL="0.5b", **settings
    ) as product:
        wait_for(lambda: any("embedded model is ready" in line for line in product.lines), 600)
        yield product


@pytest.fixture(scope="module")
def api(product: ServedProduct) -> Iterator[httpx2.Client]:
    headers = {
        "Authorization": f"Bearer {product.run_command('create_token', 'admin').split()[-1]}"
    }
    with httpx2.Client(base_url=f"{product.url}/api/v1", headers=headers, timeout=900) as client:
        yield client


@pytest.fixture(scope="module")
def runtime(product: ServedProduct, port: int) -> Iterator[httpx2.Client]:
    """A client of the embedded model's own server, which counts tokens as the model does."""
    with httpx2.Client(
        base_url=f"http://127.0.0.1:{port}",
        headers={"Authorization": f"Bearer {API_KEY}"},
        timeout=300,
    ) as client:
        yield client


class Talk:
    """A conversation over REST under a preset. No step may change a stored message."""

    def __init__(self, api: httpx2.Client, policy: str) -> None:
        self.api, self.notes, self.stored_messages = api, 0, list[tuple[Any, ...]]()
        self.answers: list[dict[str, Any]] = []
        self.id = read_json(api.post("/sessions", json=SESSION_FIELDS | {"policy": policy}), 201)[
            "id"
        ]

    def get(self, path: str = "", **params: Any) -> Any:
        return read_json(self.api.get(f"/sessions/{self.id}{path}", params=params), 200)

    def fill_to_threshold(self) -> None:
        """Import file reads and notes until the next one would reach the threshold."""
        before = self.count_free_tokens()
        self.import_messages(*make_file_read("call_1"))
        for number in range(2, READS + 1):
            if before - self.count_free_tokens() < self.count_free_tokens() / 2:
                self.import_messages(*make_file_read(f"call_{number}"))
        note = 0
        while note < self.count_free_tokens() / 2:
            before = self.count_free_tokens()
            self.import_messages(
                {"role": "user", "content": self.write_note()},
                {"role": "assistant", "content": f"Note {self.notes} is noted."},
            )
            note = before - self.count_free_tokens()

    def write_note(self) -> str:
        self.notes += 1
        text = STORY[(self.notes - 1) % len(STORY)]
        confirm = f"Please confirm note {self.notes} in one short sentence."
        return f"Note {self.notes}. {text} {confirm}"

    def import_messages(self, *messages: dict[str, Any]) -> None:
        read_json(
            self.api.post(f"/sessions/{self.id}/messages/import", json={"messages": messages}), 201
        )
        self.check_stored_messages()

    def say(self) -> None:
        """Run a turn that fits into the window, and wait for the run that it may start."""
        turn = read_json(
            self.api.post(f"/sessions/{self.id}/messages", json={"content": self.write_note()}), 201
        )
        answer = turn["assistant_message"]
        assert (answer["status"], bool(answer["content"])) == ("complete", True)
        assert answer["token_count_input"] + answer["token_count_output"] <= WINDOW
        self.answers.append(turn)
        wait_for_newest_run(self.api, self.id)
        self.check_stored_messages()

    def check_stored_messages(self) -> None:
        now = self.get("/messages", limit=100, order="asc")["results"]
        messages = [(m["seq"], m["role"], m["content"], m["tool_calls"]) for m in now]
        assert messages[: len(self.stored_messages)] == self.stored_messages
        assert len(messages) == self.get()["message_count"]
        self.stored_messages = messages

    def count_free_tokens(self) -> int:
        """Return the tokens that are free until the preset acts."""
        now = self.get("/context")
        return int(now["threshold_tokens"] - now["estimated_input_tokens"])

    def list_runs(self) -> list[dict[str, Any]]:
        """Return the session's runs, the oldest first."""
        return list(reversed(self.get("/compactions")["results"]))

    def has_applied_run(self) -> bool:
        return any(run["status"] == "applied" for run in self.list_runs())

    def has_told_of_trimming(self) -> bool:
        """Return True if an answer said so; those after it do not say it again."""
        return any(turn["notices"] for turn in self.answers)


@pytest.mark.parametrize("policy", PRESETS)
def test_a_conversation_goes_on_within_its_window_under(
    policy: str, api: httpx2.Client, runtime: httpx2.Client, product: ServedProduct
) -> None:
    talk = Talk(api, policy)
    talk.fill_to_threshold()
    while not talk.list_runs():
        assert len(talk.answers) < MAX_TURNS, talk.get("/context")
        talk.say()
    trigger = talk.list_runs()[0]["trigger"]
    assert trigger in PRESETS[policy].trigger.phases

    # Without a usable summary the request is trimmed, and the user may request another run.
    for _ in range(MAX_RUNS):
        if not talk.has_applied_run():
            talk.say()
            assert talk.has_applied_run() or talk.has_told_of_trimming()
            read_json(api.post(f"/sessions/{talk.id}/compact", json={"wait": True}), 200)
    for _ in range(2):
        talk.say()

    runs, now = talk.list_runs(), talk.get("/context")
    size = count_tokens(runtime, talk.get("/context/preview"))
    print_report(policy, talk, size)
    assert {run["policy"] for run in runs} == {policy}
    assert all(run["status"] == "applied" or run["reason"] for run in runs)
    assert all(set(run["stages_used"]) <= set(PRESETS[policy].stages) for run in runs)
    if talk.has_applied_run():
        assert all(
            run["tokens_after"] < run["tokens_before"] for run in runs if run["status"] == "applied"
        )
        assert now["usage_ratio"] < 1
        assert size <= WINDOW
    else:
        assert talk.has_told_of_trimming()
    assert product.run_command("verify").endswith("0 violations")


def print_report(policy: str, talk: Talk, size: int) -> None:
    """Print what happened, for a reader of `pytest -s`."""
    now, last = talk.get("/context"), talk.answers[-1]["assistant_message"]
    print(
        f"\n{policy}: {len(talk.stored_messages)} messages, usage {now['usage_ratio']}, "
        f"counted {size}, last request {last['token_count_input']}"
    )
    for run in talk.list_runs():
        sizes = f"{run['tokens_before']} → {run['tokens_after']}"
        print(
            f"  {run['trigger']} {run['status']} {run['stages_used']} {sizes}, "
            f"{run['provider_calls']} calls, {run['reason']}"
        )


def make_file_read(call: str) -> list[dict[str, Any]]:
    """Build a tool call and its result, with the messages around them."""
    return [
        {"role": "user", "content": "Read the list of what we decided, please."},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": call, "name": "read_file", "arguments": {"path": "list.txt"}}],
        },
        {"role": "tool", "tool_call_id": call, "tool_name": "read_file", "content": LIST},
        {"role": "assistant", "content": "I have read the list."},
    ]


def count_tokens(runtime: httpx2.Client, preview: dict[str, Any]) -> int:
    """Return the tokens of the next request, as the model counts them."""
    system = [
        {"role": "system", "content": text}
        for text in (preview["system"], preview["preface"])
        if text
    ]
    messages = [*system, *map(convert_message, preview["messages"])]
    prompt = (
        runtime.post("/apply-template", json={"messages": messages})
        .raise_for_status()
        .json()["prompt"]
    )
    return len(
        runtime.post("/tokenize", json={"content": prompt}).raise_for_status().json()["tokens"]
    )


def convert_message(message: dict[str, Any]) -> dict[str, Any]:
    fields = {"role": message["role"], "content": message["content"]}
    if message["role"] == "tool":
        return fields | {"tool_call_id": message["tool_call_id"]}
    calls = [
        {
            "id": c["id"],
            "type": "function",
            "function": {"name": c["name"], "arguments": c["arguments"]},
        }
        for c in message["tool_calls"]
    ]
    return fields | ({"tool_calls": calls} if calls else {})
