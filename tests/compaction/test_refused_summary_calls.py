"""A summarizer that refuses, waits, is filtered or thinks for long: the summary comes all the same.

What a refusal has taught is remembered for the model, so that no run pays for it again.
"""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from rest_framework.test import APIClient

from chatcore.models import Message, Session
from compaction.models import CompactionRun
from compaction.runs import engine, leases
from models_registry.models import AiModel, Provider
from tests.support.compaction_sessions import (
    SUMMARY,
    fill_session,
    list_chat_calls,
    list_summary_calls,
    use_anthropic,
)
from tests.support.frozen_talk import use_policy
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply
from tests.support.slow_params import mark_others_slow

pytestmark = pytest.mark.django_db(transaction=True)

Body = dict[str, Any]
FACT = "The locker of Hanna has the number 4711."
POLICIES = ["oneclaw", "chatcore"]
THRILLER = "strangle"


@pytest.fixture(params=POLICIES)
def told(request: pytest.FixtureRequest, session: Session, scripted: ScriptedModel) -> Session:
    """A chat over its threshold, whose first message has a fact."""
    Session.objects.filter(pk=session.pk).update(policy=request.param)
    fill_session(session)
    Message.objects.filter(session=session, seq=1).update(content=f"{FACT} " + "lisbon trip " * 160)
    return session


def summarize(body: Body) -> Reply:
    """Return a summary that contains the fact if the request contains it."""
    text = str(body["messages"][-1]["content"])
    return Reply(text=f"{SUMMARY}\n{FACT}" if FACT in text else SUMMARY)


def refuse_when(refusal: Callable[[Body], Reply | None]) -> Callable[[Body], Reply]:
    """Return a server that refuses summary calls, and answers everything else."""

    def answer(body: Body) -> Reply:
        if "<transcript>" not in str(body["messages"]):
            return Reply(text="I would look for flights from Porto.")
        return refusal(body) or summarize(body)

    return answer


def compact(api: APIClient, session: Session) -> dict[str, Any]:
    run: dict[str, Any] = api.post(f"/api/v1/sessions/{session.pk}/compact", {"wait": True}).json()
    return run


def send(api: APIClient, session: Session) -> None:
    path = f"/api/v1/sessions/{session.pk}/messages"
    assert api.post(path, {"content": "And the locker?"}).json()["status"] == "completed"


def assert_known(api: APIClient, session: Session, scripted: ScriptedModel) -> None:
    """Assert that the next request has the fact of the oldest message."""
    send(api, session)
    assert FACT in str(list_chat_calls(scripted)[-1].json)


def refill(session: Session, *, messages: int = 14, tokens: int = 485) -> None:
    session.refresh_from_db()
    fill_session(session, messages=messages, tokens=tokens)


