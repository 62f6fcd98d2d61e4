"""What a request brought is let go of with its response, and does not wait for the collector."""

import gc
from collections.abc import Iterator

import httpx2
import pytest
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from rest_framework.request import Request

from chatcore.models import Attachment, Session
from tests.conftest import Live
from tests.support.event_streams import open_api_client
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
LARGE = b"A line of a log\n" * 70_000


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def count_kept() -> int:
    """Count the requests that are still there, and what holds the text of a large file.

    By their types: a weak proxy of an earlier test that is dead raises when it is asked its class.
    """
    kept = 0
    for each in gc.get_objects():
        if issubclass(type(each), Request):
            kept += 1
        elif issubclass(type(each), Attachment):
            kept += bool(each.text)
        elif issubclass(type(each), ContentFile):
            kept += not each.file.closed
    return kept


def upload(client: httpx2.Client, session: Session) -> None:
    response = client.post(
        f"/sessions/{session.pk}/attachments", files={"file": ("log.txt", LARGE, "text/plain")}
    )
    assert response.status_code == 201, response.text
    assert client.delete(f"/attachments/{response.json()['id']}").status_code == 204


def test_requests_and_their_files_go_without_the_collector(
    live: Live, user: User, no_collector: None
) -> None:
    session = Session.objects.create(owner=user)
    with open_api_client(live.url, user) as client:
        before = count_kept()
        for _ in range(3):
            upload(client, session)
            body = {"messages": [{"role": "user", "content": "Hi"}]}
            url = f"/sessions/{session.pk}/messages/import"
            assert client.post(url, json=body).status_code == 201
        wait_until(lambda: count_kept() <= before, what="the requests to go")
