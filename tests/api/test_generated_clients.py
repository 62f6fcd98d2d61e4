"""A client that openapi-python-client generates from the document: its calls can be called."""

import json
import os
import subprocess
import venv
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from knox.models import AuthToken

from chatcore.models import Session
from tests.conftest import Live
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "openapi.json"
GENERATOR = "openapi-python-client>=0.29,<0.30"
# It is run with the generator's own Python, so that nothing of Chatcore is near.
PROGRAM = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from chatcore_client import AuthenticatedClient
from chatcore_client.api.messages import edit_message
from chatcore_client.api.sessions import (
    change_session, create_session, list_messages, list_sessions, send_message,
)
from chatcore_client.models import NewMessageRequest, PatchedSessionRequest, SessionRequest

client = AuthenticatedClient(base_url=os.environ["URL"], token=os.environ["TOKEN"])
with client:
    session = create_session.sync(client=client, body=SessionRequest(title="Tea"))
    empty = create_session.sync_detailed(client=client)
    answer = send_message.sync(session.id, client=client, body=NewMessageRequest(content="Hi"))
    stream = send_message.sync_detailed(
        session.id, client=client, body=NewMessageRequest(content="Again", stream=True)
    )
    tag = create_session.sync_detailed(client=client, body=SessionRequest()).headers["ETag"]
    stale = change_session.sync_detailed(
        session.id, client=client, body=PatchedSessionRequest(title="Mine"), if_match=tag
    )
    messages = list_messages.sync(session.id, client=client)
    print(json.dumps({
        "title": session.title,
        "empty": int(empty.status_code),
        "answer": answer.assistant_message.content,
        "stream": [int(stream.status_code), stream.parsed],
        "stale": [int(stale.status_code), stale.parsed.type_],
        "messages": [message.content for message in messages.results],
        "sessions": len(list_sessions.sync(client=client).results),
    }))
"""


def run(*command: str, folder: Path, **environment: str) -> str:
    path = f"{folder / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    process = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def test_it_creates_a_session_reads_a_stream_and_is_refused_in_words(
    live: Live, user: User, model: object, scripted: ScriptedModel, tmp_path: Path
) -> None:
    scripted.default = Reply(text="Hello.", usage=(10, 2))
    _, token = AuthToken.objects.create(user)
    venv.create(tmp_path / "venv", with_pip=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    run(python, "-m", "pip", "install", "--quiet", GENERATOR, folder=tmp_path)
    generate = ("openapi-python-client", "generate", "--meta", "none", "--path", str(DOCUMENT))
    run(*generate, "--output-path", "client/chatcore_client", folder=tmp_path)
    printed = run(
        python, "-c", PROGRAM, str(tmp_path / "client"), folder=tmp_path, URL=live.url, TOKEN=token
    )
    result = json.loads(printed)
    stream = result.pop("stream")
    assert stream[0] == 200
    assert "event: message.delta" in stream[1]
    assert result == {
        "title": "Tea",
        "empty": 201,
        "answer": "Hello.",
        "stale": [412, "changed"],
        "messages": ["Hi", "Hello.", "Again", "Hello."],
        "sessions": 3,
    }
    assert Session.objects.filter(owner=user, title="Tea").count() == 1