def list_rooms(scripted: ScriptedModel) -> list[int]:
    return [call.json["max_tokens"] for call in list_summary_calls(scripted)]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that runs would wait."""
    seconds: list[float] = []
    monkeypatch.setattr(leases, "wait_while_claimed", lambda run, wait, **_: seconds.append(wait))
    return seconds


BUSY = {
    "in words": Reply(status=429, text="Rate limit reached. Please try again in 3s."),
    "in a header": Reply(status=429, text="Slow down.", headers={"Retry-After": "3"}),
    "overloaded": Reply(status=503, text="Overloaded.", headers={"Retry-After": "3"}),
}


@pytest.mark.parametrize("reply", mark_others_slow(BUSY.values()), ids=BUSY.keys())
def test_a_short_wait_is_waited(
    reply: Reply, told: Session, api: APIClient, scripted: ScriptedModel, waits: list[float]
) -> None:
    replies = [reply, reply, reply]
    scripted.default = refuse_when(lambda _: replies.pop() if replies else None)
    run = compact(api, told)
    assert (run["status"], run["reason"], waits) == ("applied", "", [3.0, 3.0, 3.0])
    assert_known(api, told, scripted)


def test_after_a_long_wait_the_run_comes_back(
    told: Session, api: APIClient, scripted: ScriptedModel, waits: list[float]
) -> None:
    busy = Reply(status=429, text="Rate limit reached.", headers={"Retry-After": "300"})
    scripted.default = refuse_when(lambda _: busy)
    run = compact(api, told)
    assert (run["status"], waits) == ("queued", [])
    assert "Rate limit reached" in run["reason"]
    for _ in range(2):  # neither a request nor the button makes a second call before
        send(api, told)
        compact(api, told)
    assert engine.execute_run(run["id"]) is None
    assert leases.claim_next_run(lambda _: None) is None
    assert len(list_summary_calls(scripted)) == 1

    rests = CompactionRun.objects.filter(
        pk=run["id"],
        lease_until__range=(Now() + timedelta(seconds=200), Now() + timedelta(seconds=301)),
    )
    assert rests.update(lease_until=Now() - timedelta(seconds=1)) == 1
    scripted.default = refuse_when(lambda _: None)
    claimed_run = engine.execute_next_run(lambda _: None)
    assert claimed_run is not None
    assert (str(claimed_run.pk), claimed_run.status, claimed_run.reason) == (
        run["id"],
        "applied",
        "",
    )
    assert_known(api, told, scripted)


UNNAMED_WAITS = {
    "Mistral": Reply(status=429, text="Requests rate limit exceeded"),
    "Anthropic": Reply(status=529, text="Overloaded"),
    "Google": Reply(status=503, text="The model is overloaded. Please try again later."),
}


def end_rest(run: dict[str, Any], *, longest: int) -> None:
    """Let a run's rest be over, which was of `longest` seconds and hardly fewer."""
    rests = CompactionRun.objects.filter(
        pk=run["id"],
        lease_until__range=(
            Now() + timedelta(seconds=longest - 50),
            Now() + timedelta(seconds=longest + 1),
        ),
    )
    assert rests.update(lease_until=Now() - timedelta(seconds=1)) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "reply", mark_others_slow(UNNAMED_WAITS.values()), ids=UNNAMED_WAITS.keys()
)
def test_a_busy_provider_that_names_no_time_is_asked_again_later_and_later(
    reply: Reply, told: Session, api: APIClient, scripted: ScriptedModel, waits: list[float]
) -> None:
    scripted.default = refuse_when(lambda _: reply)
    run = compact(api, told)
    for calls, seconds in enumerate((60, 120, 300), start=1):
        assert CompactionRun.objects.get().status == "queued"
        send(api, told)
        compact(api, told)
        assert leases.claim_next_run(lambda _: None) is None
        assert (len(list_summary_calls(scripted)), waits) == (calls, [])
        end_rest(run, longest=seconds)
        if seconds == 300:
            scripted.default = refuse_when(lambda _: None)
        engine.execute_next_run(lambda _: None)
    assert CompactionRun.objects.get().status == "applied"
    assert_known(api, told, scripted)


@pytest.mark.slow
def test_a_summary_that_has_begun_waits_shortly_for_a_provider_that_names_no_time(
    told: Session, api: APIClient, scripted: ScriptedModel, waits: list[float]
) -> None:
    refill(told, messages=60)  # so many that they take several calls
    count = 0

    def refuse(_: Body) -> Reply | None:
        nonlocal count
        count += 1
        return UNNAMED_WAITS["Mistral"] if count in (2, 3) else None

    scripted.default = refuse_when(refuse)
    assert (compact(api, told)["status"], waits) == ("applied", [2.0, 10.0])


