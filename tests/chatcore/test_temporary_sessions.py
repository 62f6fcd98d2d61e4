"""Temporary sessions: in no list and no search, deleted by themselves unless somebody keeps one."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from chatcore.contrib.holds.models import Hold
from chatcore.models import Message, Session
from chatcore.sessions.retention import delete_unused_sessions
from chatcore.turns.forks import fork_session

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def temporary(api: APIClient) -> Session:
    """A temporary session with a message, last used 25 hours ago."""
    answer = api.post("/api/v1/sessions", {"title": "Herons", "temporary": True}, format="json")
    assert answer.json()["temporary"] is True
    session = Session.objects.get(pk=answer.json()["id"])
    Message.objects.create(session=session, seq=1, role="user", content="A heron on a lake.")
    a_day_ago = timezone.now() - timedelta(hours=25)
    Session.objects.filter(pk=session.pk).update(last_seq=1, message_count=1, updated_at=a_day_ago)
    session.refresh_from_db()
    return session


def test_it_is_in_no_list_and_no_search_but_its_own(
    temporary: Session, user: User, api: APIClient
) -> None:
    lasting = Session.objects.create(owner=user, title="Herons, too", last_seq=1)
    Message.objects.create(session=lasting, seq=1, role="user", content="A heron in the reeds.")
    listed = api.get("/api/v1/sessions").json()["results"]
    assert [row["id"] for row in listed] == [str(lasting.pk)]
    found = api.get("/api/v1/search", {"q": "heron"}).json()["results"]
    assert {hit["session"] for hit in found} == {str(lasting.pk)}
    assert api.get(f"/api/v1/sessions/{temporary.pk}").status_code == 200
    own = api.get(f"/api/v1/sessions/{temporary.pk}/search", {"q": "heron"}).json()["results"]
    assert len(own) == 1
    browser = APIClient()
    browser.force_login(user)
    for address in ("/chats/", "/search/?q=heron", "/chats/?q=Herons", "/search/?q="):
        page = browser.get(address).content.decode()
        assert str(temporary.pk) not in page, address
    assert str(lasting.pk) in browser.get("/search/?q=heron").content.decode()


def test_it_is_deleted_some_hours_after_its_last_use(temporary: Session, user: User) -> None:
    used = Session.objects.create(owner=user, temporary=True)
    lasting = Session.objects.create(owner=user)
    Session.objects.filter(pk=lasting.pk).update(updated_at=temporary.updated_at)
    hold = Hold.objects.create(user=user, reason="A case.")
    assert delete_unused_sessions() == 0
    Hold.objects.filter(pk=hold.pk).update(ended_at=timezone.now())
    assert delete_unused_sessions() == 1
    assert not Message.objects.filter(session=temporary.pk).exists()
    assert set(Session.all_objects.values_list("pk", flat=True)) == {used.pk, lasting.pk}


def test_it_may_be_kept_and_then_it_is_as_any_other(temporary: Session, api: APIClient) -> None:
    address = f"/api/v1/sessions/{temporary.pk}"
    assert api.patch(address, {"temporary": False}, format="json").status_code == 200
    assert api.patch(address, {"temporary": True}, format="json").status_code == 400
    assert len(api.get("/api/v1/sessions").json()["results"]) == 1
    Session.objects.update(updated_at=temporary.updated_at)
    assert delete_unused_sessions() == 0
    assert len(api.get("/api/v1/search", {"q": "heron"}).json()["results"]) == 1


def test_a_fork_of_it_is_temporary_too(temporary: Session) -> None:
    assert fork_session(temporary.messages.get()).temporary
