"""The operators' page of a stored response: what its client reads, and where it is stored."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from openai import OpenAI

from chatcore.contrib.compat.models import StoredResponse
from chatcore.models import Session
from tests.support.open_responses import MODEL
from tests.support.openai_client import client
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

__all__ = ["client"]

pytestmark = pytest.mark.django_db(transaction=True)
HOSTILE = "<script>alert('x')</script>"


@pytest.fixture
def operator(db: None) -> Client:
    browser = Client()
    browser.force_login(User.objects.create_superuser("root"))
    return browser


def open_page(operator: Client, name: str, *args: Any, **query: Any) -> str:
    response = operator.get(reverse(f"admin:{name}", args=args), query)
    assert response.status_code == 200
    return response.content.decode()


def test_a_session_leads_to_its_responses(
    client: OpenAI, operator: Client, scripted: ScriptedModel
) -> None:
    scripted.default = Reply(text=HOSTILE)
    first = client.responses.create(model=MODEL, input="q1", instructions=HOSTILE)
    second = client.responses.create(model=MODEL, input="q2", previous_response_id=first.id)
    other = client.responses.create(model=MODEL, input="elsewhere")
    record = StoredResponse.objects.get(previous__isnull=False)
    session = record.session
    assert Session.objects.count() == 2
    address = reverse("admin:compat_storedresponse_changelist")
    link = f"{address}?session__id__exact={session.pk}"
    assert link in open_page(operator, "chatcore_session_change", session.pk)

    listed = open_page(
        operator, "compat_storedresponse_changelist", session__id__exact=str(session.pk)
    )
    assert first.id in listed
    assert second.id in listed
    assert other.id not in listed

    page = open_page(operator, "compat_storedresponse_change", record.pk)
    rows: list[Any] = [session, record.turn, record.previous]
    for row in rows:
        assert f"/{row.pk}/change/" in page
    assert "&lt;script&gt;" in page
    assert HOSTILE not in page


def test_it_changes_nothing(client: OpenAI, operator: Client) -> None:
    client.responses.create(model=MODEL, input="q1")
    record = StoredResponse.objects.get()
    address = reverse("admin:compat_storedresponse_change", args=[record.pk])
    assert operator.post(address, {"input_seq": 9}).status_code == 403
    assert operator.post(address.replace("change", "delete"), {"post": "yes"}).status_code == 403
