"""Compare what readers were shown with what the product stored."""

import http.client
import json
from collections.abc import Mapping
from typing import Any


def count_differences(port: int, shown: Mapping[str, tuple[str, str]]) -> int:
    """Count the sessions whose stored answer is another text than the one shown.

    `shown` has the API token and the text for each session id. More may be stored than a reader
    that was cut off has seen, but never less or something else.
    """
    return sum(
        not read_answer(port, session, token).startswith(text)
        for session, (token, text) in shown.items()
    )


def read_answer(port: int, session: str, token: str) -> str:
    """Return the content of the newest assistant message of a session, or an empty text."""
    messages = list_messages(port, session, token)
    return next((m["content"] for m in messages if m["role"] == "assistant"), "")


def list_messages(port: int, session: str, token: str) -> list[dict[str, Any]]:
    """Return the newest messages of a session, the last one first."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(
            "GET",
            f"/api/v1/sessions/{session}/messages?order=desc",
            headers={"Authorization": f"Bearer {token}"},
        )
        response = connection.getresponse()
        body = response.read()
        assert response.status == 200, (response.status, body)
    finally:
        connection.close()
    messages: list[dict[str, Any]] = json.loads(body)["results"]
    return messages
