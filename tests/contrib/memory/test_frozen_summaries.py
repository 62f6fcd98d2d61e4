"""Frozen summaries: each span of messages is summarized once, and the texts are composed."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from chatcore.context import revisions
from chatcore.models import ContextRevision, Session
from chatcore.sessions.verification import find_violations
from chatcore.transfer.exporter import export_session
from chatcore.transfer.importer import import_session
from chatcore.transfer.reader import InvalidImport
from chatcore.turns import deletion, forks, versions
from compaction.core.budget import plan
from compaction.core.presets import PRESETS
from compaction.memory.models import LeafComposition, SummaryLeaf
from compaction.models import CompactionRun
from compaction.runs import engine
from tests.support.compaction_sessions import (
    PROTECTED_TOKENS,
    THRESHOLD,
    fill_session,
    list_summary_calls,
    read_prompt,
)
from tests.support.frozen_talk import add_facts, count_facts, keep_most, use_policy
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from textkit.calendar import describe_day

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def talk(session: Session, scripted: ScriptedModel) -> Session:
    """Return a session under `chatcore` with two segments."""
    scripted.default = keep_most
    use_policy(session, "chatcore")
    for _ in range(2):
        add_facts(session)
        compact(session)
    return session


def compact(session: Session, **options: Any) -> CompactionRun:
    run = engine.compact_now(session.pk, trigger="manual", **options)
    assert run.status == "applied", run.reason
    session.refresh_from_db()
    return run


def assert_sound(session: Session) -> None:
    session.refresh_from_db()
    with transaction.atomic():
        assert not list(find_violations(session))


def list_spans(session: Session) -> list[tuple[int, int]]:
    return list(
        SummaryLeaf.objects.filter(session=session)
        .order_by("first_seq", "pk")
        .values_list("first_seq", "last_seq")
    )


def read_summary(session: Session) -> str:
    session.refresh_from_db()
    return session.compacted_summary or ""


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.parametrize(("policy", "flat"), [("chatcore", True), ("oneclaw", False)])
def test_facts_survive_eight_cycles_with_a_summarizer_that_loses_a_fifth(
    session: Session, scripted: ScriptedModel, policy: str, flat: bool
) -> None:
    """Rewritten summaries keep 0.8 to the power of the calls; frozen ones 0.8.

    Of the few facts of the first two cycles, the share that a hash keeps says little.
    """
    scripted.default = keep_most
    use_policy(session, policy)
    facts_by_message: list[list[str]] = []
    shares = []
    for _ in range(8):
        facts_by_message += add_facts(session)
        compact(session)
        boundary = session.compact_boundary_seq or 0
        facts = [fact for facts in facts_by_message[: boundary - 1] for fact in facts]
        shares.append(count_facts(read_summary(session), facts) / len(facts))
    assert (min(shares[2:]) >= 0.75) is flat, shares
    assert flat or shares[-1] < 0.5


def test_each_span_is_summarized_once_and_alone(talk: Session, scripted: ScriptedModel) -> None:
    spans = list_spans(talk)
    assert spans[0][0] == 1
    assert spans[1][0] == spans[0][1] + 1
    assert spans[1][1] == (talk.compact_boundary_seq or 0) - 1
    assert len(list_summary_calls(scripted)) == 2
    second_prompt = read_prompt(scripted, 1)
    assert "summary of what came before" not in second_prompt
    assert f"Fact {spans[0][1]} 0" not in second_prompt
    summary = read_summary(talk)
    day = describe_day(timezone.localdate())
    assert summary.startswith(f"Messages 1–{spans[0][1]}, {day}: Fact 1 ")
    assert f"\n\nMessages {spans[1][0]}–{spans[1][1]}, {day}: Fact {spans[1][0]} " in summary


def test_a_span_that_was_summarized_is_not_sent_again_after_a_rewind(
    talk: Session, scripted: ScriptedModel
) -> None:
    before = read_summary(talk)
    engine.rewind_run(CompactionRun.objects.latest("created_at"))
    assert f"Messages {list_spans(talk)[1][0]}" not in read_summary(talk)
    run = compact(talk)
    assert (run.provider_calls, read_summary(talk)) == (0, before)
    assert len(list_summary_calls(scripted)) == 2
    assert len(list_spans(talk)) == 2


def test_after_a_reset_all_segments_serve_again(talk: Session, scripted: ScriptedModel) -> None:
    before = read_summary(talk)
    revisions.reset_context(talk.pk)
    assert compact(talk).provider_calls == 0
    assert read_summary(talk) == before


def test_other_instructions_write_a_segment_anew_from_its_messages(
    talk: Session, scripted: ScriptedModel
) -> None:
    engine.rewind_run(CompactionRun.objects.latest("created_at"))
    assert compact(talk, instructions="the racks").provider_calls == 1
    assert "Give special attention to: the racks" in read_prompt(scripted, 2)
    assert len(list_spans(talk)) == 3


def test_deleting_a_message_deletes_its_segment_and_spares_the_others(
    talk: Session, scripted: ScriptedModel
) -> None:
    first_span, second_span = list_spans(talk)
    fact = f"Fact 2 0 is {2 * 7919}."
    message = talk.messages.get(seq=2)
    deletion.delete_message(message)
    assert list_spans(talk) == [second_span]
    run = compact(talk)
    assert run.provider_calls == 1
    assert "Fact 1 0" in read_prompt(scripted, 2)
    assert f"Fact {second_span[0]} 0" not in read_prompt(scripted, 2)
    assert list_spans(talk) == [first_span, second_span]
    texts = [
        *SummaryLeaf.objects.values_list("text", flat=True),
        *(each.summary_after for each in CompactionRun.objects.all()),
        *(each.summary_before for each in CompactionRun.objects.all()),
        *ContextRevision.objects.filter(stale=False).values_list("summary", flat=True),
    ]
    assert not [text for text in texts if text and fact in text]
    assert_sound(talk)


def test_an_edited_message_has_its_span_summarized_anew(
    talk: Session, scripted: ScriptedModel
) -> None:
    first_span, _ = list_spans(talk)
    versions.edit_answer(talk.messages.get(seq=2), "Fact 2 9 is 424242. " + "and so on " * 200)
    add_facts(talk, messages=12)
    compact(talk)
    summary = read_summary(talk)
    assert "Fact 2 0" not in summary
    assert "Fact 2 9 is 424242." in read_prompt(scripted, 2)
    assert len(list_spans(talk)) > 2
    assert_sound(talk)
    assert first_span in list_spans(talk)  # for when the earlier version is brought back


def test_a_fork_has_the_segments_of_its_messages(talk: Session, scripted: ScriptedModel) -> None:
    first_span, second_span = list_spans(talk)
    fork = forks.fork_session(talk.messages.get(seq=second_span[0] + 1))
    assert list_spans(fork) == [first_span]
    assert read_summary(fork).startswith("Messages 1–")
    add_facts(fork)
    compact(fork)
    assert read_summary(fork).startswith(read_summary(talk).split("\n\n")[0])
    assert "text" not in SummaryLeaf.objects.filter(session=fork).values_list("kind", flat=True)
    assert list_spans(talk) == [first_span, second_span]


@pytest.mark.slow
def test_what_a_person_wrote_stands_first_word_for_word(
    talk: Session, scripted: ScriptedModel, api: APIClient
) -> None:
    text = "Ada keeps the racks.\n\n  Never use rack 7!  \nMessages 1–4: all wrong"
    reply = api.patch(f"/api/v1/sessions/{talk.pk}/summary", {"summary": text}, format="json")
    assert reply.status_code == 200
    boundary = talk.compact_boundary_seq
    for _ in range(2):
        add_facts(talk)
        compact(talk)
    stored_text = reply.json()["compacted_summary"]
    assert read_summary(talk).startswith(f"{stored_text}\n\nMessages {boundary}–")
    assert "Ada" not in read_prompt(scripted, -1)
    # Going back to before the edit brings the segments back that it replaced.
    revisions.rewind_context(talk.pk, to_version=2)
    compact(talk)
    assert read_summary(talk).startswith("Messages 1–")


def test_a_summary_that_another_policy_wrote_stands_as_it_is(
    session: Session, scripted: ScriptedModel
) -> None:
    scripted.default = keep_most
    add_facts(session)
    compact(session)
    earlier_summary = read_summary(session)
    use_policy(session, "chatcore")
    add_facts(session)
    compact(session)
    assert read_summary(session).startswith(f"{earlier_summary}\n\nMessages ")
    assert "summary of what came before" not in read_prompt(scripted, 1)


@pytest.mark.slow
def test_an_imported_session_has_the_segments_of_its_summary(
    talk: Session, scripted: ScriptedModel
) -> None:
    copy = import_session(talk.owner, json.loads(json.dumps(export_session(talk))))
    use_policy(copy, "chatcore")
    assert read_summary(copy) == read_summary(talk)
    assert list_spans(copy) == list_spans(talk)
    add_facts(copy)
    compact(copy)
    assert "text" not in SummaryLeaf.objects.filter(session=copy).values_list("kind", flat=True)
    assert read_summary(copy).startswith(read_summary(talk).split("\n\n")[0])
    revisions.reset_context(copy.pk)
    copy.refresh_from_db()
    assert compact(copy).provider_calls <= 1, "spans with a segment are not sent again"
    assert_sound(copy)


def test_a_session_without_segments_goes_on_from_its_summary(
    talk: Session, scripted: ScriptedModel
) -> None:
    copy = import_session(talk.owner, export_session(talk) | {"leaves": []})
    use_policy(copy, "chatcore")
    add_facts(copy)
    compact(copy)
    assert read_summary(copy).startswith(f"{read_summary(talk)}\n\nMessages ")
    assert_sound(copy)


@pytest.mark.parametrize(
    ("fault", "field"),
    [
        ({"kind": "poem"}, "leaves[1].kind"),
        ({"first_seq": True}, "leaves[1].first_seq"),
        ({"last_seq": 0}, "leaves[1].last_seq"),
        ({"text": None}, "leaves[1].text"),
        ({"tokens": -1}, "leaves[1].tokens"),
        ({"fingerprint": "f" * 65}, "leaves[1].fingerprint"),
    ],
)
def test_a_segment_that_is_none_is_refused_by_its_field(
    talk: Session, scripted: ScriptedModel, fault: dict[str, Any], field: str
) -> None:
    export = export_session(talk)
    export["leaves"][1] |= fault
    with pytest.raises(InvalidImport) as refusal:
        import_session(talk.owner, export)
    assert refusal.value.field == field
    assert Session.objects.count() == 1


def test_a_preview_stores_and_calls_nothing(talk: Session, scripted: ScriptedModel) -> None:
    add_facts(talk)
    run = engine.preview_run(talk.pk)
    assert run.status == "applied"
    assert (run.tokens_after or 0) < (run.tokens_before or 0)
    assert (len(list_spans(talk)), LeafComposition.objects.count()) == (2, 2)
    assert len(list_summary_calls(scripted)) == 2


def test_a_span_that_exceeds_the_window_becomes_several_segments(
    session: Session, scripted: ScriptedModel
) -> None:
    scripted.default = keep_most
    use_policy(session, "chatcore")
    add_facts(session, messages=44)
    run = compact(session)
    spans = list_spans(session)
    assert len(spans) == run.provider_calls > 2
    assert [first for first, _ in spans[1:]] == [last + 1 for _, last in spans[:-1]]
    prompts = [read_prompt(scripted, index) for index in range(len(spans))]
    assert not [prompt for prompt in prompts if "summary of" in prompt.split("</transcript>")[0]]
    assert read_summary(session).count("Messages ") == len(spans)


def test_a_stale_outcome_stores_no_segment(session: Session, scripted: ScriptedModel) -> None:
    def change_context(_: dict[str, Any]) -> Reply:
        revisions.install_revision(
            session.pk,
            base_version=Session.objects.get(pk=session.pk).context_version,
            summary=None,
            boundary_seq=None,
            source="edit",
        )
        return Reply(text="Fact 1 0 is 7919.")

    use_policy(session, "chatcore")
    add_facts(session)
    scripted.script(change_context, change_context)
    run = engine.compact_now(session.pk, trigger="manual")
    assert run.status == "queued"  # it is tried again later
    assert (SummaryLeaf.objects.count(), LeafComposition.objects.count()) == (0, 0)


def test_segments_are_deleted_with_their_session(talk: Session, api: APIClient) -> None:
    assert SummaryLeaf.objects.exists()
    assert api.delete(f"/api/v1/sessions/{talk.pk}").status_code == 204
    assert (SummaryLeaf.objects.count(), LeafComposition.objects.count()) == (0, 0)


@pytest.mark.slow
def test_a_long_chat_in_a_small_window_ends_each_pass_under_its_threshold(
    session: Session, scripted: ScriptedModel
) -> None:
    """The model writes more than it may; the room of the summary holds all the same."""
    scripted.default = keep_most
    use_policy(session, "chatcore")
    for _ in range(8):
        add_facts(session, facts=30)
        run = compact(session)
        assert run.tokens_after is not None
        assert run.tokens_after <= THRESHOLD
        session.refresh_from_db()
        assert len(session.compacted_summary or "") // 4 <= 2048
    summary = read_summary(session)
    spans = list_spans(session)
    assert summary.count("(in part):") >= 1
    assert all(f"Messages {first}–{last}" in summary for first, last in spans)
    day = describe_day(timezone.localdate())
    assert f"Messages {spans[-1][0]}–{spans[-1][1]}, {day}: " in summary


def test_the_room_grows_with_the_window() -> None:
    rooms = {}
    for window in (8_192, 32_768, 200_000, 1_000_000):
        budget = plan(PRESETS["chatcore"], window)
        assert budget is not None
        assert budget.protected_tokens + budget.summary_tokens <= budget.threshold
        rooms[window] = budget.summary_tokens
    assert rooms == {8_192: PROTECTED_TOKENS, 32_768: 2_621, 200_000: 16_000, 1_000_000: 80_000}
    oneclaw_budget = plan(PRESETS["oneclaw"], 1_000_000)
    assert oneclaw_budget is not None
    assert oneclaw_budget.summary_tokens == 2_048


def test_messages_without_anything_to_summarize_need_no_call(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=14)
    session.messages.filter(seq__lte=10).update(content=" " * 2_000)
    use_policy(session, "chatcore")
    compact(session, up_to_seq=10)
    heading = f"Messages 1–10, {describe_day(timezone.localdate())}:"
    assert read_summary(session).startswith(f"{heading} The earlier messages held nothing")
    assert not list_summary_calls(scripted)


def test_the_administration_shows_segments_and_changes_none(talk: Session, client: Client) -> None:
    client.force_login(User.objects.create_superuser("operator"))
    segment = SummaryLeaf.objects.earliest("pk")
    page = client.get(reverse("admin:memory_summaryleaf_change", args=[segment.pk]))
    assert segment.text[:40] in page.content.decode()
    assert "<textarea" not in page.content.decode()
    assert client.get(reverse("admin:memory_summaryleaf_changelist")).status_code == 200
    assert client.get(reverse("admin:memory_summaryleaf_add")).status_code == 403


def test_a_summary_that_lost_a_segment_stays_as_it_is(
    talk: Session, scripted: ScriptedModel
) -> None:
    before = read_summary(talk)
    SummaryLeaf.objects.earliest("pk").delete()
    add_facts(talk)
    compact(talk)
    assert read_summary(talk).startswith(f"{before}\n\nMessages ")
