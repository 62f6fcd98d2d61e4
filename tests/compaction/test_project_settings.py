"""The settings of NeuroLink's six variables: how they are read, refused and used."""

import os
import re
import runpy
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from rest_framework.test import APIClient

from chatcore import settings as chatcore_settings
from chatcore.models import Message, Session
from compaction.models import CompactionRun
from models_registry.models import AiModel
from tests.support.prepared_database import put_database
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

SECRETS = {
    "SECRET_KEY": "a secret of tests",
    "KEY_ENCRYPTION_KEYS": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
}
SUMMARY = "They talked about tea at length, and nothing at all was decided."


@pytest.fixture
def read_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The settings as a process with these variables reads them."""
    monkeypatch.setenv("CHATCORE_DATA_DIR", str(tmp_path))

    def reading(**variables: str) -> dict[str, Any]:
        for name, value in variables.items():
            monkeypatch.setenv(f"CHATCORE_{name}", value)
        return runpy.run_path(chatcore_settings.__file__)

    return reading


def test_options_in_the_address_of_the_database_are_kept(read_settings: Any) -> None:
    url = "postgres://me@there/here?sslmode=require"
    result = read_settings(DATABASE_URL=url, **SECRETS)
    database = result["DATABASES"]["default"]
    assert database["OPTIONS"]["sslmode"] == "require"
    assert database["OPTIONS"]["pool"]["max_size"] == 20
    assert database["DISABLE_SERVER_SIDE_CURSORS"], "behind PgBouncer they are unknown"


def test_without_a_variable_everything_is_as_the_policies_say(read_settings: Any) -> None:
    result = read_settings()
    assert {
        name: result["COMPACTION"][name] for name in ("AUTOMATIC", "THRESHOLD", "SUMMARY_MODEL")
    } == {
        "AUTOMATIC": True,
        "THRESHOLD": None,
        "SUMMARY_MODEL": "",
    }
    assert result["CHATCORE"]["MAX_SESSIONS"] == 0
    assert result["DEBUG"] is False


@pytest.mark.parametrize(
    ("variables", "name", "expected"),
    [
        ({"MEMORY_ENABLED": "false"}, "AUTOMATIC", False),
        ({"SUMMARIZATION_ENABLED": "Off"}, "AUTOMATIC", False),
        ({"MEMORY_ENABLED": "1", "SUMMARIZATION_ENABLED": "yes"}, "AUTOMATIC", True),
        ({"TOKEN_THRESHOLD": "auto"}, "THRESHOLD", None),
        ({"TOKEN_THRESHOLD": "0.7"}, "THRESHOLD", 0.7),
        ({"TOKEN_THRESHOLD": "1"}, "THRESHOLD", 1.0),
        ({"TOKEN_THRESHOLD": "100000"}, "THRESHOLD", 100_000),
        ({"SUMMARIZATION_MODEL": "small"}, "SUMMARY_MODEL", "small"),
        (
            {"SUMMARIZATION_PROVIDER": "vertex", "SUMMARIZATION_MODEL": "gemini-2.5-flash"},
            "SUMMARY_MODEL",
            "vertex/gemini-2.5-flash",
        ),
    ],
)
def test_a_good_value_is_taken(
    read_settings: Any, variables: dict[str, str], name: str, expected: object
) -> None:
    assert read_settings(**variables)["COMPACTION"][name] == expected


@pytest.mark.parametrize(
    ("url", "host", "is_https"),
    [
        ("https://chat.example.com", "chat.example.com", True),
        ("https://Chat.example.com:8443/", "chat.example.com", True),
        ("http://[2001:db8::1]:8000", "[2001:db8::1]", False),
    ],
)
def test_the_public_address_is_an_allowed_host_and_origin(
    read_settings: Any, url: str, host: str, is_https: bool
) -> None:
    result = read_settings(PUBLIC_URL=url)
    assert result["ALLOWED_HOSTS"] == [host, "127.0.0.1", "localhost", "[::1]"]
    assert result["CSRF_TRUSTED_ORIGINS"] == [url.lower().rstrip("/")]
    for name in ("SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE", "SECURE_SSL_REDIRECT"):
        assert result[name] is is_https


def test_forms_are_taken_from_every_host_that_is_allowed(read_settings: Any) -> None:
    assert read_settings(ALLOWED_HOSTS="chat.example.com,.example.org")["CSRF_TRUSTED_ORIGINS"] == [
        "https://chat.example.com",
        "https://*.example.org",
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MEMORY_ENABLED", "perhaps"),
        ("TOKEN_THRESHOLD", "0"),
        ("TOKEN_THRESHOLD", "1.5"),
        ("TOKEN_THRESHOLD", "80%"),
        ("TOKEN_THRESHOLD", "-5"),
        ("SUMMARIZATION_PROVIDER", "vertex"),
        ("MEMORY_MAX_SESSIONS", "-1"),
        ("MEMORY_MAX_SESSIONS", "many"),
        ("EVENT_RETENTION_DAYS", "-1"),
        ("DEBUG", "maybe"),
        ("DATA_DIR", "/proc/nowhere"),
        ("DATABASE_URL", "here"),
        ("DATABASE_URL", "papyrus://here"),
        ("DATABASE_URL", "postgres://me:5432:here/there"),
        ("REDIS_URL", "localhost"),
        ("PUBLIC_URL", "chat.example.com"),
        ("PUBLIC_URL", "https://chat.example.com/under/a/path"),
        ("PUBLIC_URL", "https://me:secret@chat.example.com"),
        ("WORKERS", "0"),
        ("TURNS_PER_MINUTE", "0"),
        ("TURNS_AT_ONCE", "0"),
        ("TURNS_AT_ONCE_PER_USER", "many"),
        ("STREAMS_AT_ONCE", "-1"),
        ("KEY_ENCRYPTION_KEYS", "secret"),
        ("LOCAL_MODEL", "7b"),
        ("LOCAL_MODEL_PORT", "99999"),
        ("LOG_LEVEL", "loud"),
    ],
)
def test_a_bad_value_stops_the_start_with_a_sentence_that_names_it(
    read_settings: Any, name: str, value: str
) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"^CHATCORE_{name} (is|has) .+"):
        read_settings(**{name: value})


def ended(folder: Path, command: str, **variables: str) -> tuple[int, str]:
    """The exit code of a command in a folder of its own, and what it complained of."""
    environment = os.environ | {"CHATCORE_DATA_DIR": str(folder)} | variables
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    run = [sys.executable, "-m", "chatcore", *command.split()]
    process = subprocess.run(
        run, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert process.stdout == ""
    return process.returncode, process.stderr


def test_a_command_ends_with_that_sentence_alone(tmp_path: Path) -> None:
    complaint = (
        "CHATCORE_LOG_LEVEL is 'loud'; it can be INFO or DEBUG or WARNING or ERROR or CRITICAL.\n"
    )
    assert ended(tmp_path, "policies", CHATCORE_LOG_LEVEL="loud") == (2, complaint)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "variables", "code", "complaint"),
    [
        (
            "chat Hello",
            {},
            1,
            r"The database cannot be used: no such table: \w+\. "
            r".*gets its tables by `chatcore migrate`\.\n",
        ),
        pytest.param(
            "serve --port 99999",
            {},
            2,
            r"CommandError: --port is 99999; it must be from 1 to 65535\.\n",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "serve --no-local-model --port {port}",
            {"CHATCORE_POLICY": "none"},
            1,
            r"(?s).*no compaction policy named 'none'.*CHATCORE_POLICY.*",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "serve --no-local-model --port {port}",
            {"CHATCORE_REDIS_URL": "redis://127.0.0.1:1"},
            1,
            r"CommandError: The server that CHATCORE_REDIS_URL names cannot be used: .*\n",
            marks=pytest.mark.slow,
        ),
        (
            "worker --patience=-1",
            {},
            2,
            r"CommandError: --patience is -1\.0; it must be above 0\.\n",
        ),
    ],
)
@pytest.mark.program
def test_so_does_one_that_cannot_begin(
    tmp_path: Path, command: str, variables: dict[str, str], code: int, complaint: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    if variables:  # it gets as far as to its tables
        put_database(tmp_path)
    result = ended(tmp_path, command.format(port=port), **variables)
    assert result[0] == code
    assert re.fullmatch(complaint, result[1]), result[1]


def test_a_level_of_the_log_may_be_written_small(read_settings: Any) -> None:
    assert read_settings(LOG_LEVEL="debug")["LOGGING"]["root"]["level"] == "DEBUG"


@pytest.fixture
def talked(session: Session) -> Session:
    """Twenty messages of 500 tokens in a window of 8,192: over every threshold."""
    roles = ("assistant", "user")
    Message.objects.bulk_create(
        Message(session=session, seq=n, role=roles[n % 2], content="tea " * 500)
        for n in range(1, 21)
    )
    Session.objects.filter(pk=session.pk).update(last_seq=20, message_count=20)
    return session


def context_of(api: APIClient, session: Session) -> dict[str, Any]:
    context: dict[str, Any] = api.get(f"/api/v1/sessions/{session.pk}/context").json()
    return context


@pytest.mark.django_db
def test_where_it_is_switched_off_nothing_starts_by_itself(
    api: APIClient, talked: Session, settings: LazySettings
) -> None:
    assert context_of(api, talked)["automatic"] == "on"
    settings.COMPACTION = {**settings.COMPACTION, "AUTOMATIC": False}
    assert context_of(api, talked)["automatic"] == "off"


@pytest.mark.django_db(transaction=True)
def test_where_it_is_switched_off_a_run_by_hand_is_made_all_the_same(
    api: APIClient, talked: Session, settings: LazySettings, scripted: ScriptedModel
) -> None:
    settings.COMPACTION = {**settings.COMPACTION, "AUTOMATIC": False}
    scripted.default = Reply(text=SUMMARY, usage=(800, 12))
    api.post(f"/api/v1/sessions/{talked.pk}/messages", {"content": "Hi"})
    assert not CompactionRun.objects.exists()
    assert (
        api.post(f"/api/v1/sessions/{talked.pk}/compact", {"wait": True}).json()["status"]
        == "applied"
    )


@pytest.mark.django_db
@pytest.mark.parametrize("policy", ["oneclaw", "neurolink", "lota", "wolffish", "baseagent"])
def test_a_number_of_tokens_is_where_room_is_made(
    api: APIClient, talked: Session, settings: LazySettings, policy: str
) -> None:
    AiModel.objects.update(context_window_size=200_000)
    Session.objects.update(policy=policy)
    settings.COMPACTION = {**settings.COMPACTION, "THRESHOLD": 100_003}
    assert context_of(api, talked)["threshold_tokens"] == 100_003


@pytest.mark.django_db
def test_a_number_of_tokens_that_the_window_does_not_hold_changes_nothing(
    api: APIClient, talked: Session, settings: LazySettings
) -> None:
    settings.COMPACTION = {**settings.COMPACTION, "THRESHOLD": 100_000}
    assert context_of(api, talked)["threshold_tokens"] == 6963


@pytest.mark.django_db
def test_a_share_is_taken_where_the_session_has_none_of_its_own(
    api: APIClient, talked: Session, settings: LazySettings
) -> None:
    settings.COMPACTION = {**settings.COMPACTION, "THRESHOLD": 0.5}
    assert context_of(api, talked)["threshold_tokens"] == 4096
    Session.objects.update(compact_threshold=0.75)
    assert context_of(api, talked)["threshold_tokens"] == 6144


@pytest.mark.django_db(transaction=True)
def test_the_named_model_writes_the_summaries(
    api: APIClient, talked: Session, settings: LazySettings, scripted: ScriptedModel
) -> None:
    AiModel.objects.create(
        provider=AiModel.objects.get(name="test-model").provider,
        name="small",
        context_window_size=8192,
    )
    settings.COMPACTION = {**settings.COMPACTION, "SUMMARY_MODEL": "scripted/small"}
    scripted.default = Reply(text=SUMMARY, usage=(800, 12))
    run = api.post(f"/api/v1/sessions/{talked.pk}/compact", {"wait": True}).json()
    assert (run["status"], run["model"]) == ("applied", "scripted/small")
    assert {received.json["model"] for received in scripted.requests} == {"small"}


@pytest.mark.django_db
def test_over_the_number_of_sessions_those_used_longest_ago_go_to_the_archive(
    api: APIClient, user: User, settings: LazySettings
) -> None:
    settings.CHATCORE = {**settings.CHATCORE, "MAX_SESSIONS": 2}
    other = Session.objects.create(owner=User.objects.create_user("bob"), title="another's")
    for title in ("pinned", "a", "b", "c"):
        api.post("/api/v1/sessions", {"title": title, "pinned": title == "pinned"})
    listed = Session.objects.filter(owner=user, archived=False).values_list("title", flat=True)
    assert set(listed) == {"pinned", "b", "c"}
    assert Session.objects.filter(owner=user).count() == 4
    assert not Session.objects.get(pk=other.pk).archived
