"""What the knobs of a summary lead to: who writes it, what it is told, and how parts are merged."""

from functools import partial
from typing import Any

import pytest

from chatcore.context import revisions
from chatcore.models import ContextRevision, Message, Session
from compaction.models import CompactionPolicy, CompactionRun
from compaction.runs import engine, leases
from models_registry.models import AiModel
from tests.support.compaction_sessions import (
    LARGE_USAGE,
    SUMMARY,
    fill_session,
    list_chat_calls,
    list_summary_calls,
    read_prompt,
    run_queued_compactions,
    say,
    summarize_or_chat,
)
from tests.support.scripted_model import ScriptedModel, make_overflow
from tests.support.scripted_wire import Reply
from tests.support.summary_knobs import DOWN, cheap, compact, models

__all__ = ["cheap"]

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_registry_comes_before_the_policy(
    full: Session, model: AiModel, scripted: ScriptedModel, cheap: AiModel
) -> None:
    AiModel.objects.filter(pk=model.pk).update(
        summary_model=AiModel.objects.create(provider=model.provider, name="best")
    )
    compact(full, summary={"model": "scripted/cheap"})
    assert set(models(scripted)) == {"best"}


@pytest.mark.parametrize(
    "model_name", ["scripted/nobody", "scripted/cheap"], ids=["unknown", "not active"]
)
def test_one_that_cannot_write_is_passed_over_with_one_warning(
    full: Session,
    scripted: ScriptedModel,
    cheap: AiModel,
    caplog: pytest.LogCaptureFixture,
    model_name: str,
) -> None:
    AiModel.objects.filter(pk=cheap.pk).update(is_active=False)
    run = compact(full, summary={"model": model_name, "chunk_chars": 6000})
    assert (run.status, set(models(scripted))) == ("applied", {"test-model"})
    assert run.provider_calls > 1
    assert [
        model_name in record.getMessage()
        for record in caplog.records
        if "cannot write summaries" in record.getMessage()
    ] == [True]


def test_it_writes_after_a_response_before_a_request_and_after_an_overflow(
    session: Session, scripted: ScriptedModel, cheap: AiModel
) -> None:
    overrides = {
        "summary": {"model": "scripted/cheap"},
        "trigger": {"phases": ["after_response", "before_request", "on_overflow"]},
    }
    CompactionPolicy.objects.create(name="cheaply", overrides=overrides)
    Session.objects.filter(pk=session.pk).update(policy="cheaply")
    scripted.default = summarize_or_chat()
    fill_session(session)
    say(session)  # over the threshold before it is sent
    fill_session(session, messages=4)
    scripted.script(Reply(text="Noted.", usage=LARGE_USAGE))
    say(session)
    run_queued_compactions()  # over it after the response
    scripted.script(make_overflow(tokens=9000, window=8192))
    say(session)
    triggers = set(CompactionRun.objects.filter(status="applied").values_list("trigger", flat=True))
    assert triggers == {"before_request", "after_response", "on_overflow"}
    assert set(models(scripted)) == {"cheap"}
    assert {request.json["model"] for request in list_chat_calls(scripted)} == {"test-model"}


def test_its_own_window_cuts_the_chunks(
    full: Session, scripted: ScriptedModel, cheap: AiModel
) -> None:
    AiModel.objects.filter(pk=cheap.pk).update(context_window_size=2_000)
    compact(full, summary={"model": "scripted/cheap"})
    assert len(models(scripted)) > 3
    assert all(
        len(str(request.json["messages"])) / 4 < 2_000 for request in list_summary_calls(scripted)
    )


def test_a_history_of_tools_that_are_not_told_is_summarized_without_a_call(
    session: Session, scripted: ScriptedModel
) -> None:
    for seq in range(1, 30, 2):
        tool_calls = [{"id": f"c{seq}", "name": "grep", "arguments": "{}"}]
        session.messages.create(seq=seq, role="assistant", tool_calls=tool_calls)
        session.messages.create(
            seq=seq + 1,
            role="tool",
            tool_call_id=f"c{seq}",
            tool_name="grep",
            content="line " * 400,
        )
    run = compact(session, summary={"tools": "listed"})
    assert (run.status, run.provider_calls) == ("applied", 0)
    assert "left out" in (run.summary_after or "")


def test_a_real_wait_keeps_the_run(full: Session, scripted: ScriptedModel) -> None:
    scripted.script(DOWN)
    assert compact(full, summary={"backoff": [0.05]}).status == "applied"


