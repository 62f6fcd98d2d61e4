"""Each API of others can be switched off alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
from chatcore.asgi import sockets
from django.urls import resolve
from chatcore.base.rest.refusals import build_refusal
from chatcore.base.rest.problems import Problem

for path in ("chat/completions", "responses", "messages", "embeddings", "models"):
    print(path, resolve(f"/v1/{path}").func.view_class.__name__)
print(list(sockets))
print(build_refusal("/v1/messages", Problem(404, "unknown_url", "Not here.")).body.decode())
"""


@pytest.mark.slow
def test_only_the_apis_that_are_named_are_served() -> None:
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "CHATCORE_COMPATIBLE_APIS": "messages,passed_on"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    *served, error = process.stdout.splitlines()
    assert served == [
        "chat/completions UnknownUrlView",
        "responses UnknownUrlView",
        "messages MessagesView",
        "embeddings EmbeddingsView",
        "models ModelListView",
        "[]",
    ]
    assert json.loads(error)["error"] == {"type": "not_found_error", "message": "Not here."}