def test_a_policy_of_its_own_waits_keeps_them_in_the_first_execution(
    session: Session, api: APIClient, scripted: ScriptedModel, waits: list[float]
) -> None:
    Session.objects.filter(pk=session.pk).update(policy="wolffish")
    fill_session(session)
    scripted.default = refuse_when(lambda _: UNNAMED_WAITS["Mistral"])
    run = compact(api, session)
    assert (run["status"], waits) == ("queued", [1.0, 2.0, 4.0, 8.0, 16.0])
    end_rest(run, longest=60)
    engine.execute_next_run(lambda _: None)
    assert (len(list_summary_calls(scripted)), len(waits)) == (7, 5)


def test_an_account_without_credit_is_asked_once(
    told: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    quota = "You exceeded your current quota, please check your plan and billing details."
    scripted.default = refuse_when(lambda _: Reply(status=429, text=quota))
    # `chatcore` installs an extract of the messages where no summary could be written.
    assert compact(api, told)["status"] in ("fell_back", "applied")
    assert len(list_summary_calls(scripted)) == 1


@pytest.mark.parametrize("wait", mark_others_slow(["0", "-1"]))
def test_a_provider_that_names_no_time_is_not_called_without_a_pause(
    wait: str, told: Session, api: APIClient, scripted: ScriptedModel, waits: list[float]
) -> None:
    replies: list[Reply] = []

    def refuse(body: Body) -> Reply | None:
        replies.append(Reply(status=429, text="Slow down.", headers={"Retry-After": wait}))
        return replies[-1] if len(replies) < 20 else None

    scripted.default = refuse_when(refuse)
    assert compact(api, told)["status"] == "queued"
    assert len(replies) <= 8


def test_an_output_limit_is_taken_and_remembered(
    told: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    def refuse(body: Body) -> Reply | None:
        if body["max_tokens"] <= 300:
            return None
        words = "max_tokens is too large: {}. This model supports at most 300 completion tokens"
        return Reply(status=400, text=words.format(body["max_tokens"]))

    scripted.default = refuse_when(refuse)
    assert compact(api, told)["status"] == "applied"
    assert_known(api, told, scripted)
    asked = list_rooms(scripted)
    assert (asked[0] > 300, {*asked[1:]}) == (True, {300})
    refill(told)
    assert compact(api, told)["status"] == "applied"
    assert {*list_rooms(scripted)[1:]} == {300}


def think_for(tokens: int) -> Callable[[Body], Reply | None]:
    def answer(body: Body) -> Reply | None:
        if body["max_tokens"] >= tokens:
            return Reply(text=summarize(body).text, reasoning="Hm.", usage=(3_000, tokens))
        return Reply(text="", reasoning="Hm.", finish="length", usage=(3_000, body["max_tokens"]))

    return answer


@pytest.mark.slow
@pytest.mark.parametrize("tokens", mark_others_slow([14_000, 6_000, 30_000]))
def test_room_for_thoughts_is_found_and_remembered(
    tokens: int, told: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    AiModel.objects.update(context_window_size=128_000)
    refill(told, messages=80, tokens=900)
    scripted.default = refuse_when(think_for(tokens))
    assert compact(api, told)["status"] == "applied"
    assert_known(api, told, scripted)
    first_rooms = list_rooms(scripted)
    assert len([room for room in first_rooms if room < tokens]) <= 2
    refill(told, messages=80, tokens=900)
    assert compact(api, told)["status"] == "applied"
    second_rooms = list_rooms(scripted)[len(first_rooms) :]
    assert min(second_rooms) >= tokens
    facts = Provider.objects.get().list_learned()["test-model"]
    assert tokens <= facts["thought_room"] <= 2 * tokens


@pytest.mark.parametrize("is_counted", mark_others_slow([True, False]))
def test_room_is_found_where_thoughts_leave_too_little_for_the_text(
    is_counted: bool, told: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    AiModel.objects.update(context_window_size=32_768)
    refill(told, messages=30, tokens=700)

    def think(body: Body) -> Reply | None:
        if body["max_tokens"] >= 6_000:
            return Reply(text=summarize(body).text, reasoning="Hm.", usage=(3_000, 5_900))
        usage = (3_000, body["max_tokens"]) if is_counted else None
        return Reply(text="Alice plans a trip to Lis", finish="length", usage=usage)

    scripted.default = refuse_when(think)
    assert compact(api, told)["status"] == "applied"
    assert_known(api, told, scripted)
    rooms = list_rooms(scripted)
    refill(told, messages=30, tokens=700)
    assert compact(api, told)["status"] == "applied"
    assert min(list_rooms(scripted)[len(rooms) :]) >= 6_000


@pytest.mark.parametrize(
    "words",
    mark_others_slow(
        [
            "Could not finish the message because max_tokens or model output limit was reached."
            " Please try again with higher max_tokens.",
            "The reasoning did not end. Consider increasing `max_output_tokens`.",
        ]
    ),
)
def test_a_refusal_that_wants_more_room_gets_it(
    words: str, told: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    AiModel.objects.update(context_window_size=32_768)
    refill(told, messages=30, tokens=700)

    def refuse(body: Body) -> Reply | None:
        return Reply(status=400, text=words) if body["max_tokens"] < 6_000 else None

    scripted.default = refuse_when(refuse)
    assert compact(api, told)["status"] == "applied"
    assert len([room for room in list_rooms(scripted) if room < 6_000]) <= 2


def test_thoughts_without_end_are_given_half_of_the_window_once(
    told: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    AiModel.objects.update(context_window_size=32_768)
    refill(told, messages=20, tokens=900)
    scripted.default = refuse_when(think_for(50_000))
    run = compact(api, told)
    first_room, second_room, last_room = list_rooms(scripted)
    assert first_room < second_room < last_room == 16_384
    assert "no room for a summary in 16,384 output tokens" in run["reason"]
    assert Provider.objects.get().list_learned() == {"test-model": {"thoughts_exceed": 16_384}}

    refill(told, messages=40, tokens=900)
    later_run = engine.compact_now(told.pk, trigger="before_request")
    assert "no room for a summary in 16,384 output tokens" in later_run.reason
    assert len(list_summary_calls(scripted)) == 3
    refill(told, messages=40, tokens=900)
    compact(api, told)  # whoever asks for it gets one try
    assert list_rooms(scripted)[3:] == [16_384]

    scripted.default = refuse_when(think_for(16_000))
    refill(told, messages=20, tokens=900)
    assert compact(api, told)["status"] == "applied"
    assert "thoughts_exceed" not in Provider.objects.get().list_learned()["test-model"]


def test_room_that_the_model_does_not_have_is_not_asked_for(
    told: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    AiModel.objects.update(max_output_tokens=600)
    scripted.default = refuse_when(think_for(50_000))
    for trigger in ("manual", "after_response", "before_request"):
        engine.compact_now(told.pk, trigger=trigger)
        refill(told)
    assert len(list_summary_calls(scripted)) == 2
    AiModel.objects.update(max_output_tokens=2_000)
    scripted.default = refuse_when(think_for(1_900))
    assert engine.compact_now(told.pk, trigger="after_response").status == "applied"


@pytest.mark.parametrize("seqs", mark_others_slow([[3, 4], [1], [6], [10]]))
def test_a_message_that_a_filter_refuses_is_left_out(
    seqs: list[int], told: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    def refuse(body: Body) -> Reply | None:
        if THRILLER not in str(body["messages"]):
            return None
        words = "The response was filtered due to the prompt triggering content management policy."
        error = {"error": {"code": "content_filter", "param": "prompt", "message": words}}
        return Reply(status=400, body=str(error).replace("'", '"').encode())

    for message in Message.objects.filter(session=told, seq__in=seqs):
        message.content = message.content.replace("lisbon", THRILLER, 1)
        message.save()
    Message.objects.filter(session=told, seq=2).update(content=f"{FACT} " + "lisbon trip " * 160)
    scripted.default = refuse_when(refuse)
    run = compact(api, told)
    assert run["status"] == "applied"
    note = ", ".join(map(str, seqs))
    assert f" {note} " in run["reason"]
    assert "not part of this summary" in run["reason"]
    assert "not part of this summary" in run["summary_after"]
    assert THRILLER not in run["summary_after"]
    assert_known(api, told, scripted)
    assert "not part of this summary" in str(list_chat_calls(scripted)[-1].json)

    call_count = len(list_summary_calls(scripted))
    refill(told)
    assert compact(api, told)["status"] == "applied"
    later_calls = list_summary_calls(scripted)[call_count:]
    assert later_calls
    assert not any(THRILLER in str(call.json["messages"]) for call in later_calls)


def test_a_filter_that_refuses_everything_leaves_nothing_in_the_place_of_messages(
    told: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    """No summary says that there was nothing, and no message goes for it."""
    error = {"error": {"code": "content_filter", "message": "It was filtered by the policy."}}
    refusal = Reply(status=400, body=json.dumps(error).encode())
    scripted.default = refuse_when(lambda body: refusal)
    # No more messages than a run may leave out.
    Message.objects.filter(session=told, seq__gt=9).delete()
    run = compact(api, told)
    summary = run["summary_after"] or ""
    assert "held nothing" not in summary
    assert "not part of this summary" not in summary
    if run["status"] == "applied":  # an extract, in the words of the messages
        assert FACT in summary


@pytest.mark.parametrize("words", ["temperature must be 1", "temperature: only 1 is allowed"])
def test_a_refused_temperature_is_left_out_and_remembered(
    words: str, told: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    scripted.default = refuse_when(
        lambda body: Reply(status=400, text=words) if "temperature" in body else None
    )
    assert compact(api, told)["status"] == "applied"
    assert_known(api, told, scripted)
    refill(told)
    assert compact(api, told)["status"] == "applied"
    sent = ["temperature" in call.json for call in list_summary_calls(scripted)]
    assert sent.count(True) == 1


def build_refusal(status: int, **error: object) -> Reply:
    return Reply(status=status, body=json.dumps({"error": error}).encode())


# What does not say that it is about one message, or says it in other words than most.
UNTOLD = {
    "Anthropic's filter": build_refusal(400, message="Output blocked by content filtering policy"),
    "a guard": build_refusal(400, message="Request blocked by Llama Guard: S1"),
    "a gateway's breakdown": build_refusal(500, message="It was blocked by the safety system"),
    "other words": build_refusal(400, message="Sorry, the model cannot answer this question."),
    "another language": build_refusal(422, message="Ce texte ne peut pas être traité."),
    "a filter in the middle": Reply(text="Alice plans a trip to Lis", finish="content_filter"),
    "an apology": Reply(text="I'm sorry, but I can't help with that."),
    "an apology in German": Reply(text="Es tut mir leid, dabei kann ich nicht helfen."),
    "nothing": Reply(text=""),
    "an apology in Arabic": Reply(text="يؤسفني أن محتوى هذه المحادثة لا يسمح لي بتلخيصها."),
    "an apology in Chinese": Reply(text="这段内容不适合由我来处理，请谅解。"),
}


@pytest.mark.slow
@pytest.mark.parametrize("reply", mark_others_slow(UNTOLD.values(), first=3), ids=UNTOLD.keys())
def test_one_message_is_found_whatever_is_said_of_it(
    reply: Reply, told: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    message = Message.objects.get(session=told, seq=4)
    message.content = message.content.replace("lisbon", THRILLER, 1)
    message.save()
    scripted.default = refuse_when(lambda body: reply if THRILLER in str(body) else None)
    run = compact(api, told)
    if run["status"] == "fell_back":  # once it may be chance
        assert run["provider_calls"] == 2
        run = compact(api, told)
    assert run["status"] == "applied"
    if "extract" in run["summary_after"].lower():  # in the words of the messages
        assert_known(api, told, scripted)
        return
    assert "Message 4 is not part of this summary" in run["summary_after"]
    assert_known(api, told, scripted)
    refill(told)
    assert compact(api, told)["status"] == "applied"
    newest_calls = CompactionRun.objects.latest("created_at").provider_calls
    assert newest_calls <= 3


@pytest.mark.parametrize("reply", [UNTOLD["other words"], UNTOLD["an apology"], UNTOLD["nothing"]])
def test_no_message_is_blamed_for_what_is_said_of_each(
    reply: Reply, told: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    scripted.default = refuse_when(lambda body: reply)
    for _ in range(3):
        call_count = len(list_summary_calls(scripted))
        run = compact(api, told)
        assert "not part of this summary" not in (run["summary_after"] or "")
        assert len(list_summary_calls(scripted)) - call_count <= 4


def test_a_temperature_is_refused_in_any_words(
    told: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    refusal = build_refusal(400, message="Sampling parameters are not accepted by this model.")
    scripted.default = refuse_when(lambda body: refusal if "temperature" in body else None)
    statuses = [compact(api, told)["status"] for _ in range(2)]
    assert "applied" in statuses
    assert_known(api, told, scripted)
    if statuses[0] == "applied":
        return  # an extract, in the words of the messages
    call_count = len(list_summary_calls(scripted))
    refill(told)
    assert compact(api, told)["status"] == "applied"
    later_calls = list_summary_calls(scripted)[call_count:]
    assert not any("temperature" in call.json for call in later_calls)


@pytest.mark.slow
def test_room_is_remembered_where_thoughts_are_not_counted(
    told: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    AiModel.objects.update(context_window_size=32_768)
    refill(told, messages=30, tokens=700)

    def think(body: Body) -> Reply | None:
        is_enough = body["max_tokens"] >= 6_000
        return None if is_enough else Reply(text="", reasoning="Hm.", finish="length")

    scripted.default = refuse_when(think)
    assert compact(api, told)["status"] == "applied"
    call_count = len(list_summary_calls(scripted))
    refill(told, messages=30, tokens=700)
    assert compact(api, told)["status"] == "applied"
    assert min(list_rooms(scripted)[call_count:]) >= 6_000


def test_half_of_an_object_is_no_summary(
    told: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    half = Reply(text='{"summary": "Alice plans a trip to Lisbon, the locker of Hanna has the nu')
    replies = [half]
    scripted.default = refuse_when(lambda _: replies.pop() if replies else None)
    assert not (compact(api, told)["summary_after"] or "").startswith("{")
    assert_known(api, told, scripted)


WAITS = {
    "GitHub's": build_refusal(429, message="Rate limit exceeded. Please wait 3 seconds."),
    "Google's": build_refusal(429, message="Exhausted.", details=[{"retryDelay": "3s"}]),
    "OpenAI's": Reply(status=429, text="Slow down.", headers={"retry-after-ms": "3000"}),
}


@pytest.mark.parametrize("reply", WAITS.values(), ids=WAITS.keys())
def test_a_wait_is_found_wherever_it_stands(
    reply: Reply, told: Session, api: APIClient, scripted: ScriptedModel, waits: list[float]
) -> None:
    replies = [reply, reply, reply]
    scripted.default = refuse_when(lambda _: replies.pop() if replies else None)
    run = compact(api, told)
    assert (run["status"], waits) == ("applied", [3.0, 3.0, 3.0])


@pytest.mark.parametrize("policy", ["oneclaw", "chatcore"])
@pytest.mark.parametrize("helps", [True, False])
def test_a_model_that_invents_calls_is_told_once_and_then_not_asked(
    session: Session, scripted: ScriptedModel, policy: str, helps: bool
) -> None:
    Session.objects.filter(pk=session.pk).update(policy=policy)
    call = make_tool_call("fetch_url", {"url": "http://x"})

    def answer(body: dict[str, Any]) -> Reply:
        is_told = "There are no tools" in str(body["messages"])
        return Reply(text=SUMMARY) if is_told and helps else Reply(tool_calls=[call])

    scripted.default = answer
    counts = []
    for _ in range(3):
        session.refresh_from_db()
        fill_session(session, messages=20)
        before = len(scripted.requests)
        engine.compact_now(session.pk, trigger="manual")
        counts.append(len(scripted.requests) - before)
    assert counts == ([3, 2, 2] if helps else [2, 0, 0])  # a run has two parts


@pytest.mark.parametrize("policy", ["oneclaw", "chatcore"])
@pytest.mark.parametrize(
    "words",
    mark_others_slow(
        [
            "这段内容不适合由我来处理，请谅解。",
            "يؤسفني أن محتوى هذه المحادثة لا يسمح لي بتلخيصها.",
            "I'd rather not go into this; it should be left to someone else.",
            "К сожалению, я не могу обработать этот запрос.",
            "I'm sorry, but I can't help with that.",
            "Przykro mi, ale nie mogę streścić tej rozmowy.",
            "Üzgünüm, bu içeriği özetleyemem.",
            "Dazu darf ich aus Gründen der Sicherheit nichts schreiben.",
            "내용이 정책에 어긋날 수 있어 요약해 드리기 어렵습니다.",
            "ขออภัย เนื้อหานี้ขัดต่อนโยบายการใช้งาน จึงไม่สามารถสรุปให้ได้",
        ],
        first=4,
    ),
)
def test_a_refusal_in_any_language_is_no_summary_and_the_reason_has_it(
    words: str, policy: str, session: Session, scripted: ScriptedModel, api: APIClient
) -> None:
    use_policy(session, policy)
    said = (
        "We are moving to Leipzig in May; the flat in Karlstrasse costs 980 euros a month. ",
        "That is near the station and the market, so a bicycle will be enough there. ",
    )
    messages = [
        {"role": ("user", "assistant")[number % 2], "content": said[number % 2] * 20}
        for number in range(16)
    ]
    path = f"/api/v1/sessions/{session.pk}"
    api.post(f"{path}/messages/import", {"messages": messages}, format="json")
    scripted.default = Reply(text=words)
    run = api.post(f"{path}/compact", {"wait": True}).json()
    assert words in run["reason"], run
    assert "instruction" not in run["reason"]
    assert words not in (api.get(path).json()["compacted_summary"] or "")


@pytest.fixture(params=["openai", "anthropic"])
def spoken(request: pytest.FixtureRequest, session: Session, scripted: ScriptedModel) -> Session:
    """A chat over its threshold, in either protocol, whose first message has a fact."""
    if request.param == "anthropic":
        use_anthropic(session, scripted)
    fill_session(session)
    Message.objects.filter(session=session, seq=1).update(content=f"{FACT} " + "lisbon trip " * 160)
    return session


def test_a_server_that_does_not_stream_writes_summaries_and_answers(
    spoken: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    def answer(body: Body) -> Reply:
        if body.get("stream"):
            return Reply(status=400, text="Streaming is not supported for this model.")
        return refuse_when(lambda _: None)(body)

    scripted.default = answer
    assert compact(api, spoken)["status"] == "applied"
    assert_known(api, spoken, scripted)
    assert [call.json.get("stream") or False for call in scripted.requests] == [True, False, False]


@pytest.mark.parametrize(
    "words",
    mark_others_slow(
        [
            "L'option demandée dépasse ce que permet cet abonnement",
            "The requested output length is above what this deployment allows",
            "要求された長さは許可されていません",
        ]
    ),
)
def test_a_limit_of_the_answer_is_found_in_whatever_words(
    words: str, spoken: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    refusal = Reply(status=400, text=words)
    scripted.default = refuse_when(lambda body: refusal if body["max_tokens"] > 400 else None)
    assert compact(api, spoken)["status"] == "applied"
    assert_known(api, spoken, scripted)
    call_count = len(scripted.requests)
    refill(spoken)
    assert compact(api, spoken)["status"] == "applied"
    assert max(call.json["max_tokens"] for call in list_summary_calls(scripted)[call_count:]) <= 400


def test_a_window_is_respected_that_is_refused_in_whatever_words(
    spoken: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    def refuse(body: Body) -> Reply | None:
        is_long = len(str(body["messages"])) > 12_000
        return Reply(status=400, text="Das passt hier nicht hinein.") if is_long else None

    scripted.default = refuse_when(refuse)
    run = compact(api, spoken)
    assert run["status"] == "applied"
    assert "not part of this summary" not in run["summary_after"]
    assert len(list_summary_calls(scripted)) <= 8
    assert_known(api, spoken, scripted)
    refill(spoken)
    call_count = len(scripted.requests)
    assert compact(api, spoken)["status"] == "applied"
    assert not any(refuse(call.json) for call in list_summary_calls(scripted)[call_count:])


@pytest.mark.parametrize("is_counted", mark_others_slow([True, False]))
def test_thoughts_that_end_without_a_word_get_more_room(
    is_counted: bool, told: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    """Some servers say `stop` where their own limit has cut the thoughts."""
    AiModel.objects.update(context_window_size=32_768)
    refill(told, messages=30, tokens=700)
    usage = {
        "prompt_tokens": 3_000,
        "completion_tokens": 1_500,
        "completion_tokens_details": {"reasoning_tokens": 1_500},
    }
    delta = {} if is_counted else {"reasoning_content": "Hm, hm. " * 600}
    chunk = {
        "choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}],
        "usage": usage if is_counted else None,
    }
    silence = Reply(
        body=f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode(),
        headers={"Content-Type": "text/event-stream"},
    )
    scripted.default = refuse_when(lambda body: silence if body["max_tokens"] < 5_000 else None)
    for _ in range(2):
        assert compact(api, told)["status"] == "applied"
        refill(told, messages=30, tokens=700)
    assert len([room for room in list_rooms(scripted) if room < 5_000]) == 1


HALF = Reply(text="Alice plans a trip to Lisbon in May, with a budget of", cut_after=2)
PAID_FOR_NOTHING = {
    "nothing": Reply(text=""),
    "headings": Reply(text="## Summary"),
    "an apology": UNTOLD["an apology in German"],
    "half of it": HALF,
    "an end without a reason": Reply(text="Alice plans a trip to Lis", finish=None),
    "an empty stream": Reply(body=b"", headers={"Content-Type": "text/event-stream"}),
    "no JSON": Reply(body=b"data: {no\n\n", headers={"Content-Type": "text/event-stream"}),
    "an error in an answer": Reply(body=b'{"error": {"message": "\xe5\x86\x85\xe9\x83\xa8"}}'),
}


def test_a_refusal_that_does_not_come_again_teaches_nothing(
    told: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    replies = [Reply(status=400, text="Das geht nicht.")]
    scripted.default = refuse_when(lambda _: replies.pop() if replies else None)
    assert compact(api, told)["status"] == "applied"
    assert Provider.objects.get().list_learned() == {}
    assert_known(api, told, scripted)


@pytest.mark.parametrize(
    "reply", mark_others_slow(PAID_FOR_NOTHING.values()), ids=PAID_FOR_NOTHING.keys()
)
def test_no_call_is_paid_for_twice_in_each_run(
    reply: Reply, told: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    scripted.default = refuse_when(lambda _: reply)
    for number in range(3):
        call_count = len(list_summary_calls(scripted))
        run = compact(api, told)
        calls = [str(call.json) for call in list_summary_calls(scripted)[call_count:]]
        assert len(calls) - len({*calls}) <= (not number)
        assert run["reason"]
        refill(told)
    scripted.default = refuse_when(lambda _: None)
    assert compact(api, told)["status"] == "applied"
