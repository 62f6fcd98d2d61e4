"""Erasing a person: everything of theirs goes, and the counts prove it."""

from io import StringIO

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from knox.models import AuthToken

from chatcore.accounts.tokens import create_token
from chatcore.accounts.user_erasure import erase_user
from chatcore.contrib.audit.models import AuditEntry
from chatcore.contrib.holds.models import Hold
from chatcore.contrib.webhooks.models import Webhook
from chatcore.models import Message, Session
from compaction.models import CompactionRun
from models_registry.models import Provider
from tests.support.browsing import store_exchange
from tests.support.told_summaries import store_summaries

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def alice(session: Session) -> User:
    """Somebody with a session, a run, a token and a webhook, who has signed in."""
    user = session.owner
    store_exchange(session, "Where is the key?", "Under the mat.")
    CompactionRun.objects.create(
        session=session,
        trigger="manual",
        status="applied",
        policy="oneclaw",
        **store_summaries(session, after="Key."),
    )
    Webhook.objects.create(owner=user, url="https://example.com/hook")
    create_token(user, name="a script", expiry=None)
    Client().post("/login/", {"username": "alice", "password": "wrong"})
    Client().post("/login/", {"username": "alice", "password": "alice's password"})
    return user


def test_the_command_erases_everything_and_proves_it(alice: User) -> None:
    bob = User.objects.create_user("bob")
    others_session = Session.objects.create(owner=bob)
    output = StringIO()
    call_command("erase_user", "alice", "--yes", stdout=output)
    text = output.getvalue()
    assert "chatcore.session: 1 erased" in text
    assert "Nothing is left." in text
    assert [*User.objects.all()] == [bob]
    assert [*Session.all_objects.all()] == [others_session]
    for model in (Message, CompactionRun, Webhook, AuthToken):
        assert not model.objects.exists(), model
    entry = AuditEntry.objects.get(act="user.erased")
    assert (entry.object_id, entry.detail) == (str(alice.pk), "1 sessions")


def test_the_log_of_the_admin_keeps_what_only_sounds_like_the_person(admin_user: User) -> None:
    eve = User.objects.create_user("eve", email="eve@example.com")
    kinds = {"user": User, "provider": Provider, "hold": Hold}
    for kind, text in (
        ("user", "eve"),
        ("hold", "Eve: on hold"),
        ("hold", "for <eve@example.com>"),
        ("hold", "steve: on hold"),
        ("hold", "for eve@example.com.au"),
        ("provider", "Believe"),
        ("provider", "eve"),
    ):
        LogEntry.objects.create(
            user=admin_user,
            content_type=ContentType.objects.get_for_model(kinds[kind]),
            object_id="0",
            object_repr=text,
            action_flag=3,
        )
    erase_user(eve)
    left = set(LogEntry.objects.values_list("object_repr", flat=True))
    assert left == {"steve: on hold", "for eve@example.com.au", "Believe", "eve"}
    assert LogEntry.objects.filter(content_type__model="user").count() == 0


def test_the_command_asks_for_yes(alice: User) -> None:
    with pytest.raises(CommandError, match="--yes"):
        call_command("erase_user", "alice")
    assert User.objects.filter(pk=alice.pk).exists()


def test_a_person_on_legal_hold_stays(alice: User) -> None:
    Hold.objects.create(user=alice, reason="A court asks.")
    with pytest.raises(CommandError, match="legal hold"):
        call_command("erase_user", "alice", "--yes")
    assert Message.objects.count() == 2


def test_the_admin_erases_a_user_who_has_sessions(alice: User) -> None:
    root = User.objects.create_superuser("root")
    client = Client()
    client.force_login(root)
    address = reverse("admin:auth_user_delete", args=[alice.pk])
    assert "Sessions: 1" in client.get(address).content.decode()
    assert client.post(address, {"post": "yes"}).status_code == 302
    assert [*User.objects.all()] == [root]
    assert not Session.all_objects.exists()
    log = client.get(reverse("admin:audit_auditentry_changelist")).content.decode()
    assert "user.erased" in log
    assert f"user {alice.pk}, erased" in log


def test_a_person_deletes_the_own_account(alice: User, client: Client) -> None:
    page = "/settings/account/delete/"
    client.post("/login/", {"username": "alice", "password": "alice's password"})
    assert '/api/v1/export" download' in client.get("/settings/").content.decode()
    assert client.post(page, {"name": "alice"}).status_code == 302  # to the password, once more
    assert User.objects.filter(username="alice").exists()
    client.post("/account/confirm/", {"password": "alice's password"})
    assert "This is not the name" in client.post(page, {"name": "bob"}).content.decode()
    answer = client.post(page, {"name": "alice"})
    assert "Your account is deleted" in answer.content.decode()
    assert not User.objects.filter(username="alice").exists()
    assert not Session.all_objects.exists()
    assert AuditEntry.objects.get(act="user.erased").object_id == str(alice.pk)
    assert client.get("/settings/").status_code == 302


@pytest.mark.parametrize("reason", ["legal hold", "only administrator"])
def test_an_account_that_must_stay_is_not_deleted_by_its_person(
    alice: User, client: Client, reason: str
) -> None:
    if reason == "legal hold":
        Hold.objects.create(user=alice, reason="A secret case.")
    else:
        User.objects.update(is_superuser=True)
    client.post("/login/", {"username": "alice", "password": "alice's password"})
    client.post("/account/confirm/", {"password": "alice's password"})
    answer = client.post("/settings/account/delete/", {"name": "alice"})
    assert answer.status_code == 409
    assert "secret" not in answer.content.decode()
    assert User.objects.filter(username="alice").exists()
