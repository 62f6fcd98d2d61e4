"""Fuzz the API from its OpenAPI document: no 5xx, and nothing that is not documented."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.conf import settings as configured
from django.contrib.auth.models import User
from django.test import Client

from chatcore.context import revisions
from chatcore.contrib.webhooks.models import Webhook
from chatcore.models import Attachment, Message, Session
from chatcore.tools.registry import BUILT_IN_TOOLS
from compaction.models import CompactionRun
from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)
# Event streams never end, and the fuzzer waits for the end of each response.
# tests/api/test_streams.py tests them.
STREAM_OPERATION = "follow_events"
# positive_data_acceptance: some refusals cannot be expressed in the document (names of models and
# tools, files by their bytes). ignored_auth: an invalid header leaves the cookie in force;
# tests/api/test_authorization.py tests permissions.
EXCLUDED_CHECKS = "positive_data_acceptance,ignored_auth"
SESSIONS = 40  # enough that not all are deleted before other calls have met them


@pytest.fixture
def headers(user: User) -> dict[str, str]:
    """Return the headers of a browser session: `DELETE /tokens` would revoke a token."""
    browser = Client()
    browser.force_login(user)
    token = "a" * 32
    session = browser.cookies[configured.SESSION_COOKIE_NAME].value
    return {
        "Cookie": f"{configured.SESSION_COOKIE_NAME}={session}; csrftoken={token}",
        "X-CSRFToken": token,
    }


def answer(request: dict[str, Any]) -> Reply:
    """Call the client's tool if there is one and it has no result yet; otherwise answer."""
    names = [tool["function"]["name"] for tool in request.get("tools", ())]
    theirs = [name for name in names if name not in BUILT_IN_TOOLS]
    if theirs and request["messages"][-1]["role"] == "user":
        return Reply(tool_calls=(make_tool_call(theirs[0], {}, id="c1"),), usage=(10, 2))
    return Reply(text="They talked about tea.", usage=(10, 2))


@pytest.fixture
def known_values(
    user: User, model: AiModel, scripted: ScriptedModel, settings: LazySettings
) -> dict[str, Sequence[Any]]:
    """Existing ids by parameter. Without them nearly every call would be 404."""
    settings.CHATCORE = {
        **settings.CHATCORE,
        "TURNS_PER_MINUTE": 1_000_000,
        "COMPACTIONS_PER_MINUTE": 1_000_000,
    }
    scripted.default = answer
    sessions = [
        _create_session(user, model, summarized=bool(number % 2)) for number in range(SESSIONS)
    ]
    file = {"name": "a.txt", "media_type": "text/plain", "size": 2, "data": b"Hi", "text": "Hi"}
    attachments = [Attachment.objects.create(session=session, **file) for session in sessions]
    runs = [
        CompactionRun.objects.create(
            session=session, trigger="manual", status="skipped", policy="oneclaw"
        )
        for session in sessions
    ]
    hooks = [
        Webhook.objects.create(owner=user, url="https://example.com/", secret="x")
        for _ in range(15)
    ]
    return {
        "path.session_id": [str(session.pk) for session in sessions],
        "path.message_id": list(Message.objects.values_list("pk", flat=True)),
        "path.attachment_id": [str(file.pk) for file in attachments],
        "path.run_id": [str(run.pk) for run in runs],
        "path.webhook_id": [str(hook.pk) for hook in hooks],
        "body.url": ["https://example.com/"],
        "body.content": ["Hi", "Remember the tea.", "茶" * 50],
        "body.model": ["test-model", "scripted/test-model"],
        "body.policy": ["oneclaw", "neurolink", "lota", "baseagent", "wolffish"],
    }


def _create_session(user: User, model: AiModel, *, summarized: bool) -> Session:
    session = Session.objects.create(owner=user, model=model, last_seq=8, message_count=8)
    roles = ("user", "assistant")
    Message.objects.bulk_create(
        Message(
            session=session,
            seq=seq,
            role=roles[(seq - 1) % 2],
            content="tea " * 300,
            pinned=seq == 3,
        )
        for seq in range(1, 9)
    )
    if summarized:
        revisions.install_revision(
            session.pk, base_version=0, summary="They talked.", boundary_seq=5, source="compaction"
        )
    return session


def schemathesis(
    live: Live,
    headers: dict[str, str],
    known_values: dict[str, Sequence[Any]],
    folder: Path,
    *options: str,
) -> dict[str, Any]:
    """Run schemathesis and return its report. Fails with its output if it finds something."""
    report = folder / "report.json"
    lists = "".join(
        f'[dictionaries."{name}"]\nvalues = {json.dumps(values)}\n'
        for name, values in known_values.items()
    )
    uses = "".join(
        f'"{name}" = {{dictionary = "{name}", probability = 0.8}}\n' for name in known_values
    )
    (folder / "schemathesis.toml").write_text(f"{lists}[parameters]\n{uses}")
    header_options = [
        part for name, value in headers.items() for part in ("--header", f"{name}: {value}")
    ]
    process = subprocess.run(
        [
            *(str(Path(sys.executable).with_name("st")), "run", f"{live.url}/api/schema/"),
            *header_options,
            *("--exclude-operation-id", STREAM_OPERATION, "--exclude-checks", EXCLUDED_CHECKS),
            *("--generation-database", "none", "--continue-on-failure"),
            *("--report", "json", "--report-json-path", str(report)),
            *("--output-truncate", "false", "--no-color", "--warnings", "off"),
            *("--request-timeout", "60", "--suppress-health-check", "all", "--no-shrink", *options),
        ],
        cwd=folder,
        env={**os.environ, "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis")},
        capture_output=True,
        text=True,
    )
    print(process.stdout, process.stderr)
    assert process.returncode == 0, process.stdout + process.stderr
    findings: dict[str, Any] = json.loads(report.read_text())
    return findings


@pytest.mark.lasting
@pytest.mark.slow
def test_a_few_cases_find_nothing(
    live: Live, headers: dict[str, str], known_values: dict[str, Sequence[Any]], tmp_path: Path
) -> None:
    options = ("--phases", "fuzzing", "--max-examples", "2", "--seed", "1")
    assert (
        schemathesis(live, headers, known_values, tmp_path, *options)["test_cases"]["generated"]
        > 100
    )


@pytest.mark.slow
def test_three_thousand_cases_find_nothing(
    live: Live, headers: dict[str, str], known_values: dict[str, Sequence[Any]], tmp_path: Path
) -> None:
    report = schemathesis(live, headers, known_values, tmp_path, "--max-examples", "40")
    assert report["test_cases"]["generated"] >= 3000
    assert {
        name: phase["status"] for name, phase in report["phases"].items() if name != "examples"
    } == dict.fromkeys(("coverage", "fuzzing", "stateful"), "success")
