"""Requests of coding programs as they sent them; names, paths and ids of a machine are replaced.

Descriptions of tools and results of tools of Claude Code are cut.
"""

import json
from pathlib import Path
from typing import Any

import httpx
from openai import OpenAI

DATA = Path(__file__).resolve().parents[1] / "data" / "programs"


def load_recording(name: str) -> dict[str, Any]:
    """Return the path, the headers and the body of a recorded request."""
    recording: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text())
    return recording


def send_recording(
    client: OpenAI, recording: dict[str, Any], *, model: str, **members: Any
) -> httpx.Response:
    """Send a recorded request to a model, with some members of its body in place of its own."""
    return httpx.post(
        f"{str(client.base_url).removesuffix('/v1/')}{recording['path']}",
        headers=recording["headers"] | {"authorization": f"Bearer {client.api_key}"},
        json=recording["body"] | {"model": model} | members,
        timeout=60,
    )
