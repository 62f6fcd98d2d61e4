"""Talk with a served product over REST while something happens to it."""

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx2

from tests.support.served_product import ServedProduct
from tests.support.served_streams import WITHIN, read_events
from tests.support.waiting import PATIENCE_SECONDS, wait_until

ENDS = ("turn.completed", "turn.failed", "turn.cancelled")


@contextlib.contextmanager
def open_api(product: ServedProduct) -> Iterator[httpx2.Client]:
    """Open the API at the product's address."""
    headers = {"Authorization": f"Bearer {product.token}"}
    base_url = f"{product.url}/api/v1"
    with httpx2.Client(base_url=base_url, headers=headers, timeout=PATIENCE_SECONDS) as api:
        yield api


def create_session(api: httpx2.Client, **fields: Any) -> str:
    """Create a session; after an outage as a client does, which tries again after a 503."""
    created: list[str] = []

    def create() -> bool:
        answer = api.post("/sessions", json=fields)
        assert answer.status_code in (201, 503), answer.text
        if answer.status_code == 201:
            created.append(str(answer.json()["id"]))
        return bool(created)

    wait_until(create, what="a new session")
    return created[0]


class Listener(threading.Thread):
    """Asks a question and reads the answer as a page does, which connects again until the end.

    With `reader`, it reads by another client than the one that asks.
    """

    def __init__(
        self,
        api: httpx2.Client,
        session: str,
        content: str = "Count.",
        *,
        reader: httpx2.Client | None = None,
    ) -> None:
        super().__init__(daemon=True)
        self._api = reader or api
        self.session = session
        self.events: list[dict[str, Any]] = []
        headers = {"Prefer": "respond-async"}
        body = {"content": content}
        answer = api.post(f"/sessions/{session}/messages", json=body, headers=headers)
        assert answer.status_code == 202, answer.text
        self.start()

    @property
    def text(self) -> str:
        """The words of the answer that were shown."""
        text = ""
        for event in self.events:
            if event["event"] == "message.delta":
                assert event["data"]["offset"] <= len(text), "a word was left out"
                text = text[: event["data"]["offset"]] + event["data"]["text"]
        return text

    @property
    def end(self) -> str:
        """The event that ended the turn, or nothing yet."""
        return next((e["event"] for e in self.events if e["event"] in ENDS), "")

    def run(self) -> None:
        deadline = time.monotonic() + WITHIN
        while not self.end and time.monotonic() < deadline:
            last = self.events[-1]["id"] if self.events else 0
            with contextlib.suppress(httpx2.HTTPError, AssertionError):
                wait_until(self._is_reachable, what="the server")
                for event in read_events(self._api, self.session, after=last, enough=_is_over):
                    self.events.append(event)

    def _is_reachable(self) -> bool:
        with contextlib.suppress(httpx2.HTTPError):
            return self._api.get(f"/sessions/{self.session}").is_success
        return False

    def wait_for_words(self) -> None:
        """Wait until the answer has begun."""
        wait_until(lambda: len(self.text) > 20, what="the first words of an answer")

    def check(self) -> None:
        """Every word that was shown is stored, and the session takes the next message."""
        self.join(WITHIN)
        assert self.end, self.events[-3:]
        messages = self._read_messages()
        answer = next(message for message in messages if message["role"] == "assistant")
        assert answer["content"] == self.text
        assert answer["status"] in ("complete", "interrupted"), answer["status"]

    def _read_messages(self) -> list[dict[str, Any]]:
        """Return the messages as soon as the server has them: one of its processes may be away."""
        found: list[dict[str, Any]] = []

        def read() -> bool:
            response = self._api.get(f"/sessions/{self.session}/messages")
            assert response.status_code in (200, 503), response.text
            found[:] = response.json().get("results", [])
            return response.is_success

        wait_until(read, what="the stored messages")
        return found


def _is_over(events: list[dict[str, Any]]) -> bool:
    return events[-1]["event"] in ENDS


def say(api: httpx2.Client, session: str, content: str = "Are you there?") -> dict[str, Any]:
    """Send a message until it arrives, as a client does; the session must be free for it."""
    answer: dict[str, Any] = {}

    def is_answered() -> bool:
        with contextlib.suppress(httpx2.HTTPError):
            response = api.post(f"/sessions/{session}/messages", json={"content": content})
            assert response.status_code in (201, 503), response.text
            answer.update(response.json())
            return response.status_code == 201
        return False

    wait_until(is_answered, what="an answer")
    return answer
