"""Links to chats: what anybody sees under one, what nobody sees, and when it ends."""

from datetime import timedelta
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from chatcore.contrib.audit.models import AuditEntry
from chatcore.contrib.holds.models import Hold
from chatcore.contrib.sharing.models import Share
from chatcore.files import intake
from chatcore.models import Attachment, Message, Session
from chatcore.sessions.deletion import delete_session
from chatcore.turns.deletion import delete_message
from tests.conftest import Live
from tests.support.browsing import store_exchange
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def talk(session: Session) -> Session:
    """A question with a file, an answer that was superseded, and one with a tool call."""
    store_exchange(session, "Where is the key?", "Under the stone.")
    Message.objects.filter(session=session, seq=2).update(branch=session.pk, branch_after=1)
    calls = [{"id": "c1", "name": "look_up", "arguments": '{"at": "the door"}'}]
    Message.objects.create(
        session=session, seq=3, role="assistant", content="Under the mat.", tool_calls=calls
    )
    Message.objects.create(
        session=session, seq=4, role="tool", tool_call_id="c1", content="A mat is there."
    )
    file = intake.store_file(session, name="plan.txt", data=b"The plan", is_pending=False)
    Attachment.objects.filter(pk=file.pk).update(message=session.messages.get(seq=1))
    Session.objects.filter(pk=session.pk).update(
        title="The key", last_seq=4, message_count=3, system_prompt="Be secretive."
    )
    session.refresh_from_db()
    return session


def share(api: APIClient, session: Session, **choices: Any) -> str:
    answer = api.post(f"/api/v1/sessions/{session.pk}/shares", choices, format="json")
    assert answer.status_code == 201, answer.content
    return str(answer.json()["url"])


def read(live: Live, url: str) -> httpx2.Response:
    return httpx2.get(f"{live.url}{url}", timeout=PATIENCE_SECONDS)


def test_anybody_reads_the_snapshot_and_nothing_else(
    live: Live, api: APIClient, talk: Session
) -> None:
    url = share(api, talk)
    page = read(live, url)
    assert page.status_code == 200
    for words in ("Where is the key?", "Under the mat.", "The key"):
        assert words in page.text
    for words in ("the stone", "look_up", "the door", "A mat is", "plan.txt", "secretive", "alice"):
        assert words not in page.text
    policy = page.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; ")
    assert "unsafe" not in policy
    assert page.headers["Referrer-Policy"] == "no-referrer"
    assert page.headers["X-Robots-Tag"].startswith("noindex")
    assert page.headers["Cache-Control"] == "no-store"
    assert '<meta name="robots" content="noindex' in page.text
    assert url.split("/")[2] not in str(Share.objects.values().get())


@pytest.mark.parametrize("policy", ["oneclaw", "chatcore"])
def test_a_compacted_chat_shows_its_messages_and_not_its_summary(
    live: Live, api: APIClient, full: Session, policy: str
) -> None:
    Session.objects.filter(pk=full.pk).update(policy=policy)
    run = api.post(f"/api/v1/sessions/{full.pk}/compact", {"wait": True}).json()
    assert run["status"] == "applied", run
    page = read(live, share(api, full))
    assert "0001 lisbon trip" in page.text
    assert run["summary_after"][:60] not in page.text


def test_what_happens_later_is_not_shown_and_what_is_deleted_vanishes(
    live: Live, api: APIClient, talk: Session
) -> None:
    url = share(api, talk)
    Message.objects.create(session=talk, seq=5, role="user", content="My secret word.")
    Message.objects.filter(session=talk, seq=2).update(branch=None, branch_after=None)
    Session.objects.filter(pk=talk.pk).update(title="Secret words", last_seq=5, message_count=5)
    text = read(live, url).text
    assert "Under the mat." in text
    for words in ("secret word", "Secret words", "the stone"):
        assert words not in text
    delete_message(talk.messages.get(seq=1))
    text = read(live, url).text
    assert "Where is the key?" not in text
    assert "Under the mat." in text


def test_a_title_that_goes_with_its_message_goes_from_the_links_too(
    api: APIClient, session: Session
) -> None:
    store_exchange(session, "Where is the key?", "Under the stone.")
    Session.objects.filter(pk=session.pk).update(title="Where is the key?")
    share(api, session)
    delete_message(session.messages.get(seq=1))
    assert "key" not in str(Share.objects.values())


