"""Staff: who sees what people wrote, who does not, and what is written down of it."""

import importlib
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import time_machine
from django.apps import apps
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from knox.models import AuthToken

from chatcore.accounts import audit
from chatcore.accounts.tokens import create_token
from chatcore.base.databases.moved_tables import give_rights
from chatcore.context import revisions
from chatcore.contrib.audit.extension import prune_entries
from chatcore.contrib.audit.models import AuditEntry
from chatcore.contrib.invitations.models import Invitation
from chatcore.models import Message, Session, Turn
from compaction.memory.models import LedgerLine
from compaction.models import CompactionRun

pytestmark = pytest.mark.django_db
SECRET = "the well is under the old oak"
STAFF_GROUPS = importlib.import_module("compaction.migrations.0001_squashed_0029")
AUDIT = importlib.import_module("chatcore.contrib.audit.migrations.0001_initial")
Staff = Callable[[str], Client]


@pytest.fixture
def talk(session: Session) -> Session:
    """A session whose every text has the secret in it."""
    turn = Turn.objects.create(session=session, status="completed", lease_until=timezone.now())
    Message.objects.create(
        session=session, turn=turn, seq=1, role="user", content=SECRET, reasoning=SECRET
    )
    Session.objects.filter(pk=session.pk).update(title=SECRET, system_prompt=SECRET, last_seq=1)
    revisions.install_revision(
        session.pk, base_version=0, summary=SECRET, boundary_seq=1, source="compaction"
    )
    CompactionRun.objects.create(
        session=session,
        trigger="manual",
        status="applied",
        policy="oneclaw",
        version_before=1,
        version_after=1,
        instructions=SECRET,
        reason=SECRET,
    )
    LedgerLine.objects.create(session=session, kind="value", text=SECRET, key=SECRET, seq=1)
    session.refresh_from_db()
    return session


@pytest.fixture
def staff(db: None) -> Staff:
    """Sign somebody in who is in one of the ready groups; with none, a superuser."""
    STAFF_GROUPS.make_groups(apps, SimpleNamespace(connection=connection))
    give_rights(apps, "audit", AUDIT.STAFF, "default")

    def sign_in(group: str) -> Client:
        person = User.objects.create_user(group or "root", is_staff=True, is_superuser=not group)
        person.groups.set(Group.objects.filter(name=group))
        client = Client()
        client.force_login(person)
        return client

    return sign_in


def list_pages(talk: Session) -> list[str]:
    """Return the addresses of lists and of rows that hold the secret."""
    rows = (
        talk,
        talk.messages.get(),
        talk.turns.get(),
        talk.revisions.get(),
        CompactionRun.objects.get(),
    )
    addresses = []
    for row in rows:
        name = f"admin:{row._meta.app_label}_{row._meta.model_name}"
        addresses.append(reverse(f"{name}_changelist"))
        addresses.append(reverse(f"{name}_change", args=[row.pk]))
    return addresses


@pytest.mark.parametrize("group", ["Support", "Auditor", "Operators"])
def test_a_ready_group_sees_numbers_and_states_and_no_words(
    staff: Staff, talk: Session, group: str
) -> None:
    client = staff(group)
    for address in list_pages(talk):
        answer = client.get(address)
        assert answer.status_code == 200, address
        assert SECRET not in answer.content.decode(), address
        assert str(talk.pk) in answer.content.decode(), address
    assert not AuditEntry.objects.filter(act__startswith="content.").exists()


@pytest.mark.parametrize(
    "query",
    ["?content__icontains=oak", "?content__startswith=the", "?session__title__contains=oak"],
)
def test_contents_cannot_be_guessed_by_a_lookup(staff: Staff, talk: Session, query: str) -> None:
    address = reverse("admin:chatcore_message_changelist")
    assert staff("Support").get(address + query).status_code in (302, 400)


def test_a_search_without_the_right_finds_no_words(staff: Staff, talk: Session) -> None:
    client = staff("Support")
    for name, word in (("session", "oak"), ("message", "oak")):
        page = client.get(reverse(f"admin:chatcore_{name}_changelist"), {"q": word})
        assert "0 " in page.content.decode() or name == "message"


def test_who_may_change_a_session_still_does_not_see_or_set_its_words(
    staff: Staff, talk: Session
) -> None:
    client = staff("Operators")
    address = reverse("admin:chatcore_session_change", args=[talk.pk])
    fields = {
        "title": "New",
        "system_prompt": "New",
        "tools": "null",
        "params": "{}",
        "pinned": "on",
    }
    assert client.post(address, fields | {"model": str(talk.model_id)}).status_code == 302
    talk.refresh_from_db()
    assert (talk.pinned, talk.title, talk.system_prompt) == (True, SECRET, SECRET)
    assert SECRET not in client.get("/admin/").content.decode()
    entry = AuditEntry.objects.get(act="admin.changed")
    assert (entry.object_id, SECRET in entry.detail) == (str(talk.pk), False)


