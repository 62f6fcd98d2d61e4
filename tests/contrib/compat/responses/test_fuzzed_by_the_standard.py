"""Fuzz every route by the published standard: no 5xx, and nothing that it does not describe."""

from collections import Counter
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import User
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.openai_client import create_key
from tests.support.scripted_model import ScriptedModel
from tests.support.standard_fuzzer import Fuzzer, answer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def client(
    live: Live, user: User, model: AiModel, scripted: ScriptedModel, settings: Any
) -> httpx2.Client:
    scripted.default = answer
    limits = {"TURNS_PER_MINUTE": 1_000_000, "COMPACTIONS_PER_MINUTE": 1_000_000}
    settings.CHATCORE = {**settings.CHATCORE, **limits}
    return httpx2.Client(
        base_url=f"{live.url}/v1",
        headers={"Authorization": f"Bearer {create_key(user)}"},
        timeout=60,
    )


def fuzz(client: httpx2.Client, count: int) -> Counter[int]:
    """Send `count` requests and return how many had which status."""
    fuzzer = Fuzzer(client)

    # Requests name what earlier ones created, so an example cannot be tried again, or made smaller.
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.data())
    def send(data: DataObject) -> None:
        fuzzer.send(data.draw)

    with client:
        fuzzer.begin()
        send()
    print(fuzzer.statuses)
    return fuzzer.statuses


@pytest.mark.slow
@pytest.mark.heavy
def test_fifty_requests_find_nothing(client: httpx2.Client) -> None:
    assert fuzz(client, 50)[200] > 5


@pytest.mark.slow
def test_three_thousand_requests_find_nothing(client: httpx2.Client) -> None:
    statuses = fuzz(client, 3000)
    assert sum(statuses.values()) >= 3000
    assert statuses[200] > 600  # far fewer than chance gives: enough for what follows them
