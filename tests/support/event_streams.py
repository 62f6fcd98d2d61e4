"""Read the events of a session from a real server."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
from django.contrib.auth.models import User
from knox.models import AuthToken

END_EVENTS = ("turn.completed", "turn.failed", "turn.cancelled")


def open_api_client(url: str, user: User) -> httpx2.Client:
    """Return a REST client of a running server, with a new token of the user."""
    _, token = AuthToken.objects.create(user)
    return httpx2.Client(
        base_url=f"{url}/api/v1", headers={"Authorization": f"Bearer {token}"}, timeout=20
    )


def iterate_events(response: httpx2.Response) -> Iterator[dict[str, Any]]:
    """Yield the data of each event, with its `id` and `event`."""
    event: dict[str, Any] = {}
    for line in response.iter_lines():
        name, _, value = line.partition(": ")
        if name == "data":
            event |= json.loads(value)
        elif name in ("id", "event"):
            event[name] = value
        elif not line and event:
            yield event
            event = {}


def follow_events(client: httpx2.Client, address: str, **options: Any) -> list[dict[str, Any]]:
    """Return the events up to one that ends a turn."""
    received_events = []
    with client.stream("GET", f"{address}/events", **options) as response:
        for event in iterate_events(response):
            received_events.append(event)
            if event["event"] in END_EVENTS:
                break
    return received_events
