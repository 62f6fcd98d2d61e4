"""The database is read only: people can read, and are told calmly that nothing was stored."""

import pytest
from rest_framework.test import APIClient

from chatcore.base.rest.commits import NOTHING_STORED
from chatcore.models import Message, Session
from tests.support.outages import forbid_writing

pytestmark = pytest.mark.django_db(transaction=True)


def test_reading_goes_on_and_a_message_is_503_and_not_stored(
    api: APIClient, session: Session
) -> None:
    url = f"/api/v1/sessions/{session.pk}/messages"
    with forbid_writing():
        assert api.get(url).status_code == 200
        refusal = api.post(url, {"content": "Hi"})
    problem = refusal.json()
    assert (refusal.status_code, problem["type"]) == (503, "database_unavailable")
    assert NOTHING_STORED in problem["detail"]
    assert refusal["Retry-After"]
    assert not Message.objects.exists()
    assert api.post(url, {"content": "Hi"}).status_code == 201
