"""Erasing a person leaves no word of theirs in any table or file: 36 canaries are looked for."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.test import Client
from django.utils import timezone

from chatcore.accounts.tokens import create_token
from chatcore.accounts.user_erasure import erase_user
from chatcore.contrib.compat.models import StoredResponse
from chatcore.contrib.invitations.links import create_invitation
from chatcore.contrib.invitations.models import Invitation
from chatcore.contrib.sent_requests.models import SentText
from chatcore.contrib.sharing.models import Share
from chatcore.contrib.webhooks.models import Webhook, WebhookDelivery
from chatcore.files import output_store
from chatcore.models import (
    Attachment,
    ContextEdit,
    ContextRevision,
    IdempotencyKey,
    McpServer,
    Message,
    Project,
    ProjectFile,
    Session,
    SessionEvent,
    Turn,
)
from compaction.memory.models import LedgerLine, StandingRule, SummaryLeaf
from compaction.models import CompactionRun, ModelCall
from compaction.systems.lota.models import WorkingState
from tests.support.database import read_file

pytestmark = pytest.mark.django_db(transaction=True)
COUNT = 36
CANARIES = [f"canary{number:02}heron" for number in range(COUNT)]


def fill(person: User, staff: User, session: Session) -> None:
    """Write a canary into each place that has words of a person, or about one."""
    words = iter(CANARIES)
    person.username, person.first_name, person.last_name = next(words), next(words), next(words)
    person.email = f"{next(words)}@example.com"
    person.set_password("alice's password")
    person.save()
    second_address = f"{next(words)}@example.com"
    EmailAddress.objects.create(user=person, email=person.email, verified=True)
    EmailAddress.objects.create(user=person, email=second_address, verified=False)
    _fail_to_sign_in(person, second_address, next(words))
    create_token(person, name=next(words), expiry=None)
    SocialAccount.objects.create(
        user=person, provider="oidc", uid="1", extra_data={"name": next(words)}
    )
    create_invitation(made_by=staff, note=next(words))
    Invitation.objects.update(used_by=person)
    _fill_session(session, words)
    project = Project.objects.create(
        owner=person, name=next(words), instructions=next(words), rules=[next(words)]
    )
    content = next(words)
    stored = output_store.save_bytes(content.encode())
    ProjectFile.objects.create(
        project=project, name="a.txt", size=5, store_name=stored.name, sent_chars=5, text=content
    )
    hook = Webhook.objects.create(owner=person, url=f"https://example.com/{next(words)}")
    WebhookDelivery.objects.create(webhook=hook, event="x", payload={"text": next(words)})
    McpServer.objects.create(owner=person, name="own", url=f"https://a.test/{next(words)}")
    IdempotencyKey.objects.create(owner=person, key="k", payload_hash="x", body=next(words))
    StandingRule.objects.create(owner=person, kind="rule", text=next(words))
    session.title = next(words)
    session.save()
    for row in (session, project, EmailAddress.objects.get(email=second_address)):
        LogEntry.objects.log_actions(staff.pk, [row], CHANGE, change_message="Changed.")
    assert list(words) == []


def _fill_session(session: Session, words: Iterator[str]) -> None:
    now = timezone.now()
    session.system_prompt = next(words)
    turn = Turn.objects.create(
        session=session, status="completed", lease_until=now, error={"detail": next(words)}
    )
    message = Message.objects.create(
        session=session, turn=turn, seq=1, role="user", content=next(words), reasoning=next(words)
    )
    Attachment.objects.create(
        session=session,
        message=message,
        name=next(words),
        media_type="text/plain",
        size=5,
        data=next(words).encode(),
    )
    SessionEvent.objects.create(session=session, seq=1, name="x", data={"text": next(words)})
    ContextRevision.objects.create(
        session=session, version=1, summary=next(words), source="compaction"
    )
    ContextEdit.objects.create(
        session=session,
        message=message,
        kind="pruned",
        replacement=next(words),
        from_version=1,
    )
    SentText.objects.create(session=session, digest="d", text=next(words))
    StoredResponse.objects.create(session=session, request={"text": next(words)})
    Share.objects.create(
        owner=session.owner, session=session, title=next(words), digest="d", last_seq=1
    )
    run = CompactionRun.objects.create(
        session=session,
        owner=session.owner,
        trigger="manual",
        status="applied",
        policy="oneclaw",
        instructions=next(words),
    )
    ModelCall.objects.create(
        run=run, number=1, claim=1, kind="whole", part=1, attempt=1, reason=next(words)
    )
    LedgerLine.objects.create(session=session, kind="rule", text=next(words))
    SummaryLeaf.objects.create(
        session=session, kind="leaf", first_seq=1, last_seq=1, text=next(words), tokens=1
    )
    WorkingState.objects.create(session=session, state={}, memory_summary=next(words))


def _fail_to_sign_in(person: User, address: str, agent: str) -> None:
    """Sign in with wrong passwords, by name and by addresses; and once up to the second factor."""
    for name in (person.username, person.email.upper(), address.title()):
        fields = {"username": name, "password": "wrong"}
        Client(HTTP_USER_AGENT=agent).post("/login/", fields)
    factor = Authenticator.objects.create(user=person, type="totp", data={"secret": "x"})
    fields = {"username": person.username, "password": "alice's password"}
    answer = Client(HTTP_USER_AGENT=agent).post("/login/", fields)
    assert answer.headers["Location"].startswith("/account/second-factor/code/")
    factor.delete()
    Client(HTTP_USER_AGENT=agent).post("/login/", fields)


def find_canaries() -> dict[str, set[str]]:
    """Return where each canary is: in a row of any table, or in a file of the data folder."""
    places: dict[str, set[str]] = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            with contextlib.suppress(OperationalError):  # an index of words has no rows to read
                cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
                for row in cursor.fetchall():
                    _note(b" ".join(map(_to_bytes, row)), table, places)
    _read_browser_sessions(places)
    for path in Path(settings.DATA_DIR).rglob("*"):
        if path.is_file():
            _note(read_file(path), path.name, places)
    return places


def _read_browser_sessions(places: dict[str, set[str]]) -> None:
    from django.contrib.sessions.models import Session as BrowserSession

    for row in BrowserSession.objects.all():
        _note(str(row.get_decoded()).encode(), "session data", places)


def _to_bytes(value: object) -> bytes:
    return bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode()


def _note(content: bytes, place: str, places: dict[str, set[str]]) -> None:
    content = content.lower()
    for canary in CANARIES:
        if canary.encode() in content:
            places.setdefault(canary, set()).add(place)


def test_no_canary_stays_in_a_table_or_a_file(session: Session, user: User) -> None:
    staff = User.objects.create_superuser("root")
    fill(user, staff, session)
    before = find_canaries()
    assert sorted(before) == CANARIES
    everywhere = {place for places in before.values() for place in places}
    assert {"axes_accessattempt", "django_admin_log", "session data"} <= everywhere
    erasure = erase_user(user)
    assert erasure.rows_left == {}
    assert erasure.rows["axes.accessattempt"] >= 2
    assert find_canaries() == {}
    assert User.objects.filter(pk=staff.pk).exists()
