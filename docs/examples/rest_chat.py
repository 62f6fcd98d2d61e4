"""A small typed client of Chatcore's REST API.

It streams one conversation, resumes it when a connection breaks, and shows how full the context
is.

    export CHATCORE_URL=http://127.0.0.1:8000 CHATCORE_TOKEN=…
    python rest_chat.py "Hello!" "And in French?"

It needs only the package `httpx2`. `chatcore create_token USER` prints a token.
"""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import httpx2

END_EVENTS = frozenset({"turn.completed", "turn.failed", "turn.cancelled", "turn.waiting"})


class RequestRefused(Exception):
    """The API rejected a request; `problem` is the RFC 9457 body of its response."""

    def __init__(self, problem: dict[str, Any]) -> None:
        super().__init__(f"{problem.get('status')} {problem.get('type')}: {problem.get('detail')}")
        self.problem = problem


@dataclass(frozen=True)
class Event:
    """One event of a session. To resume, ask for the events after its `id`."""

    id: int
    name: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Context:
    """How full a conversation is, in tokens; None where the model's window is unknown."""

    used_tokens: int
    window: int | None
    level: str | None


class Chatcore:
    """The API as one user sees it."""

    def __init__(self, url: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx2.Client(
            base_url=f"{url.rstrip('/')}/api/v1",
            headers=headers,
            timeout=httpx2.Timeout(300, connect=10),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def create_session(self, **fields: Any) -> str:
        """Create a session with fields such as `model` or `system_prompt`, and return its id."""
        return str(self._request("POST", "/sessions", json=fields)["id"])

    def send(self, session: str, content: str) -> Iterator[str]:
        """Send a message and yield the words of the answer as they come.

        When a connection breaks, the next one continues, so that no word is lost or repeated.
        """
        turn = self._request(
            "POST",
            f"/sessions/{session}/messages",
            json={"content": content},
            headers={"Prefer": "respond-async"},
        )
        after = int(httpx2.URL(turn["events"]).params["after"])
        while True:
            try:
                for event in self.follow_events(session, after=after):
                    after = event.id
                    if event.name == "message.delta":
                        yield event.data["text"]
                    elif event.name == "turn.failed":
                        raise RequestRefused({"status": 502, **event.data})
                    if event.name in END_EVENTS and event.data["turn"] == turn["turn"]:
                        return
            except httpx2.TransportError:
                continue

    def follow_events(self, session: str, *, after: int) -> Iterator[Event]:
        """Yield the session's events after the event `after`: the stored ones, then new ones."""
        with self._http.stream(
            "GET", f"/sessions/{session}/events", params={"after": after}
        ) as response:
            self._raise_for_problem(response)
            fields: dict[str, str] = {}
            for line in response.iter_lines():
                name, _, value = line.partition(": ")
                if line:
                    fields[name] = value
                elif "data" in fields:
                    yield Event(int(fields["id"]), fields["event"], json.loads(fields["data"]))
                    fields = {}

    def get_context(self, session: str) -> Context:
        """Return how full the session's context is."""
        report = self._request("GET", f"/sessions/{session}/context")
        return Context(report["estimated_input_tokens"], report["context_window"], report["level"])

    def compact(self, session: str, instructions: str = "") -> dict[str, Any]:
        """Compact the context now and return the finished run.

        All messages stay stored. The model sees a summary of the older ones.
        """
        return self._request(
            "POST",
            f"/sessions/{session}/compact",
            json={"wait": True, "instructions": instructions},
        )

    def _request(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        response = self._http.request(method, path, **request)
        self._raise_for_problem(response)
        answer: dict[str, Any] = response.json()
        return answer

    def _raise_for_problem(self, response: httpx2.Response) -> None:
        if response.status_code >= 400:
            response.read()
            raise RequestRefused(response.json())


def main() -> None:
    """Send each argument, print the answers, then how full the context is."""
    with Chatcore(
        os.environ.get("CHATCORE_URL", "http://127.0.0.1:8000"), os.environ["CHATCORE_TOKEN"]
    ) as chatcore:
        session = chatcore.create_session(title="From an example")
        for content in sys.argv[1:] or ["Hello!"]:
            print("you:", content)
            print("model: ", end="")
            for words in chatcore.send(session, content):
                print(words, end="", flush=True)
            print()
        context = chatcore.get_context(session)
        print(f"context: {context.used_tokens} of {context.window} tokens ({context.level})")


if __name__ == "__main__":
    main()
