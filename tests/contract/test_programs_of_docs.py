"""docs/examples: each program runs as it stands, against the live server."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from chatcore.models import Message, Session
from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.openai_client import MODEL, create_key
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

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
