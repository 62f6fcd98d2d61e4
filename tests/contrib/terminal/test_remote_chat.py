"""`chatcore chat --url`: the same conversation with a server elsewhere; and text from a pipe."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from knox.models import AuthToken
from rich.console import Console

from chatcore.contrib.terminal import arguments
from chatcore.contrib.terminal.remote import (
    RemoteTerminal,
    Server,
    open_server,
    read_frames,
    run_chat,
)
from chatcore.contrib.terminal.screen import (
    EXIT_CANNOT_FIT,
    EXIT_OK,
    EXIT_PROVIDER,
    EXIT_SIGN_IN,
    EXIT_USAGE,
    ChatUnavailable,
)
from chatcore.events.types import Event
from chatcore.models import Message, Session
from tests.conftest import Live
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.tcp_proxy import TcpProxy

pytestmark = pytest.mark.django_db(transaction=True)
DEFAULTS = dict.fromkeys(
    ("text", "session", "user", "url", "token", "model", "system", "policy", "compact_threshold")
) | {"disable_compaction": False, "json": False}


@pytest.fixture
def options(live: Live, user: User, model: object) -> dict[str, Any]:
    _, token = AuthToken.objects.create(user)
    return DEFAULTS | {"url": live.url, "token": token}


def chat(options: dict[str, Any], text: str = "hello", stdin: str = "", **changes: Any) -> int:
    return run_chat(options | {"text": text} | changes, io.StringIO(stdin))


def test_one_shot_prints_the_answer_alone_and_stores_it_there(
    options: dict[str, Any],
    user: User,
    scripted: ScriptedModel,
    capsys: pytest.CaptureFixture[str],
) -> None:
    scripted.script(Reply(text="Hello there."))
    assert chat(options, system="Be kind.") == EXIT_OK
    assert capsys.readouterr() == ("Hello there.\n", "")
    session = Session.objects.get(owner=user)
    assert (session.message_count, session.system_prompt) == (2, "Be kind.")


def test_it_goes_on_with_a_session_and_speaks_json(
    options: dict[str, Any],
    session: Session,
    scripted: ScriptedModel,
    capsys: pytest.CaptureFixture[str],
) -> None:
    scripted.script(Reply(text="Hello there."))
    assert chat(options, session=str(session.pk), policy="neurolink", json=True) == EXIT_OK
    result = json.loads(capsys.readouterr().out)
    assert (result["session"], result["status"], result["content"], result["error"]) == (
        str(session.pk),
        "completed",
        "Hello there.",
        None,
    )
    assert result["context"]["context_window"] == 8192
    session.refresh_from_db()
    assert session.policy == "neurolink"


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Reply(status=401, body=b'{"error": {"message": "no"}}'), EXIT_PROVIDER),
        (
            Reply(
                status=400,
                body=b'{"error": {"code": "context_length_exceeded", "message": "too long"}}',
            ),
            EXIT_CANNOT_FIT,
        ),
    ],
    ids=["provider", "cannot fit"],
)
def test_a_failure_is_on_stderr_and_in_the_exit_code(
    options: dict[str, Any],
    scripted: ScriptedModel,
    capsys: pytest.CaptureFixture[str],
    reply: Reply,
    code: int,
) -> None:
    scripted.default = reply
    assert chat(options, disable_compaction=True) == code
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.strip()


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"token": "wrong"}, EXIT_SIGN_IN, ""),
        ({"token": ""}, EXIT_SIGN_IN, "create_token"),
        ({"url": "http://127.0.0.1:9"}, EXIT_PROVIDER, "http://127.0.0.1:9 cannot be reached"),
        ({"url": "chat.example.com"}, EXIT_USAGE, "--url is 'chat.example.com'"),
        ({"user": "alice"}, EXIT_USAGE, "--user"),
        ({"session": "nope"}, EXIT_USAGE, "You have no session nope."),
        ({"session": "00000000-0000-4000-8000-000000000000"}, EXIT_USAGE, "not yours"),
        ({"model": "nope"}, EXIT_USAGE, "no usable language model"),
        ({"policy": "nope"}, EXIT_USAGE, "no compaction policy"),
        ({"compact_threshold": 1.5}, EXIT_USAGE, "compact_threshold"),
    ],
)
def test_what_cannot_begin_is_one_sentence(
    options: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
    changes: dict[str, Any],
    code: int,
    words: str,
) -> None:
    assert chat(options, **changes) == code
    output = capsys.readouterr()
    assert output.out == ""
    assert words in output.err
    assert output.err.count("\n") == 1


@pytest.fixture
def server(options: dict[str, Any]) -> Iterator[Server]:
    with open_server(options) as opened_server:
        yield opened_server


@pytest.fixture
def console_with(
    server: Server, session: Session, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[RemoteTerminal, io.StringIO]]:
    def make(*lines: str) -> tuple[RemoteTerminal, io.StringIO]:
        screen = io.StringIO()
        monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines) + "\n"))
        console = Console(file=screen, width=120)
        row = server.call("GET", f"sessions/{session.pk}")
        return RemoteTerminal(server, row, console, console), screen

    return make


def test_the_loop_has_the_same_commands(
    session: Session,
    scripted: ScriptedModel,
    console_with: Callable[..., tuple[RemoteTerminal, io.StringIO]],
) -> None:
    rows = [
        Message(session=session, seq=n, role="user", content=f"{n} " + "word " * 400)
        for n in range(1, 21)
    ]
    Message.objects.bulk_create(rows)
    Session.objects.filter(pk=session.pk).update(last_seq=20, message_count=20)
    scripted.default = Reply(
        text="The user counted to twenty, with many words between the numbers,"
        " and asked for nothing at all."
    )
    lines = ("/rewind", "/context", "/compact the numbers", "/rewind", "/rewind 7", "/rewind x")
    terminal, screen = console_with(*lines, "/models", "/export", "/what", "/quit")
    assert terminal.run_loop() == EXIT_OK
    output = screen.getvalue()
    assert output.count("There is nothing to rewind") == 2
    assert "compacts above" in output
    assert "status     applied" in output
    assert "The model sees again what it saw at version 0." in output
    assert "There is no context version 7." in output
    assert "scripted/test-model" in output
    assert "word word" in output
    assert "/compact [focus]  /rewind [N]" in output
    assert "the numbers" in str(scripted.requests[-1].json["messages"])


class StoppedTerminal(RemoteTerminal):
    """Ctrl-C comes with the first words of the answer."""

    is_stopped = False

    def _show_event(self, event: Event) -> None:
        super()._show_event(event)
        if event.name == "message.delta" and not self.is_stopped:
            self.is_stopped = True
            raise KeyboardInterrupt


def test_ctrl_c_keeps_what_has_come(
    server: Server, session: Session, scripted: ScriptedModel
) -> None:
    screen = io.StringIO()
    console = Console(file=screen, width=120)
    row = server.call("GET", f"sessions/{session.pk}")
    terminal = StoppedTerminal(server, row, console, console)
    scripted.script(Reply(chunks=["Once ", "upon ", "a time"], cut_after=1, hang=True))
    assert terminal.send_message("Tell me.") == EXIT_OK
    assert "stopped; the text so far is stored" in screen.getvalue()
    answer = Message.objects.get(session=session, role="assistant")
    assert (answer.status, answer.content) == ("interrupted", "Once ")


class BrokenTerminal(RemoteTerminal):
    """The line breaks with the first words of the answer, and is there again at once."""

    proxy: TcpProxy
    breaks = 1

    def _show_event(self, event: Event) -> None:
        super()._show_event(event)
        if event.name == "message.delta" and self.breaks:
            self.breaks -= 1
            self.proxy.disconnect()
            self.proxy.reconnect()


def test_a_broken_line_is_taken_up_where_it_broke(
    options: dict[str, Any], session: Session, scripted: ScriptedModel
) -> None:
    screen = io.StringIO()
    console = Console(file=screen, width=120)
    scripted.script(Reply(chunks=["Once ", "upon ", "a ", "time."], chunk_delay=0.2))
    with TcpProxy(options["url"]) as proxy, open_server(options | {"url": proxy.url}) as server:
        row = server.call("GET", f"sessions/{session.pk}")
        terminal = BrokenTerminal(server, row, console, console)
        terminal.proxy = proxy
        assert terminal.send_message("Tell me.") == EXIT_OK
    assert "Once upon a time." in screen.getvalue()
    assert len(scripted.requests) == 1


def test_as_a_program_it_opens_no_database_of_its_own(
    options: dict[str, Any], scripted: ScriptedModel, tmp_path: Path
) -> None:
    scripted.script(Reply(text="Three words."))
    process = subprocess.run(
        [sys.executable, "-m", "chatcore", "chat", "Summarize this."],
        input="The whole text of a file.",
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.getcwd(),
            "CHATCORE_URL": options["url"],
            "CHATCORE_TOKEN": options["token"],
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (process.returncode, process.stdout, process.stderr) == (0, "Three words.\n", "")
    assert list(tmp_path.iterdir()) == []
    sent = scripted.requests[0].json["messages"][-1]["content"]
    assert sent == "Summarize this.\n\n```\nThe whole text of a file.\n```"


@pytest.mark.parametrize(
    ("text", "piped", "message"),
    [
        ("hello", "", "hello"),
        ("", " hello \n", "hello"),
        (None, "", ""),
        ("look", "a\nb\n", "look\n\n```\na\nb\n```"),
        ("look", "```py\n1\n```", "look\n\n````\n```py\n1\n```\n````"),
    ],
)
def test_piped_text_follows_the_question_in_a_fence(
    text: str | None, piped: str, message: str
) -> None:
    assert arguments.build_text(text, io.StringIO(piped)) == message


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"x" * 262_145, "The text is longer than 256 KB."), (b"\xff\xfe", "Standard input is no")],
)
def test_what_cannot_be_sent_is_refused(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "input"
    path.write_bytes(content)
    with path.open() as file, pytest.raises(ChatUnavailable, match=sentence):
        arguments.build_text("look", file)


def test_nobody_waits_for_an_input_that_is_none() -> None:
    with Path(os.devnull).open() as nothing:
        assert arguments.build_text("hello", nothing) == "hello"
    assert arguments.build_text("hello", None) == "hello"


def test_frames_are_read_as_the_standard_says() -> None:
    lines = [": beat", "", "id: 1", "event: a", "data: {", "data: }", "", "data:x"]
    assert list(read_frames(lines)) == [{"id": "1", "event": "a", "data": "{\n}"}]
