"""How long data lives: retention by the operator, legal holds, and the export of a user."""

import io
import json
import stat
import zipfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db.models import ProtectedError
from django.utils import timezone
from knox.models import AuthToken
from rest_framework.test import APIClient

from chatcore.contrib.audit.models import AuditEntry
from chatcore.contrib.holds.models import Hold
from chatcore.contrib.webhooks.models import Webhook
from chatcore.models import Message, Session
from chatcore.sessions.deletion import purge_due_sessions
from chatcore.sessions.retention import delete_unused_sessions
from chatcore.transfer.user_export import write_user_export
from tests.conftest import Live

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def retain(settings: Any) -> Callable[[int], None]:
    def set_days(days: int) -> None:
        settings.CHATCORE = {
            **settings.CHATCORE,
            "SESSION_RETENTION_DAYS": days,
            "DELETION_GRACE_DAYS": 0,
        }

    return set_days


@pytest.fixture
def unused(session: Session) -> Session:
    """A session with a message, last used 31 days ago."""
    Message.objects.create(session=session, seq=1, role="user", content="A heron on a lake.")
    month_ago = timezone.now() - timedelta(days=31)
    Session.objects.filter(pk=session.pk).update(updated_at=month_ago)
    return session


def count_rows(session: Session) -> tuple[int, int]:
    return (
        Session.all_objects.filter(pk=session.pk).count(),
        Message.objects.filter(session=session.pk).count(),
    )


def test_without_a_setting_nothing_is_ever_deleted(unused: Session) -> None:
    assert delete_unused_sessions() == 0
    assert count_rows(unused) == (1, 1)


def test_sessions_that_nobody_used_for_so_long_are_deleted_whole(
    unused: Session, user: User, retain: Callable[[int], None]
) -> None:
    used = Session.objects.create(owner=user)
    retain(30)
    assert delete_unused_sessions() == 1
    assert count_rows(unused) == (0, 0)
    assert count_rows(used) == (1, 0)
    assert delete_unused_sessions() == 0


def test_a_hold_keeps_unused_sessions(
    unused: Session, user: User, retain: Callable[[int], None]
) -> None:
    retain(30)
    hold = Hold.objects.create(user=user, reason="A case.")
    assert delete_unused_sessions() == 0
    hold.ended_at = timezone.now()
    hold.save()
    assert delete_unused_sessions() == 1


def test_a_session_deleted_on_hold_is_hidden_and_stays_stored(
    unused: Session, user: User, api: APIClient
) -> None:
    Hold.objects.create(user=user, reason="A case.")
    assert api.delete(f"/api/v1/sessions/{unused.pk}").status_code == 204
    assert api.get(f"/api/v1/sessions/{unused.pk}").status_code == 404
    assert purge_due_sessions() == 0
    assert count_rows(unused) == (1, 1)
    Hold.objects.update(ended_at=timezone.now())
    assert purge_due_sessions() == 1
    assert count_rows(unused) == (0, 0)


def test_a_message_on_hold_is_not_deleted_and_the_user_is_told(
    unused: Session, user: User, api: APIClient
) -> None:
    Hold.objects.create(user=user, reason="A case.")
    message = unused.messages.get()
    refused = api.delete(f"/api/v1/messages/{message.pk}")
    assert (refused.status_code, refused.json()["type"]) == (409, "on_hold")
    assert count_rows(unused) == (1, 1)


def test_a_user_on_hold_cannot_be_deleted(user: User) -> None:
    Hold.objects.create(user=user, reason="A case.")
    with pytest.raises(ProtectedError):
        user.delete()


def test_the_export_of_a_user_has_all_of_theirs_and_nothing_of_others(
    unused: Session, user: User, tmp_path: Path
) -> None:
    other = Session.objects.create(owner=User.objects.create_user("bob"), title="Bob's")
    Webhook.objects.create(owner=user, url="https://example.com/hook", events=["turn.completed"])
    file = tmp_path / "alice.zip"
    output = io.StringIO()
    call_command("export_user", "alice", str(file), stdout=output)
    assert "1 sessions of alice" in output.getvalue()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        texts = {name: archive.read(name).decode() for name in names}
    session = json.loads(texts[f"sessions/{unused.pk}.json"])
    assert [message["content"] for message in session["messages"]] == ["A heron on a lake."]
    assert "https://example.com/hook" in texts["rows/webhooks.webhook.owner.json"]
    assert json.loads(texts["profile.json"])["username"] == "alice"
    everything = "\n".join(texts.values())
    assert str(other.pk) not in everything
    for secret in (user.password, "encrypted_secret", "password"):
        assert secret not in everything


def test_an_exported_session_can_be_imported_again(
    unused: Session, user: User, api: APIClient
) -> None:
    file = io.BytesIO()
    assert write_user_export(user, file) == 1
    with zipfile.ZipFile(file) as archive:
        body = json.loads(archive.read(f"sessions/{unused.pk}.json"))
    imported = api.post("/api/v1/sessions/import", body)
    assert imported.status_code == 201, imported.json()
    assert imported.json()["message_count"] == 1


def test_users_fetch_everything_of_theirs_over_rest(
    unused: Session, user: User, live: Live
) -> None:
    second = Session.objects.create(owner=user, title="Second")
    bob = User.objects.create_user("bob")
    other = Session.objects.create(owner=bob, title="Bob's")
    token = AuthToken.objects.create(user)[1]
    headers = {"Authorization": f"Bearer {token}"}
    response = httpx2.get(f"{live.url}/api/v1/export", headers=headers, timeout=30)
    assert (response.status_code, response.headers["content-type"]) == (200, "application/zip")
    assert "content-length" not in response.headers  # it is written while it is read
    with zipfile.ZipFile(io.BytesIO(response.content)) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        session = json.loads(archive.read(f"sessions/{unused.pk}.json"))
    assert session["messages"][0]["content"] == "A heron on a lake."
    assert f"sessions/{second.pk}.json" in names
    assert f"sessions/{other.pk}.json" not in names
    assert AuditEntry.objects.filter(act="user.exported", actor_id=user.pk).count() == 1
    assert httpx2.get(f"{live.url}/api/v1/export", timeout=30).status_code == 401


def test_an_export_never_writes_over_a_file(user: User, tmp_path: Path) -> None:
    file = tmp_path / "alice.zip"
    file.write_text("mine")
    with pytest.raises(CommandError, match="exists already"):
        call_command("export_user", "alice", str(file))
    with pytest.raises(CommandError, match="no user nobody"):
        call_command("export_user", "nobody", str(file))
    assert file.read_text() == "mine"
