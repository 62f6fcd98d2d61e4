"""Liveness and readiness."""

from datetime import timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.cache import cache
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.utils import timezone

from chatcore.models import ServingProcess, Session
from chatcore.serving import processes
from compaction.models import CompactionRun
from models_registry.models import Provider


@pytest.mark.django_db
def test_a_living_process_says_so(client: Client) -> None:
    assert client.get("/livez").json() == {"status": "ok"}
    assert client.get("/livez/").status_code == 200


@pytest.mark.django_db
def test_a_ready_process_says_so(client: Client) -> None:
    assert client.get("/readyz").json() == {
        "status": "ok",
        "missing": [],
        "workers": 0,
        "queue": {"queued": 0, "running": 0, "oldest_seconds": 0.0},
        "warnings": ["no worker lives"],
    }


@pytest.mark.django_db
def test_workers_and_what_waits_for_them_are_counted(client: Client, session: Session) -> None:
    worker, hour = ServingProcess.Kind.WORKER, timedelta(hours=1)
    processes.record_process(worker, "machine:1")
    processes.record_process(worker, "machine:2")
    processes.record_process(worker, "machine:2")
    processes.record_process(ServingProcess.Kind.WEB, "machine:3")
    ServingProcess.objects.create(name="gone:1", kind=worker, seen_at=timezone.now() - hour)
    long_ago = timezone.now() - timedelta(minutes=10)
    CompactionRun.objects.create(session_id=session.pk, policy="oneclaw", created_at=long_ago)
    report = client.get("/readyz").json()
    assert (report["workers"], report["queue"]["queued"]) == (2, 1)
    assert report["queue"]["oldest_seconds"] >= 600
    assert len(report["warnings"]) == 1
    assert report["warnings"][0].startswith("a compaction has waited for ")


@pytest.mark.django_db(transaction=True)
def test_a_cache_that_is_away_is_a_warning(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*args: object, **kwargs: object) -> None:
        raise ConnectionError("cache.internal:6379 refused")

    monkeypatch.setattr(cache, "set", away, raising=False)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["missing"]) == (200, [])
    [warning] = [line for line in answer.json()["warnings"] if line.startswith("cache")]
    assert "internal" not in warning


@pytest.mark.django_db(transaction=True)
def test_what_is_missing_is_named(client: Client) -> None:
    graph = MigrationLoader(connection).graph
    last = next(key for key in graph.leaf_nodes() if not graph.node_map[key].children)
    MigrationRecorder(connection).record_unapplied(*last)
    try:
        answer = client.get("/readyz")
    finally:
        from django.core.management import call_command

        call_command("migrate", fake=True, verbosity=0)
    assert (answer.status_code, answer.json()) == (
        503,
        {"status": "unavailable", "missing": ["migrations"]},
    )


@pytest.mark.django_db
def test_a_key_that_cannot_be_opened_is_named(
    client: Client, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("acme", "other"):
        Provider.objects.create(name=name, protocol="openai", api_key="sk-x")  # type: ignore[misc]
    first_keys = settings.CHATCORE["KEY_ENCRYPTION_KEYS"]
    settings.CHATCORE = {
        **settings.CHATCORE,
        "KEY_ENCRYPTION_KEYS": [Fernet.generate_key().decode()],
    }
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()) == (
        503,
        {
            "status": "unavailable",
            "missing": ["encryption key"],
            "unreadable_keys": ["acme", "other"],
        },
    )
    Provider.objects.get(name="other").delete()
    Provider.objects.create(name="other", protocol="openai", api_key="sk-x")  # type: ignore[misc]
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["unreadable_keys"]) == (200, ["acme"])
    keys = [*settings.CHATCORE["KEY_ENCRYPTION_KEYS"], *first_keys]
    settings.CHATCORE = {**settings.CHATCORE, "KEY_ENCRYPTION_KEYS": keys}
    assert client.get("/readyz").json()["status"] == "ok"
    assert "django.request" not in {record.name for record in caplog.records}, "one a second"
