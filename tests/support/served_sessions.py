"""Read a served product over REST, as a client does."""

from typing import Any

import httpx2

from tests.support.served_product import wait_for


def read_json(answer: httpx2.Response, status: int) -> Any:
    """Return the body of an answer that must have this status."""
    assert answer.status_code == status, answer.text
    return answer.json()


def wait_for_newest_run(api: httpx2.Client, session: str) -> dict[str, Any] | None:
    """Wait until the session's newest run has ended, and return it."""

    def list_runs() -> list[dict[str, Any]]:
        return list(read_json(api.get(f"/sessions/{session}/compactions"), 200)["results"])

    wait_for(lambda: not list_runs() or list_runs()[0]["status"] not in ("queued", "running"), 400)
    return next(iter(list_runs()), None)
