"""`chatcore chat`: one shot, JSON, exit codes and the loop's commands."""

import io
import json
from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from rich.console import Console

from chatcore.base.token_estimate import format_tokens
from chatcore.context import revisions
from chatcore.contrib.terminal.local import (
    EXIT_CANNOT_FIT,
    EXIT_OK,
    EXIT_PROVIDER,
    EXIT_SIGN_IN,
    EXIT_USAGE,
    Terminal,
)
from chatcore.events import log as event_log
from chatcore.models import Message, Session
from tests.support.events import append_events
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as leaving:
        call_command("chat", *arguments)
    return int(leaving.value.code or 0)


@pytest.fixture
def owner(user: User) -> User:
    user.is_superuser = True
    user.save()
    return user


def test_one_shot_prints_the_answer_and_keeps_the_session(
    owner: User, model: object, scripted: ScriptedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted.script(Reply(text="Hello there."))
    assert run("hello") == EXIT_OK
    assert "Hello there." in capsys.readouterr().out
    assert Session.objects.get(owner=owner).message_count == 2


def test_a_file_follows_the_question_and_errors_are_apart_from_answers(
    owner: User,
    model: object,
    scripted: ScriptedModel,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("The text of a file.\n"))
    scripted.script(Reply(text="Short."), Reply(status=401, body=b'{"error": {"message": "no"}}'))
    assert run("summarize this") == EXIT_OK
    assert capsys.readouterr() == ("Short.\n", "")
    sent = scripted.requests[0].json["messages"][-1]["content"]
    assert sent == "summarize this\n\n```\nThe text of a file.\n```"
    assert run("hello") == EXIT_PROVIDER
    output = capsys.readouterr()
    assert output.out == ""
    assert "refused the API key" in output.err


def test_json_is_for_programs(
    owner: User, session: Session, scripted: ScriptedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted.script(Reply(text="Hello there."))
    assert run("--json", "--session", str(session.pk), "hello") == EXIT_OK
    result = json.loads(capsys.readouterr().out)
    assert (result["content"], result["status"], result["session"]) == (
        "Hello there.",
        "completed",
        str(session.pk),
    )


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
def test_the_exit_code_says_what_went_wrong(
    owner: User, model: object, scripted: ScriptedModel, reply: Reply, code: int
) -> None:
    scripted.default = reply
    assert run("--disable-compaction", "hello") == code


@pytest.mark.parametrize(
    "arguments",
    [
        ("--model", "nope"),
        ("--session", "nope"),
        ("--policy", "nope"),
        ("--compact-threshold", "1.5"),
        ("--compact-threshold", "0.2"),
    ],
)
def test_what_does_not_exist_is_a_usage_error(
    owner: User, model: object, arguments: tuple[str, ...]
) -> None:
    assert run(*arguments, "hello") == EXIT_USAGE


def test_the_session_keeps_the_threshold_and_the_policy_that_were_asked_for(
    owner: User, model: object, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Hello."))
    assert run("--policy", "neurolink", "--compact-threshold", "0.7", "hello") == EXIT_OK
    session = Session.objects.get(owner=owner)
    assert (session.policy, session.compact_threshold) == ("neurolink", 0.7)


def test_without_a_user_it_asks_to_sign_in(model: object) -> None:
    assert run("hello") == EXIT_SIGN_IN


def test_the_loop_rewinds_the_context_and_leaves(
    session: Session,
    scripted: ScriptedModel,
    console_with: Callable[..., tuple[Terminal, io.StringIO]],
) -> None:
    terminal, screen = console_with(session, "hello", "/rewind", "/models", "/quit")
    assert terminal.run_loop() == EXIT_OK
    assert "There is nothing to rewind" in screen.getvalue()
    assert "scripted/test-model" in screen.getvalue()


def test_brackets_in_what_others_say_are_words(
    session: Session, console_with: Callable[..., tuple[Terminal, io.StringIO]]
) -> None:
    """An error may quote a path or a list, which the console would take for its markup."""
    revisions.install_revision(
        session.pk, base_version=0, summary="s", boundary_seq=None, source="edit"
    )
    call = {"message": 1, "id": "c1", "name": "[/look]", "arguments": "{}"}
    append_events(
        session.pk, ("tool_call.started", call), ("context.trimmed", {"notice": "Gone: [/1/]"})
    )
    terminal, screen = console_with(session, "/rewind ²", "/quit")
    for event in event_log.read_events(session.pk, 0):
        terminal._show_event(event)
    terminal._print_error("No [/v1/chat].", EXIT_USAGE)
    assert terminal.run_loop() == EXIT_OK
    assert all(
        words in screen.getvalue()
        for words in ("[/look]", "[/1/]", "[/v1/chat]", "nothing to rewind")
    )


def test_the_loop_compacts_with_a_focus_and_exports(
    session: Session,
    scripted: ScriptedModel,
    console_with: Callable[..., tuple[Terminal, io.StringIO]],
) -> None:
    Message.objects.bulk_create(
        [
            Message(session=session, seq=n, role="user", content=f"{n} " + "word " * 400)
            for n in range(1, 21)
        ]
    )
    Session.objects.filter(pk=session.pk).update(last_seq=20, message_count=20)
    scripted.default = Reply(
        text="The user counted to twenty, with many words between the numbers,"
        " and asked for nothing at all."
    )
    terminal, screen = console_with(session, "/compact the numbers", "/export", "/quit")
    assert terminal.run_loop() == EXIT_OK
    assert "status     applied" in screen.getvalue()
    assert "the numbers" in str(scripted.requests[-1].json["messages"])
    assert "word word" in screen.getvalue()
    assert (
        console_with(session, "/compact", "/quit")[0].run_loop() == EXIT_OK
    )  # too little now: said, not raised


PROMISE = "Auto-compaction will trigger to preserve conversation quality."


@pytest.mark.parametrize(
    ("used", "threshold", "automatic", "lines"),
    [
        (4000, 6963, "on", []),
        (5300, 6963, "on", ["Context: 65% used"]),
        (7000, 6963, "on", ["Context usage: 85% of window (7,000 / 8,192 tokens)", PROMISE]),
        (7000, 6963, "stopped", ["Context usage: 85% of window (7,000 / 8,192 tokens)"]),
        (4500, 4260, "on", ["Context usage: 55% of window (4,500 / 8,192 tokens)", PROMISE]),
        (7000, 6963, "off", []),
    ],
)
def test_the_context_line_follows_the_seed(
    session: Session,
    console_with: Callable[..., tuple[Terminal, io.StringIO]],
    used: int,
    threshold: int,
    automatic: str,
    lines: list[str],
) -> None:
    terminal, screen = console_with(session)
    terminal.usage = {
        "estimated_input_tokens": used,
        "context_window": 8192,
        "should_compact": used > threshold,
        "automatic": automatic,
    }
    terminal._show_context()
    assert screen.getvalue().splitlines() == lines


def test_the_context_is_shown_in_its_parts(
    session: Session, console_with: Callable[..., tuple[Terminal, io.StringIO]]
) -> None:
    breakdown = {"system_prompt": 100, "summary": 0, "conversation_history": 41_100}
    usage = {
        "estimated_input_tokens": 41_200,
        "context_window": 128_000,
        "threshold_tokens": 108_800,
        "level": "ok",
        "breakdown": breakdown,
    }
    append_events(session.pk, ("context.usage", usage))
    terminal, screen = console_with(session, "/context", "/quit")
    terminal.run_loop()
    output = screen.getvalue()
    assert "41.2k / 128k · 32 %" in output
    assert "41,100" in output
    assert "108,800" in output


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (0, "0"),
        (940, "940"),
        (41_200, "41.2k"),
        (128_000, "128k"),
        (999_999, "1000k"),
        (1_048_576, "1.05M"),
    ],
)
def test_a_count_of_tokens_is_short(tokens: int, text: str) -> None:
    assert format_tokens(tokens) == text


def test_its_help_shows_what_a_command_takes(
    session: Session, console_with: Callable[..., tuple[Terminal, io.StringIO]]
) -> None:
    terminal, screen = console_with(session, "/what", "/quit")
    terminal.run_loop()
    assert screen.getvalue().count("/compact [focus]  /rewind [N]") == 2


def test_one_ctrl_c_at_the_prompt_warns_and_two_leave(
    session: Session,
    console_with: Callable[..., tuple[Terminal, io.StringIO]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal, screen = console_with(session)
    presses: Iterator[KeyboardInterrupt | str] = iter(
        [KeyboardInterrupt(), "", KeyboardInterrupt(), KeyboardInterrupt()]
    )

    def press_next_key(prompt: str) -> str:
        key = next(presses)
        if isinstance(key, BaseException):
            raise key
        return key

    monkeypatch.setattr(terminal.console, "input", press_next_key)
    assert terminal.run_loop() == EXIT_OK
    assert screen.getvalue().count("Ctrl-C once more") == 2


@pytest.fixture
def console_with(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Terminal, io.StringIO]]:
    def make(session: Session, *lines: str) -> tuple[Terminal, io.StringIO]:
        screen = io.StringIO()
        monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines) + "\n"))
        return Terminal(session, Console(file=screen, width=120)), screen

    return make