def test_tool_calls_and_files_are_shown_when_the_owner_says_so(
    live: Live, api: APIClient, talk: Session
) -> None:
    file = Attachment.objects.get()
    closed, opened = share(api, talk), share(api, talk, with_tools=True, with_files=True)
    text = read(live, opened).text
    for words in ("look_up", "the door", "A mat is there.", "plan.txt"):
        assert words in text
    answer = read(live, f"{opened}files/{file.pk}/")
    assert answer.text == "The plan"
    assert answer.headers["Content-Disposition"].startswith("attachment")
    assert "sandbox" in answer.headers["Content-Security-Policy"]
    assert read(live, f"{closed}files/{file.pk}/").status_code == 404
    late = Message.objects.create(session=talk, seq=5, role="user", content="Later")
    Attachment.objects.filter(pk=file.pk).update(message=late)
    assert read(live, f"{opened}files/{file.pk}/").status_code == 404


def test_a_link_ends(live: Live, api: APIClient, talk: Session, settings: Any) -> None:
    url = share(api, talk, expires_in_days=1)
    assert read(live, url).status_code == 200
    assert read(live, f"{url[:-2]}/").status_code == 404
    owner = User.objects.filter(pk=talk.owner_id)
    hold = Hold.objects.create(user=talk.owner, reason="A court asks.")
    assert read(live, url).status_code == 404
    answer = api.post(f"/api/v1/sessions/{talk.pk}/shares", {}, format="json")
    assert answer.status_code == 409
    Hold.objects.filter(pk=hold.pk).update(ended_at=timezone.now())
    assert read(live, url).status_code == 200
    owner.update(is_active=False)
    assert read(live, url).status_code == 404
    owner.update(is_active=True)
    settings.CHATCORE = {**settings.CHATCORE, "SHARING": False}
    assert read(live, url).status_code == 404
    answer = api.post(f"/api/v1/sessions/{talk.pk}/shares", {}, format="json")
    assert (answer.status_code, answer.json()["detail"]) == (409, "Sharing is off on this server.")
    settings.CHATCORE = {**settings.CHATCORE, "SHARING": True}
    Share.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert read(live, url).status_code == 404
    Share.objects.update(expires_at=None)
    assert read(live, url).status_code == 200
    delete_session(talk.pk)
    assert read(live, url).status_code == 404
    assert not Share.objects.exists()


def test_the_owner_lists_and_revokes_links_and_the_log_knows(
    live: Live, api: APIClient, talk: Session
) -> None:
    url = share(api, talk)
    [row] = api.get("/api/v1/shares").json()["results"]
    assert (row["session"], row["last_seq"], row["with_files"]) == (str(talk.pk), 4, False)
    assert "url" not in row
    assert api.delete(f"/api/v1/shares/{row['id']}").status_code == 204
    assert api.delete(f"/api/v1/shares/{row['id']}").status_code == 404
    assert api.get("/api/v1/shares").json()["results"] == []
    assert read(live, url).status_code == 404
    entries = AuditEntry.objects.filter(act__startswith="share.").order_by("pk")
    assert [(entry.act, entry.object_id, entry.detail) for entry in entries] == [
        ("share.made", str(talk.pk), row["id"]),
        ("share.revoked", str(talk.pk), row["id"]),
    ]


def test_the_page_shows_a_link_again_unless_another_key_made_it(
    api: APIClient, talk: Session, settings: Any
) -> None:
    url = share(api, talk)
    pages = APIClient()
    pages.force_login(talk.owner)
    for path in (f"/c/{talk.pk}/share/", "/settings/"):
        assert f"http://testserver{url}</code>" in pages.get(path).content.decode()
    settings.SECRET_KEY = "another key of this server, as long as it has to be"
    pages.force_login(talk.owner)
    page = pages.get("/settings/").content.decode()
    assert "made " in page
    assert "/s/" not in page


def test_an_empty_chat_is_not_shared(api: APIClient, session: Session) -> None:
    answer = api.post(f"/api/v1/sessions/{session.pk}/shares", {}, format="json")
    assert answer.status_code == 409


def test_pages_of_links_are_for_their_owners(talk: Session) -> None:
    row = Share.objects.create(
        owner=talk.owner, session=talk, digest="x", last_seq=4, spans=[[1, 4]]
    )
    mallory = APIClient()
    mallory.force_login(User.objects.create_user("mallory"))
    assert mallory.get(f"/c/{talk.pk}/share/").status_code == 404
    assert mallory.post(f"/c/{talk.pk}/share/new/").status_code == 404
    assert mallory.post(f"/shares/{row.pk}/revoke/").status_code == 404
    assert mallory.get(f"/c/{talk.pk}/print/").status_code == 404
    assert APIClient().get(f"/c/{talk.pk}/print/").status_code == 302
