"""Query parameters: those that a route documents, and no other."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.test import Client
from rest_framework.request import Request
from rest_framework.test import APIClient, APIRequestFactory

from chatcore.base.rest import query_params
from chatcore.models import Session
from tests.support.route_matrix import MATRIX

pytestmark = pytest.mark.django_db
ID = "00000000-0000-4000-8000-000000000000"
SAMPLES = {"<uuid:": ID, "<int:": "1", "<str:": "abc", "<slug:": "abc"}


def list_addresses() -> list[tuple[str, str, Any]]:
    return [
        ("/" + "/".join(map(fill_in, route.split("/"))), method, body)
        for route, methods in MATRIX.items()
        for method, body in methods.items()
        if route.startswith("api/v1/")
    ]


def fill_in(part: str) -> str:
    return next((value for start, value in SAMPLES.items() if part.startswith(start)), part)


@pytest.mark.parametrize(("address", "method", "_body"), list_addresses())
def test_an_unknown_one_is_400_on_every_route_and_named(
    api: APIClient, address: str, method: str, _body: Any
) -> None:
    answer = api.generic(method, f"{address}?colour=blue&limt=3")
    assert answer.status_code == 400, answer.content
    errors = {error["field"]: error["detail"] for error in answer.json()["errors"]}
    assert errors == dict.fromkeys(("colour", "limt"), "There is no such parameter.")


def test_who_has_no_token_is_not_told_which_there_are(client: Client) -> None:
    assert client.get("/api/v1/sessions?colour=blue").status_code == 401


def test_those_of_the_document_are_taken(api: APIClient, session: Session) -> None:
    for query in ("q=tea&archived=false&pinned=0&external_id=x&limit=3", "limit=1&cursor="):
        assert api.get(f"/api/v1/sessions?{query}").status_code == 200
    place = f"/api/v1/sessions/{session.pk}"
    assert api.get(f"{place}/messages?order=desc&superseded=true&limit=2").status_code == 200
    assert api.get(f"{place}/ledger?status=current&kind=rule").status_code == 200
    assert api.get(f"{place}/compactions?status=applied").status_code == 200
    assert api.get(f"{place}/export?format=openai").status_code == 200
    assert api.get("/api/v1/search?q=tea&limit=2").status_code == 200
    assert api.head(f"{place}/events?after=0").status_code == 200


def test_a_list_without_pages_has_no_limit(api: APIClient) -> None:
    assert api.get("/api/v1/policies?limit=3").status_code == 400


def test_one_thread_at_a_time_asks_for_those_of_the_document(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_work = threading.Semaphore()
    overlaps: list[bool] = []

    def collect_names(*_: Any) -> set[str]:
        overlaps.append(not at_work.acquire(blocking=False))
        time.sleep(0.01)  # room for another thread
        at_work.release()
        return set()

    monkeypatch.setattr(query_params, "_collect_names", collect_names)
    monkeypatch.setattr(query_params, "_names_by_handler", {})
    views = [type(f"View{number}", (), {})() for number in range(4)]
    request = Request(APIRequestFactory().get("/api/v1/sessions"))
    with ThreadPoolExecutor(len(views)) as threads:
        list(threads.map(lambda view: query_params.list_parameter_names(view, request), views))
    assert overlaps == [False] * len(views)
