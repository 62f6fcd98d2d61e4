"""What is hostile stays words in a terminal: nothing steers it, whoever wrote it."""

import io
import json

import pytest
from rich.console import Console

from chatcore.base.truncation import clean_text
from chatcore.context import revisions
from chatcore.contrib.terminal.local import EXIT_USAGE, Terminal
from chatcore.events import log as event_log
from chatcore.models import Session
from models_registry.models import AiModel
from tests.support.browsing import store_exchange
from tests.support.events import append_events
from tests.support.hostile import HOSTILE
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)

STEERS = [chr(code) for code in (*range(9), *range(11, 32), *range(0x7F, 0xA0))]


@pytest.fixture
def screen() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def terminal(session: Session, screen: io.StringIO) -> Terminal:
    return Terminal(session, Console(file=screen, width=120))


def test_no_answer_tool_notice_or_error_steers_the_terminal(
    terminal: Terminal, scripted: ScriptedModel, screen: io.StringIO
) -> None:
    text = clean_text(" ".join(each[:400] for each in HOSTILE))
    refused = json.dumps({"error": {"message": f"Refused: {text}"}}).encode()
    scripted.script(
        Reply(tool_calls=[make_tool_call(text[:200], "{}")]),
        Reply(text=text),
        Reply(status=400, body=refused),
    )
    terminal.send_message("hello")
    terminal.send_message("again")
    said = append_events(
        terminal.session.pk,
        ("context.trimmed", {"notice": text}),
        ("tool_call.started", {"name": text, "id": "x"}),
    )
    for event in event_log.read_events(terminal.session.pk, (said or 0) - 2):
        terminal._show_event(event)
    terminal._print_error(text, EXIT_USAGE)
    assert "\u241b]52;c;cmFuPTE=" in screen.getvalue()
    assert "<script>ran=1</script>" in screen.getvalue()
    assert not [steer for steer in STEERS if steer in screen.getvalue()]


@pytest.mark.slow
def test_no_command_brings_what_steers_the_terminal(
    terminal: Terminal, model: AiModel, screen: io.StringIO
) -> None:
    AiModel.objects.create(provider=model.provider, name="\x1b[2J other")
    store_exchange(terminal.session, *(clean_text(text) for text in HOSTILE))
    revisions.install_revision(
        terminal.session.pk, base_version=0, summary="\x9b2J", boundary_seq=3, source="edit"
    )
    for line in ("/export", "/models", "/context", "/rewind \x1b[2J", "/compact \x1b[2J"):
        terminal._run_command(line)
    assert "\u241b[2J other" in screen.getvalue()
    assert not [steer for steer in STEERS if steer in screen.getvalue()]