def test_the_right_shows_the_words_and_notes_who_read_them(staff: Staff, talk: Session) -> None:
    client = staff("")
    for address in list_pages(talk):
        assert client.get(address).status_code == 200
    read = AuditEntry.objects.filter(act="content.read")
    assert {entry.object_type for entry in read} == {
        "chatcore.session",
        "chatcore.message",
        "chatcore.turn",
        "chatcore.contextrevision",
        "compaction.compactionrun",
    }
    assert AuditEntry.objects.filter(act="content.listed").count() == 5
    assert {entry.actor.username for entry in read if entry.actor} == {"root"}
    assert SECRET not in str(list(AuditEntry.objects.values()))


def test_reading_ones_own_words_is_nobodys_business(talk: Session, user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(user)
    client.get(reverse("admin:chatcore_message_change", args=[talk.messages.get().pk]))
    assert not AuditEntry.objects.filter(act="content.read").exists()


def test_an_action_is_noted_for_each_row(staff: Staff, talk: Session) -> None:
    staff("Operators").post(
        reverse("admin:chatcore_session_changelist"),
        {"action": "clear_summary", "_selected_action": [str(talk.pk)]},
    )
    entry = AuditEntry.objects.get(act="admin.clear_summary")
    assert (entry.object_type, entry.object_id) == ("chatcore.session", str(talk.pk))


def test_only_the_auditor_reads_the_log_and_nobody_changes_it(staff: Staff) -> None:
    audit.record("sign_out")
    entry = AuditEntry.objects.latest("pk")
    listed = reverse("admin:audit_auditentry_changelist")
    assert staff("Support").get(listed).status_code == 403
    auditor = staff("Auditor")
    assert auditor.get(listed).status_code == 200
    for name in ("change", "delete"):
        address = reverse(f"admin:audit_auditentry_{name}", args=[entry.pk])
        assert staff(f"no group, {name}").post(address, {"post": "yes"}).status_code in (302, 403)
        assert auditor.post(address, {"post": "yes"}).status_code == 403
    for act in (entry.save, entry.delete, AuditEntry.objects.all().delete):
        with pytest.raises(TypeError):
            act()
    with pytest.raises(TypeError):
        AuditEntry.objects.update(act="x")


def test_what_happens_to_an_account_is_in_the_log(user: User, client: Client) -> None:
    def post(password: str) -> Any:
        fields = {"username": "alice", "password": password}
        return Client(REMOTE_ADDR="192.0.2.7").post("/login/", fields)

    post("wrong password")
    post("alice's password")
    create_token(user, name="a script", expiry=None)
    user.set_password("another password of hers")
    user.save()
    rows = AuditEntry.objects.order_by("pk").values_list("act", "object_id", "address")
    assert list(rows) == [
        ("sign_in.failed", str(user.pk), "192.0.2.7"),
        ("sign_in.succeeded", str(user.pk), "192.0.2.7"),
        ("token.made", str(user.pk), ""),
        ("password.changed", str(user.pk), ""),
    ]
    assert "wrong password" not in str(list(AuditEntry.objects.values()))
    assert not AuthToken.objects.exists()


def test_entries_go_when_their_time_is_over(settings: Any, db: None) -> None:
    settings.AUDIT_DAYS = 30
    with time_machine.travel(timezone.now() - timedelta(days=31)):
        audit.record("old")
    audit.record("new")
    assert prune_entries() == 1
    assert AuditEntry.objects.get().act == "new"


@pytest.mark.parametrize("may_change_groups", [False, True])
def test_an_invitation_gives_only_groups_that_the_inviter_may_give(
    client: Client, may_change_groups: bool
) -> None:
    own, strong = Group.objects.create(name="Own"), Group.objects.create(name="Superpowers")
    person = User.objects.create_user("inviter", is_staff=True)
    person.groups.add(own)
    names = ["add_invitation", "view_invitation", *["change_group"] * may_change_groups]
    person.user_permissions.set(Permission.objects.filter(codename__in=names))
    client.force_login(person)
    form = {"note": "Carol", "days": 7}
    address = reverse("admin:invitations_invitation_add")
    assert ("Superpowers" in client.get(address).content.decode()) == may_change_groups
    answer = client.post(address, form | {"groups": [strong.pk]})
    assert answer.status_code == (302 if may_change_groups else 200)
    assert client.post(address, form | {"groups": [own.pk]}).status_code == 302
    given = {group.name for row in Invitation.objects.all() for group in row.groups.all()}
    assert given == ({"Own", "Superpowers"} if may_change_groups else {"Own"})
