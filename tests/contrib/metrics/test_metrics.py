"""What operators can watch: counts in Prometheus's form, of all processes of a machine."""

import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from rest_framework.test import APIClient

from chatcore.contrib.webhooks.models import Webhook, WebhookDelivery
from chatcore.models import Session
from models_registry.models import AiModel
from tests.support.compaction_sessions import fill_session, summarize_or_chat
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

MODEL = {"model": "scripted/test-model"}
COUNT_ELSEWHERE = """
import os, django
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
django.setup()
from django.conf import settings
from pathlib import Path
settings.METRICS_DIR = Path({folder!r})
from chatcore.base.metrics import counts
counts.count_run(policy="elsewhere", trigger="manual", outcome="applied", seconds=2.0,
                 tokens_before=1000, tokens_after=250)
counts.count_streams(7)
from chatcore.contrib.metrics.snapshots import snapshots
snapshots.write()
"""


class Scrape:
    """The samples of one answer of /metrics."""

    def __init__(self, client: Client, **headers: str) -> None:
        response = client.get("/metrics", headers=headers)
        assert response.status_code == 200
        self.text = response.content.decode()
        self.samples = {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(self.text)
            for sample in family.samples
        }

    def get(self, name: str, **labels: str) -> float:
        return self.samples.get((name, tuple(sorted(labels.items()))), 0.0)


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.METRICS_DIR = tmp_path / "metrics"
    return tmp_path / "metrics"


@pytest.mark.django_db(transaction=True)
def test_turns_tokens_and_first_words_are_counted_without_contents(
    client: Client, api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    AiModel.objects.update(input_price=2, cached_input_price=1, output_price=10)
    before = Scrape(client)
    scripted.script(
        Reply(text="A heron.", usage=(120, 30, 100)), Reply(status=401, text="No such key")
    )
    for content in ("Which bird stands there?", "And there?"):
        api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": content})
    after = Scrape(client)

    def count(name: str, **labels: str) -> float:
        return after.get(name, **MODEL, **labels) - before.get(name, **MODEL, **labels)

    assert count("chatcore_turns_total", outcome="completed") == 1
    assert count("chatcore_turns_total", outcome="failed") == 1
    assert count("chatcore_turn_failures_total", type="provider_auth") == 1
    assert count("chatcore_tokens_total", kind="input") == 120
    assert count("chatcore_tokens_total", kind="output") == 30
    assert count("chatcore_tokens_total", kind="cache_read") == 100
    assert count("chatcore_cost_total", purpose="answer") == pytest.approx(0.00044)
    assert count("chatcore_first_token_seconds_count") == 1
    assert count("chatcore_turn_seconds_count") == 2
    assert after.get("chatcore_database_up") == 1
    for word in ("heron", "bird", "alice", str(session.pk)):
        assert word not in after.text


@pytest.mark.django_db(transaction=True)
def test_runs_are_counted_by_outcome_and_policy(
    client: Client, api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    before = Scrape(client)
    api.post(f"/api/v1/sessions/{session.pk}/compact", {"wait": True})
    fill_session(session)
    scripted.default = summarize_or_chat()
    run = api.post(f"/api/v1/sessions/{session.pk}/compact", {"wait": True}).json()
    after = Scrape(client)

    def count(name: str, **labels: str) -> float:
        return after.get(name, **labels) - before.get(name, **labels)

    manual = {"policy": "oneclaw", "trigger": "manual"}
    assert count("chatcore_compaction_runs_total", outcome="skipped", **manual) == 1
    assert count("chatcore_compaction_runs_total", outcome="applied", **manual) == 1
    saved = count("chatcore_compaction_saved_tokens_total", policy="oneclaw")
    assert saved == run["tokens_saved"]
    assert count("chatcore_compaction_ratio_count", policy="oneclaw") == 1
    assert after.get("chatcore_compaction_queue_runs", status="queued") == 0


@pytest.mark.django_db
@pytest.mark.program
@pytest.mark.slow
def test_the_counts_of_all_processes_are_added_up_and_outlive_them(
    client: Client, folder: Path
) -> None:
    labels = {"policy": "elsewhere", "trigger": "manual", "outcome": "applied"}
    for number in (1, 2):
        code = COUNT_ELSEWHERE.format(folder=str(folder))
        subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
        scrape = Scrape(client)
        assert scrape.get("chatcore_compaction_runs_total", **labels) == number
        assert scrape.get("chatcore_compaction_saved_tokens_total", policy="elsewhere") == (
            750 * number
        )
    # What a dead process had open is closed, and its files are gone.
    assert scrape.get("chatcore_streams_open") == 0
    assert len(list(folder.glob("*.json"))) <= 2


@pytest.mark.django_db
def test_a_disk_that_takes_nothing_costs_no_answer(
    client: Client, settings: Any, tmp_path: Path
) -> None:
    (tmp_path / "a file").touch()
    settings.METRICS_DIR = tmp_path / "a file" / "metrics"
    assert "chatcore_database_up 1.0" in Scrape(client).text


@pytest.mark.django_db
def test_only_this_machine_or_who_has_the_token_may_read(client: Client, settings: Any) -> None:
    assert client.get("/metrics", REMOTE_ADDR="192.0.2.7").status_code == 403
    assert client.get("/metrics", headers={"X-Forwarded-For": "192.0.2.7"}).status_code == 403
    assert client.post("/metrics").status_code == 405
    settings.METRICS_TOKEN = "of Prometheus"
    assert client.get("/metrics").status_code == 403
    assert client.get("/metrics", headers={"Authorization": "Bearer wrong"}).status_code == 403
    Scrape(client, Authorization="Bearer of Prometheus")


def test_what_waits_for_webhooks_and_the_room_on_the_disk_are_there(
    client: Client, user: User
) -> None:
    webhook = Webhook.objects.create(owner=user, url="http://127.0.0.1:9/", events=[])
    hour_ago = timezone.now() - timedelta(hours=1)
    for status in ("pending", "pending", "failed"):
        WebhookDelivery.objects.create(
            webhook=webhook, event="turn.completed", payload={}, status=status, created_at=hour_ago
        )
    scrape = Scrape(client)
    assert scrape.get("chatcore_webhook_deliveries_waiting") == 2
    assert 3_600 <= scrape.get("chatcore_webhook_oldest_waiting_seconds") < 4_000
    assert scrape.get("chatcore_disk_free_bytes") > 0


@pytest.mark.django_db
def test_a_pool_of_connections_tells_how_much_of_it_is_used(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("Only PostgreSQL has a pool.")
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "pool", {"min_size": 1, "max_size": 3})
    pooled: Any = connection
    try:
        pooled.pool.open(wait=True)
        with pooled.pool.connection():
            assert Scrape(client).get("chatcore_database_pool", state="used") == 1
        assert Scrape(client).get("chatcore_database_pool", state="used") == 0
    finally:
        pooled.close_pool()