def test_a_run_that_another_worker_took_over_while_it_waited_calls_no_more(
    full: Session, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken_over(_: float) -> None:
        CompactionRun.objects.update(attempts=2)

    monkeypatch.setattr(
        leases, "wait_while_claimed", partial(leases.wait_while_claimed, sleep=taken_over)
    )
    scripted.script(DOWN)
    run = engine.request_run(full.pk, trigger="manual", overrides={"summary": {"backoff": [1]}})
    assert engine.execute_run(run.pk) is None
    assert len(list_summary_calls(scripted)) == 1
    assert not leases.select_claimed_run(run).exists()


def test_parts_are_merged_with_the_summary_before_once(
    full: Session, scripted: ScriptedModel
) -> None:
    compact(full, summary={"merging": "parts"})
    fill_session(full, messages=10)
    compact(full, summary={"merging": "parts", "chunk_chars": 5_000})
    assert [
        read_prompt(scripted, index).count("summary of what came before]")
        for index in range(len(list_summary_calls(scripted)))
    ][-1] == 1
    assert (
        sum(
            "summary of what came before]" in read_prompt(scripted, index)
            for index in range(len(list_summary_calls(scripted)))
        )
        == 1
    )


@pytest.mark.slow
def test_so_many_parts_that_their_summaries_do_not_fit_are_merged_in_rounds(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, tokens=500)
    scripted.default = lambda _: Reply(
        text=f"The trip to Lisbon is planned for May, part {len(scripted.requests)}. "
        + "Hotel. " * 20
    )
    run = compact(session, summary={"merging": "parts", "chunk_chars": 600})
    merged = [
        index
        for index in range(len(list_summary_calls(scripted)))
        if "[summary of part 1]" in read_prompt(scripted, index)
    ]
    assert run.status == "applied"
    assert len(merged) >= 2
    assert all(
        len(read_prompt(scripted, index).split("</transcript>")[0]) <= 1_200
        for index in range(len(list_summary_calls(scripted)))
    )


def test_a_rollup_goes_in_chunks_where_it_must(full: Session, scripted: ScriptedModel) -> None:
    long = " ".join(f"On day {number} Alice visits place {number}." for number in range(80))

    def answer(request: dict[str, Any]) -> Reply:
        text = request["messages"][-1]["content"]
        first = "summary of what came before]" not in text
        return Reply(
            text="Alice visits eighty places." if first or "grown too long" in text else long
        )

    scripted.default = answer
    run = compact(full, summary={"rollup_tokens": 100, "chunk_chars": 2_000})
    rolled = [
        text
        for index in range(run.provider_calls)
        if "grown too long" in (text := read_prompt(scripted, index))
    ]
    assert run.summary_after == "Alice visits eighty places."
    assert len(rolled) == len(long) // 2_000 + 1 > 1


def test_a_rollup_that_fails_leaves_the_longer_summary(
    full: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text=SUMMARY), DOWN, DOWN)
    run = compact(full, summary={"rollup_tokens": 20})
    assert (run.status, run.summary_after, run.provider_calls) == ("applied", SUMMARY, 3)


def test_a_summary_too_long_to_be_merged_is_told_like_the_rest(
    full: Session, scripted: ScriptedModel
) -> None:
    """As after a change from a large window to a small one."""
    long = " ".join(f"On day {number} Alice visits place {number}." for number in range(700))
    revisions.install_revision(
        full.pk, base_version=0, summary=long, boundary_seq=3, source=ContextRevision.Source.EDIT
    )
    run = compact(full)
    assert (run.status, run.summary_after) == ("applied", SUMMARY)
    texts = "".join(
        read_prompt(scripted, index) for index in range(len(list_summary_calls(scripted)))
    )
    assert all(texts.count(f"day {number} Alice") == 1 for number in range(0, 700, 50))


def test_chinese_is_cut_by_what_it_takes(
    session: Session, model: AiModel, scripted: ScriptedModel
) -> None:
    """A token holds one or two of its characters, not four; no call is refused as too long."""
    text = "爱丽丝计划五月去里斯本旅行，预算两千欧元。酒店已经预订，航班还没有定下来。"
    roles = ("assistant", "user")
    rows = [
        Message(session=session, seq=seq, role=roles[seq % 2], content=f"{seq:04d} " + text * 20)
        for seq in range(1, 21)
    ]
    Message.objects.bulk_create(rows)
    Session.objects.filter(pk=session.pk).update(last_seq=20, message_count=20)
    scripted.default = lambda body: Reply(text=text)
    assert compact(session).status == "applied"
    assert all(
        len(request.json["messages"][-1]["content"]) < 8192
        for request in list_summary_calls(scripted)
    )
