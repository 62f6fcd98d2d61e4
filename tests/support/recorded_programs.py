"""Requests of coding programs as they sent them; names, paths and ids of a machine are replaced.

Descriptions of tools and results of tools of Claude Code are cut.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from openai import OpenAI

from chatcore.base.runner import turn_runner
from chatcore.models import Session
from chatcore.sessions import verification
from models_registry.models import AiModel
from tests.support.http_client import http
from tests.support.openai_client import MODEL

DATA = Path(__file__).resolve().parents[1] / "data" / "programs"


def load_recording(name: str) -> dict[str, Any]:
    """Return the path, the headers and the body of a recorded request."""
    recording: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text())
    return recording


def send_recording(
    client: OpenAI, recording: dict[str, Any], *, model: str, **members: Any
) -> httpx.Response:
    """Send a recorded request to a model, with some members of its body in place of its own."""
    return http.post(
        f"{str(client.base_url).removesuffix('/v1/')}{recording['path']}",
        headers=recording["headers"] | {"authorization": f"Bearer {client.api_key}"},
        json=recording["body"] | {"model": model} | members,
        timeout=60,
    )


def send(client: OpenAI, name: str, **members: Any) -> httpx.Response:
    """Send a recorded request by its name, and wait for the end of what it begins."""
    response = send_recording(client, load_recording(name), model=MODEL, **members)
    assert response.status_code == 200, response.text
    turn_runner.drain()
    return response


@pytest.fixture
def wide_window(model: AiModel) -> None:
    """Programs send thousands of tokens of their own with each request."""
    AiModel.objects.filter(pk=model.pk).update(context_window_size=65_536)


@pytest.fixture
def verified_sessions(client: OpenAI) -> Iterator[None]:
    """Verify all sessions after the test."""
    yield
    turn_runner.drain()
    for session in Session.objects.all():
        assert not verification.check_session(session.pk)
