"""A session is deleted while others change it: each gets its answer, a 404 or a 409, none a 500."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import User
from knox.models import AuthToken

from chatcore.contrib.prompts.models import MAX_PROMPTS, Prompt
from models_registry.models import AiModel
from tests.conftest import Live

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS = 6
IMPORT_BODY = {"messages": [{"role": "user", "content": "Hi"}]}
# (method, what stands behind the session's address, body)
CHANGES: list[tuple[str, str, dict[str, Any] | None]] = [
    ("PATCH", "", {"title": "One"}),
    ("PATCH", "", {"title": "Two"}),
    ("POST", "/messages", {"content": "Hello"}),
    ("DELETE", "", None),
    ("POST", "/cancel", None),
    ("PATCH", "", {"title": "Three"}),
    ("POST", "/messages/import", IMPORT_BODY),
    ("POST", "/compact", {"wait": True}),
    ("GET", "/context", None),
    ("DELETE", "/summary", None),
    ("DELETE", "", None),
    ("PATCH", "/state", {"state": {"tasks": ["Tea."]}}),
]


def test_a_deletion_between_changes_is_never_a_500(live: Live, user: User, model: AiModel) -> None:
    _, token = AuthToken.objects.create(user)
    headers = {"Authorization": f"Bearer {token}"}
    with (
        httpx2.Client(base_url=f"{live.url}/api/v1", headers=headers, timeout=60) as client,
        ThreadPoolExecutor(5) as pool,
    ):
        for _ in range(ROUNDS):
            address = f"/sessions/{client.post('/sessions', json={}).json()['id']}"

            def act(
                method: str, place: str, body: dict[str, Any] | None, address: str = address
            ) -> httpx2.Response:
                return client.request(method, address + place, json=body)

            answers = [
                future.result()
                for future in [pool.submit(act, *arguments) for arguments in CHANGES]
            ]
            wrong = [
                (answer.request.method, answer.url.path, answer.text)
                for answer in answers
                if answer.status_code not in (200, 201, 204, 404, 409)
            ]
            assert wrong == []
            assert client.get(address).status_code == 404


def test_a_limit_of_a_person_holds_for_requests_at_once(live: Live, user: User) -> None:
    rows = [Prompt(owner=user, name=f"n{number}", text="x") for number in range(MAX_PROMPTS - 1)]
    Prompt.objects.bulk_create(rows)
    headers = {"Authorization": f"Bearer {AuthToken.objects.create(user)[1]}"}
    address = f"{live.url}/api/v1/prompts"
    with httpx2.Client(headers=headers, timeout=60) as client, ThreadPoolExecutor(12) as pool:
        bodies = [{"name": f"more{number}", "text": "x"} for number in range(12)]
        answers = list(pool.map(lambda body: client.post(address, json=body), bodies))
    assert sorted(answer.status_code for answer in answers) == [201, *[400] * 11]
