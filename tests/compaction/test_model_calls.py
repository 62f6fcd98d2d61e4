"""What was asked of the model in a run is stored with it, word for word, and goes in its time."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from chatcore.contrib.holds.models import Hold
from chatcore.models import Installation, Session
from compaction.models import CompactionRun, ModelCall
from compaction.runs import engine, retention
from models_registry.models import AiModel
from tests.support.compaction_sessions import (
    SUMMARY,
    fill_session,
    list_summary_calls,
    use_anthropic,
    use_policy,
)
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)

KEY = "sk-very-secret-key"


def keep_for(settings: Any, **days: int) -> None:
    settings.COMPACTION = {**settings.COMPACTION, **days}


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
def test_a_call_is_stored_as_it_went_without_the_key(
    session: Session, model: AiModel, scripted: ScriptedModel, protocol: str
) -> None:
    fill_session(session)
    if protocol == "anthropic":
        use_anthropic(session, scripted)
    provider = model.provider
    provider.refresh_from_db()
    provider.api_key = KEY
    provider.save()
    scripted.script(Reply(text=SUMMARY, usage=(7000, 40, 1000)))
    run = engine.compact_now(session.pk, trigger="manual")
    call = run.calls.get()
    [sent] = list_summary_calls(scripted)
    assert (call.request_text or "").encode() == sent.body
    assert KEY in str(sent.headers)
    assert KEY not in str(ModelCall.objects.values())
    assert call.answer_text == SUMMARY
    assert (call.kind, call.level, call.part, call.attempt, call.claim) == ("messages", 0, 1, 1, 1)
    assert (call.input_tokens, call.cached_tokens, call.output_tokens, call.finish) == (
        run.input_tokens,
        run.cached_tokens,
        run.output_tokens,
        "stop",
    )
    assert (call.refusal, call.reason, call.model) == ("", "", "scripted/test-model")
    assert call.seconds > 0


def test_each_attempt_says_why_its_answer_was_not_used(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session)
    use_policy(session, summary={"retries": 2})
    half = "The model breaks off in the middle of"
    scripted.script(
        Reply(text="xyzzy " * 200),
        Reply(chunks=half.split(" "), cut_after=3),
        Reply(text=SUMMARY),
    )
    run = engine.compact_now(session.pk, trigger="manual")
    assert run.status == "applied"
    calls = list(run.calls.all())
    assert [call.number for call in calls] == [1, 2, 3]
    assert [(call.part, call.attempt) for call in calls] == [(1, 1), (1, 2), (1, 3)]
    assert [call.refusal for call in calls] == ["nonsense", "no_answer", ""]
    assert all(call.reason for call in calls[:2])
    assert calls[1].answer_text == "Themodelbreaks"  # what had come
    assert run.provider_calls == 3


def test_parts_and_their_merge_make_levels(session: Session, scripted: ScriptedModel) -> None:
    fill_session(session, messages=40)
    use_policy(session, summary={"merging": "parts", "chunk_chars": 9_000})
    scripted.default = Reply(text=SUMMARY)
    run = engine.compact_now(session.pk, trigger="manual")
    assert run.status == "applied", run.reason
    levels = list(run.calls.values_list("kind", "level"))
    assert levels[0] == ("messages", 0)
    assert levels[-1] == ("merge", 1)
    assert levels == sorted(levels, key=lambda place: place[1])
    parts = list(run.calls.values_list("part", flat=True))
    assert parts == list(range(1, len(parts) + 1))


def test_a_deleted_message_takes_the_words_of_calls_with_it(
    full: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    engine.compact_now(full.pk, trigger="manual")
    message = full.messages.earliest("seq")
    assert api.delete(f"/api/v1/messages/{message.pk}").status_code == 204
    call = ModelCall.objects.get()
    assert (call.request, call.answer, call.reason) == (None, None, "")
    assert call.output_tokens > 0
    answer = api.get(f"/api/v1/compactions/{call.run_id}/calls/1").json()
    assert (answer["is_kept"], answer["request"], answer["answer"]) == (False, None, None)


def test_a_message_that_is_deleted_during_the_call_is_not_stored_with_it(
    full: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    message = full.messages.earliest("seq")

    def delete(_: dict[str, Any]) -> Reply:
        assert api.delete(f"/api/v1/messages/{message.pk}").status_code == 204
        connection.close()
        return Reply(text="xyzzy " * 200)  # which is refused, and the reason quotes it

    scripted.script(delete)
    run = engine.request_run(full.pk, trigger="manual")
    engine.execute_run(run.pk)
    assert ModelCall.objects.count() >= 2
    for call in ModelCall.objects.all():
        assert (call.request, call.answer, call.reason) == (None, None, "")


def test_calls_are_deleted_when_their_time_is_over_and_kept_on_hold(
    full: Session, user: User, settings: Any
) -> None:
    run = engine.compact_now(full.pk, trigger="manual")
    month_ago = timezone.now() - timedelta(days=31)
    ModelCall.objects.update(ended_at=month_ago)
    keep_for(settings, CALL_DAYS=0)
    assert retention.prune_records()
    assert ModelCall.objects.count() == 1
    keep_for(settings, CALL_DAYS=30)
    hold = Hold.objects.create(user=user, reason="A case.")
    assert retention.prune_records()
    assert ModelCall.objects.count() == 1
    hold.ended_at = timezone.now()
    hold.save()
    assert not retention.prune_records(seconds=0)
    assert ModelCall.objects.count() == 1
    assert retention.prune_records()
    assert ModelCall.objects.count() == 0
    assert CompactionRun.objects.get() == run


def test_runs_that_changed_nothing_are_deleted_if_the_operator_wants_it(
    full: Session, settings: Any
) -> None:
    applied = engine.compact_now(full.pk, trigger="manual")
    month_ago = timezone.now() - timedelta(days=31)
    skipped = engine.compact_now(full.pk, trigger="manual")
    CompactionRun.objects.update(created_at=month_ago)
    assert skipped.status == "skipped"
    retention.prune_records()
    assert CompactionRun.objects.count() == 2
    keep_for(settings, RUN_DAYS=30)
    retention.prune_records()
    assert CompactionRun.objects.get() == applied


def test_the_page_of_a_run_shows_its_policy_however_old_it_is(
    full: Session, admin_client: Client
) -> None:
    run = engine.compact_now(full.pk, trigger="manual")
    ten_years_ago = timezone.now() - timedelta(days=3_650)
    CompactionRun.objects.update(created_at=ten_years_ago, finished_at=ten_years_ago)
    Installation.load()
    Installation.objects.update(retention_since=ten_years_ago)
    assert retention.prune_records()
    page = admin_client.get(f"/admin/compaction/compactionrun/{run.pk}/change/").content.decode()
    _, _, policy = page.partition("Policy as it was")
    assert '"threshold"' in policy
    assert "0.85" in policy
    assert SUMMARY[:40] in page


def test_the_owner_reads_the_calls_over_rest(full: Session, api: APIClient) -> None:
    run = engine.compact_now(full.pk, trigger="manual")
    listing = api.get(f"/api/v1/compactions/{run.pk}/calls").json()
    [row] = listing["results"]
    assert (row["number"], row["kind"], row["is_kept"]) == (1, "messages", True)
    assert "request" not in row
    call = api.get(f"/api/v1/compactions/{run.pk}/calls/1").json()
    assert "<transcript>" in call["request"]
    assert call["answer"] == SUMMARY
    assert api.get(f"/api/v1/compactions/{run.pk}/calls/2").status_code == 404
