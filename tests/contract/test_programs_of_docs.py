"""docs/examples: each program runs as it stands, against the live server."""

import base64
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest
from django.conf import settings
from django.contrib.auth.models import User

from chatcore.contrib.local_model.server import find_free_port
from chatcore.models import McpServer, Message, Session
from chatcore.tools.mcp.refresh import refresh_server
from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.compaction_sessions import say
from tests.support.openai_client import MODEL, create_key
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


def run(name: str, live: Live, user: User, *arguments: str) -> str:
    """What the program prints."""
    told = {
        "CHATCORE_URL": live.url,
        "CHATCORE_TOKEN": create_key(user),
        "CHATCORE_MODEL": MODEL,
        "PYTHONIOENCODING": "utf-8",
    }
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    done = subprocess.run(
        command, env=os.environ | told, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_rest_client_talks_and_tells_how_full_the_context_is(
    live: Live, user: User, model: AiModel, scripted: ScriptedModel
) -> None:
    scripted.script(
        Reply(text="Good morning.", usage=(20, 4)), Reply(text="Bonjour.", usage=(40, 4))
    )
    said = run("rest_chat.py", live, user, "Hello!", "And in French?").splitlines()
    assert said == [
        "you: Hello!",
        "model: Good morning.",
        "you: And in French?",
        "model: Bonjour.",
        "context: 44 of 8192 tokens (ok)",
    ]


def test_the_openai_client_talks_with_a_memory_and_runs_its_tool(
    live: Live, user: User, model: AiModel, scripted: ScriptedModel
) -> None:
    scripted.script(
        Reply(tool_calls=[make_tool_call("weather", {"city": "Rome"}, id="r")]),
        Reply(text="It is sunny."),
        Reply(text="Still sunny."),
    )
    said = run("openai_chat.py", live, user, "Weather in Rome?", "And tomorrow?").splitlines()
    assert said == [
        "you: Weather in Rome?",
        "model: It is sunny.",
        "you: And tomorrow?",
        "model: Still sunny.",
    ]
    session = Session.objects.get(external_id="from-an-example")
    rows = Message.objects.filter(session=session).order_by("seq").values_list("role", "content")
    assert list(rows)[2] == ("tool", "Sunny in Rome, 21 °C.")
    assert len(rows) == 6


@pytest.mark.slow
def test_the_openai_client_talks_in_a_conversation_and_runs_its_tool(
    live: Live, user: User, model: AiModel, scripted: ScriptedModel
) -> None:
    scripted.script(
        Reply(tool_calls=[make_tool_call("weather", {"city": "Rome"}, id="r")]),
        Reply(text="It is sunny."),
        Reply(text="Still sunny."),
    )
    said = run("openai_responses.py", live, user, "Weather in Rome?", "And tomorrow?").splitlines()
    assert said == [
        "you: Weather in Rome?",
        "model: It is sunny.",
        "you: And tomorrow?",
        "model: Still sunny.",
    ]
    assert Session.objects.get().message_count == 6


class Services(BaseHTTPRequestHandler):
    """What the tool server asks: a model that draws and speaks."""

    def do_POST(self) -> None:
        assert self.headers["Authorization"] == "Bearer a-key"
        picture = json.dumps({"data": [{"b64_json": base64.b64encode(b"a picture").decode()}]})
        self._answer(picture.encode() if self.path == "/images/generations" else b"a sound")

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Keep the output of tests calm."""


@pytest.fixture
def tool_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Run tool_server.py beside the services that it asks, and yield its address."""
    services = ThreadingHTTPServer(("127.0.0.1", 0), Services)
    threading.Thread(target=services.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{services.server_port}"
    told = {"OPENAI_BASE_URL": address, "OPENAI_API_KEY": "a-key"}
    port = find_free_port()
    monkeypatch.setitem(settings.CHATCORE, "FETCH_ALLOW_HOSTS", [f"127.0.0.1:{port}"])
    command = [sys.executable, str(EXAMPLES / "tool_server.py"), str(port)]
    process = subprocess.Popen(
        command, env=os.environ | told, cwd=tmp_path, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"

    def is_up() -> bool:
        try:
            return httpx2.get(f"{url}/files/none.png").status_code == 404
        except httpx2.HTTPError:
            return False

    try:
        wait_until(is_up, what="the tool server")
        yield url
    finally:
        process.terminate()
        process.wait(30)
        services.shutdown()


@pytest.mark.slow
def test_a_tool_server_of_ones_own_draws_and_speaks(
    tool_server: str, session: Session, scripted: ScriptedModel
) -> None:
    server = McpServer.objects.create(
        owner=session.owner, name="tools", url=f"{tool_server}/mcp", require_approval="never"
    )
    assert refresh_server(server), server.error
    names = [f"mcp__tools__{name}" for name in ("draw_picture", "speak")]
    session.tools = names
    session.save()
    arguments = ({"description": "A boat"}, {"text": "Ahoy"})
    calls = [
        make_tool_call(name, each, id=name) for name, each in zip(names, arguments, strict=True)
    ]
    scripted.script(Reply(tool_calls=calls), Reply(text="Here they are."))
    say(session, "A picture of a boat, and say ahoy.")
    results = {row.tool_call_id: row.content for row in session.messages.filter(role="tool")}
    picture, sound = (results[name] for name in names)
    assert picture.startswith(f"[A boat]({tool_server}/files/")
    assert httpx2.get(picture[len("[A boat](") : -1]).content == b"a picture"
    assert httpx2.get(sound[len("[Listen](") : -1]).headers["Content-Type"] == "audio/mpeg"
