"""The clients of the soak, and the ledger of what the server acknowledged to them."""

import contextlib
import random
import threading
import time
import uuid
from collections import Counter
from functools import partial
from typing import Any

import httpx2

from tests.support.waiting import wait_until

SESSIONS_OF_A_CLIENT = 3
GOODBYE = "Goodbye."
RETRY_SECONDS = 0.5
CALM_SECONDS = 120.0  # until everything that was open when the faults ended is closed
# Every status and type that docs/limits.md and the API's description promise. A connection that
# breaks is the end of a process that was killed.
DOCUMENTED = {
    (409, "turn_running"),
    (409, "repeated"),
    (412, "context_changed"),
    (429, "too_many_turns"),
    (429, "too_many_compactions"),
    (502, "provider_unavailable"),
    (502, "interrupted"),
    (503, "provider_overloaded"),
    (503, "provider_rate_limited"),
    (503, "provider_unavailable"),
    (503, "database_unavailable"),
    (503, "cache_unavailable"),
    (503, "overloaded"),
    (504, "provider_timeout"),
    (507, "storage_full"),
}
# After these a client does not know that its message is stored, or knows that it is not.
WORTH_REPEATING = ("repeated", "database_unavailable", "storage_full", "overloaded")


class Ledger:
    """What all clients were told: messages by id, and how often each kind of answer came."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.sessions: set[str] = set()
        self.messages: dict[int, tuple[str, str]] = {}
        self.outcomes: Counter[str] = Counter()
        self.undocumented: Counter[str] = Counter()

    def note_outcome(self, response: httpx2.Response | None) -> None:
        with self._lock:
            if response is None:
                self.outcomes["connection broken"] += 1
            elif response.is_success:
                self.outcomes[str(response.status_code)] += 1
            else:
                kind = read_type(response)
                self.outcomes[f"{response.status_code} {kind}"] += 1
                if (response.status_code, kind) not in DOCUMENTED:
                    self.undocumented[f"{response.status_code} {kind}: {response.text[:200]}"] += 1

    def note_message(self, session: str, message: dict[str, Any] | None) -> None:
        if message and message.get("status") != "streaming":
            with self._lock:
                self.messages[message["id"]] = (session, message["content"])


def read_type(response: httpx2.Response) -> str:
    try:
        return str(response.json()["type"]).rpartition("/")[2]
    except (ValueError, KeyError, TypeError):
        return "no problem"


class Client(threading.Thread):
    """A person who talks in a few sessions until it is stopped, and repeats what did not arrive."""

    def __init__(self, url: str, token: str, ledger: Ledger, stopping: threading.Event) -> None:
        super().__init__(daemon=True)
        self.token = token
        self._ledger = ledger
        self._stopping = stopping
        self._api = httpx2.Client(
            base_url=f"{url}/api/v1", headers={"Authorization": f"Bearer {token}"}, timeout=90
        )
        self._sessions: list[str] = []

    def run(self) -> None:
        while not self._stopping.is_set():
            if len(self._sessions) < SESSIONS_OF_A_CLIENT:
                self._create_session()
            else:
                act = random.choice([self._say] * 6 + [self._read, self._compact, self._search])
                act(random.choice(self._sessions))

    def _ask(self, method: str, path: str, **options: Any) -> httpx2.Response | None:
        try:
            response = self._api.request(method, path, **options)
        except httpx2.HTTPError:
            response = None
        self._ledger.note_outcome(response)
        if response is None or response.status_code >= 500:
            time.sleep(RETRY_SECONDS)
        return response

    def _create_session(self) -> None:
        response = self._ask("POST", "/sessions", json={"policy": "oneclaw"})
        if response is not None and response.status_code == 201:
            self._sessions.append(response.json()["id"])
            self._ledger.sessions.add(self._sessions[-1])

    def _say(self, session: str) -> None:
        """Send a message with a key until the server says what became of it."""
        headers = {"Idempotency-Key": uuid.uuid4().hex}
        body = {"content": f"{uuid.uuid4()} " + "a heron on a lake " * random.choice([1, 30, 150])}
        for _ in range(20):
            response = self._ask(
                "POST", f"/sessions/{session}/messages", json=body, headers=headers
            )
            if response is not None and response.status_code == 201:
                answer = response.json()
                for name in ("user_message", "assistant_message"):
                    self._ledger.note_message(session, answer.get(name))
                return
            if response is not None and read_type(response) not in WORTH_REPEATING:
                return  # it was refused, or its answer failed, and it is stored
            time.sleep(RETRY_SECONDS)

    def _read(self, session: str) -> None:
        response = self._ask("GET", f"/sessions/{session}/messages", params={"limit": 50})
        if response is not None and response.is_success:
            for message in response.json()["results"]:
                self._ledger.note_message(session, message)

    def _compact(self, session: str) -> None:
        self._ask("POST", f"/sessions/{session}/compact", json={})

    def _search(self, session: str) -> None:
        self._ask("GET", f"/sessions/{session}/search", params={"q": "heron"})


def wait_for_calm(url: str, token: str, ledger: Ledger) -> None:
    """Wait until every session takes a message again."""
    headers = {"Authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=f"{url}/api/v1", headers=headers, timeout=60) as api:
        for session in list(ledger.sessions):
            wait_until(partial(_say_goodbye, api, session), seconds=CALM_SECONDS, what=session)


def _say_goodbye(api: httpx2.Client, session: str) -> bool:
    with contextlib.suppress(httpx2.HTTPError):
        answer = api.post(f"/sessions/{session}/messages", json={"content": GOODBYE})
        return answer.status_code == 201
    return False


def check_ledger(url: str, token: str, ledger: Ledger) -> list[str]:
    """Return a sentence for each acknowledged message that is not there, once, as it was."""
    stored: dict[int, str] = {}
    copies: Counter[str] = Counter()  # each message of a person's begins with words of its own
    headers = {"Authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=f"{url}/api/v1", headers=headers, timeout=90) as api:
        for session in ledger.sessions:
            path: str | None = f"/sessions/{session}/messages?limit=100"
            while path:
                page = api.get(path).raise_for_status().json()
                for message in page["results"]:
                    stored[message["id"]] = message["content"]
                    if message["role"] == "user" and message["content"] != GOODBYE:
                        copies[message["content"]] += 1
                path = page["next"]
    doubled = [f"{n} times: {content[:40]}" for content, n in copies.items() if n > 1]
    return doubled + [
        f"message {pk} of {session} is {'gone' if pk not in stored else 'another'}"
        for pk, (session, content) in ledger.messages.items()
        if stored.get(pk) != content
    ]
