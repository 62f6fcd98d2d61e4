"""Streams of a served product: a model to talk to, and its events as a browser receives them."""

import contextlib
import json
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import psutil

from tests.support.scripted_model import ScriptedModel
from tests.support.served_product import ServedProduct

WITHIN = 180  # seconds for what takes a lease of 45 s, on a machine that has other things to do
WEB_SERVER = "chatcore.serving.web_server"
REGISTER = (
    "from models_registry.models import AiModel, Provider;"
    "p = Provider.objects.create(name='scripted', protocol='openai', base_url='{url}');"
    "AiModel.objects.create("
    "provider=p, name='test-model', context_window_size=8192, is_default=True);"
    "from knox.models import AuthToken; from chatcore.web.sign_in import ensure_administrator;"
    "print(AuthToken.objects.create(ensure_administrator())[1])"
)


def register_model(product: ServedProduct, scripted: ScriptedModel) -> None:
    """Wait until the product is up, make the scripted model its default, and get a token."""
    assert product.sign_in_link
    code = REGISTER.format(url=scripted.base_url)
    product.token = product.run_command("shell", "-c", code).split()[-1]


def read_events(
    api: httpx2.Client, session: str, *, after: int, enough: Any
) -> Iterator[dict[str, Any]]:
    """Yield events as a browser receives them, until there are enough."""
    seen: list[dict[str, Any]] = []
    deadline = time.monotonic() + WITHIN
    with api.stream(
        "GET", f"/sessions/{session}/events", headers={"Last-Event-ID": str(after)}, timeout=WITHIN
    ) as stream:
        event: dict[str, Any] = {}
        for line in stream.iter_lines():
            assert time.monotonic() < deadline, f"not enough events within {WITHIN} s: {seen[-1:]}"
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


def find_web_processes(product: ServedProduct) -> list[int]:
    """Return the process ids of the web servers."""
    found = []
    for child in psutil.Process(product.pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):  # it may end at this moment
            if WEB_SERVER in " ".join(child.cmdline()):
                found.append(child.pid)
    return found
