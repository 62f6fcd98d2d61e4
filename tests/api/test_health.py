"""Liveness and readiness."""

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client


@pytest.mark.django_db
def test_a_living_process_says_so(client: Client) -> None:
    assert client.get("/livez").json() == {"status": "ok"}
    assert client.get("/livez/").status_code == 200


@pytest.mark.django_db
def test_a_ready_process_says_so(client: Client) -> None:
    assert client.get("/readyz").json() == {"status": "ok", "missing": []}


@pytest.mark.django_db(transaction=True)
def test_what_is_missing_is_named(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*args: object, **kwargs: object) -> None:
        raise ConnectionError("cache.internal:6379 refused")

    monkeypatch.setattr(cache, "set", away, raising=False)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE name = '0002_seed_the_catalog'")
    try:
        answer = client.get("/readyz")
    finally:
        from django.core.management import call_command

        call_command("migrate", fake=True, verbosity=0)
    assert (answer.status_code, answer.json()) == (
        503,
        {"status": "unavailable", "missing": ["migrations", "cache"]},
    )
