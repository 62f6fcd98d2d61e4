"""The owner beside the session: whatever stores a row writes it, and `verify` compares it."""

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from chatcore.models import Message, Session, SessionEvent, Turn
from chatcore.sessions import verification
from chatcore.turns.forks import fork_session
from tests.support.compaction_sessions import say
from tests.support.scripted_model import ScriptedModel

pytestmark = pytest.mark.django_db(transaction=True)


def list_owners(session: Session) -> set[int | None]:
    rows = (session.messages, session.turns, session.events)
    return {owner for each in rows for owner in each.values_list("owner_id", flat=True)}


def test_every_way_in_writes_the_owner(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    say(session, "Hello?")
    url = f"/api/v1/sessions/{session.pk}"
    imported = {"messages": [{"role": "user", "content": "Tea?"}]}
    assert api.post(f"{url}/messages/import", imported).status_code == 201
    assert list_owners(session) == {session.owner_id}
    fork = fork_session(session.messages.latest("seq"))
    assert list_owners(fork) == {session.owner_id}


def test_rows_of_sessions_that_are_not_loaded_get_their_owners(session: Session) -> None:
    other = Session.objects.create(owner=User.objects.create(username="bob"))
    rows = [Message(session_id=each.pk, seq=1, role="user") for each in (session, other)]
    Message.objects.bulk_create(rows)
    Message.objects.create(session_id=other.pk, seq=2, role="user")
    assert list_owners(session) == {session.owner_id}
    assert list_owners(other) == {other.owner_id}


@pytest.mark.parametrize("kind", [Message, Turn, SessionEvent])
def test_another_owner_than_the_sessions_is_told(
    session: Session, scripted: ScriptedModel, kind: type[Message | Turn | SessionEvent]
) -> None:
    say(session, "Hello?")
    session.refresh_from_db()
    assert not list(verification.find_violations(session))
    kind._default_manager.filter(session=session).update(owner_id=session.owner_id + 1)
    [violation] = verification.find_violations(session)
    assert "name another owner" in violation
