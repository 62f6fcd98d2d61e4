"""Talk to the embedded language model: about forty turns, three compactions, fifteen questions.

It runs the whole product in a process of its own, with the small weights, and takes as long as the
model needs: several minutes on two cores.
"""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx2

from measure.fidelity.facts import Fact, TextIndex, make_facts
from measure.fidelity.tables import Plan, Table
from measure.fidelity.talks import Talk, TalkWriter
from tests.support.served_product import ServedProduct, serve, wait_for

MODEL = "1.5b"
WINDOW = 4_096
TALK_TOKENS = 9_000  # about forty turns
COMPACTIONS = 3
QUESTIONS = 15
CALL_SECONDS = 900
SESSION_FIELDS = {
    "params": {"max_tokens": 64, "temperature": 0},
    "system_prompt": "Answer the user's question from this conversation in one short sentence.",
}


def measure_embedded(plan: Plan) -> Table:
    """Measure how many questions about the beginning the embedded model answers."""
    table = Table(
        "7. The embedded model",
        f"A talk of {TALK_TOKENS:,} tokens in a window of {WINDOW:,}, {COMPACTIONS} compactions by "
        f"the model itself ({MODEL}), then {QUESTIONS} questions about the first quarter.",
        ("policy", "applied runs", "answered", "in its context", "neither", "s a question"),
    )
    variables = {"CHATCORE_LOCAL_MODEL": MODEL, "CHATCORE_LOCAL_MODEL_WINDOW": str(WINDOW)}
    with (
        tempfile.TemporaryDirectory(prefix="fidelity-") as folder,
        serve(Path(folder), **variables) as product,
    ):
        wait_for(lambda: any("embedded model is ready" in line for line in product.lines), 600)
        for policy in plan.policies:
            table.rows.append((policy, *_measure_policy(_connect(product), plan, policy)))
    return table


def _connect(product: ServedProduct) -> httpx2.Client:
    token = product.run_command("create_token", "admin").split()[-1]
    return httpx2.Client(
        base_url=f"{product.url}/api/v1",
        headers={"Authorization": f"Bearer {token}"},
        timeout=CALL_SECONDS,
    )


def _measure_policy(api: httpx2.Client, plan: Plan, policy: str) -> tuple[str, ...]:
    rng = plan.make_random("embedded")
    domains = plan.choose_domains(rng, 0)
    facts = list(make_facts(domains, rng, kinds="values words"))[:QUESTIONS]
    talk = TalkWriter(domains, rng).write_talk(TALK_TOKENS, facts, place=(0.0, 0.25))
    session_id = _call(api, "POST", "/sessions", SESSION_FIELDS | {"policy": policy})["id"]
    applied = _import_talk(api, session_id, talk)
    start = time.perf_counter()
    results = [_ask(api, session_id, fact, rng.choice(fact.questions)) for fact in facts]
    seconds = (time.perf_counter() - start) / len(facts)
    counts = (str(results.count(name)) for name in ("answered", "in its context", "neither"))
    return (str(applied), *counts, f"{seconds:.1f}")


def _import_talk(api: httpx2.Client, session_id: str, talk: Talk) -> int:
    """Import the talk in parts, compact after each, and return how many runs were applied."""
    runs: list[dict[str, Any]] = []
    for messages in talk.split_messages(COMPACTIONS):
        _call(api, "POST", f"/sessions/{session_id}/messages/import", {"messages": messages})
        runs.append(_call(api, "POST", f"/sessions/{session_id}/compact", {"wait": True}))
    return sum(run["status"] == "applied" for run in runs)


def _ask(api: httpx2.Client, session_id: str, fact: Fact, question: str) -> str:
    """Ask in a turn and say where the answer is; what is sent is read before the turn's answer."""
    body = {"content": question}
    turn = _call(api, "POST", f"/sessions/{session_id}/messages", body)
    answer = turn["assistant_message"]["content"]
    if TextIndex(f"{question} {answer}").holds_fact(fact):
        return "answered"
    preview = _call(api, "GET", f"/sessions/{session_id}/context/preview")
    texts = [preview["system"], preview["preface"], *_list_contents(preview["messages"])]
    return "in its context" if TextIndex("\n".join(texts)).holds_fact(fact) else "neither"


def _list_contents(messages: Sequence[dict[str, Any]]) -> list[str]:
    return [str(message["content"]) for message in messages]


def _call(api: httpx2.Client, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    response = api.request(method, path, json=body)
    response.raise_for_status()
    return response.json()
