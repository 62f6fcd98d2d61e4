"""What a server does not know is learned from its refusal, once, and remembered in its row."""

from collections.abc import Callable
from typing import Any

import pytest

from chatcore.models import Session
from chatcore.providers import adaptation
from models_registry.models import Provider
from tests.support.compaction_sessions import say
from tests.support.provider_calls import build_refusal
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.slow_params import mark_others_slow

pytestmark = pytest.mark.django_db(transaction=True)

Body = dict[str, Any]


def has_system_role(body: Body) -> bool:
    return bool(body["messages"][0]["role"] == "system")


# What the server refuses, its words, and what is learned.
SERVERS: list[tuple[Callable[[Body], bool], str, Body]] = [
    (lambda body: "stream_options" in body,
     "Unrecognized request argument supplied: stream_options",
     {"without": ["stream_options"]}),
    (lambda body: "stream_options" in body,
     "Extra inputs are not permitted, field: 'stream_options', value: {'include_usage': True}",
     {"without": ["stream_options"]}),
    (lambda body: "max_tokens" in body,
     "Unsupported parameter: 'max_tokens' is not supported with this model."
     " Use 'max_completion_tokens' instead.", {"max_tokens_field": "max_completion_tokens"}),
    (lambda body: "temperature" in body,
     "Unsupported value: 'temperature' does not support 0.3 with this model."
     " Only the default (1) value is supported.", {"without": ["temperature"]}),
    (lambda body: "temperature" in body, "invalid temperature: only 1 is allowed for this model",
     {"without": ["temperature"]}),
    (lambda body: "presence_penalty" in body,
     "Argument not supported on this model: presencePenalty", {"without": ["presence_penalty"]}),
    (lambda body: "top_p" in body, "top_p: Extra inputs are not permitted", {"without": ["top_p"]}),
    (lambda body: "temperature" in body, "Das Feld temperature wird hier nicht akzeptiert.",
     {"without": ["temperature"]}),
    (lambda body: "top_p" in body, "不支持参数 top_p", {"without": ["top_p"]}),
    (lambda body: "stream" in body, "Streaming is not supported for this model.",
     {"without": ["stream"]}),
    (lambda body: "stream" in body, "ストリーミングはサポートされていません",
     {"without": ["stream"]}),
    (has_system_role, "System role not supported", {"system_role": False}),
]  # fmt: skip


@pytest.mark.parametrize(("is_refused", "words", "facts"), SERVERS)
def test_it_is_learned_once_and_remembered_for_its_address(
    is_refused: Callable[[Body], bool],
    words: str,
    facts: Body,
    session: Session,
    scripted: ScriptedModel,
) -> None:
    def answer(body: Body) -> Reply:
        return Reply(status=400, text=words) if is_refused(body) else Reply(text="Sure.")

    scripted.default = answer
    session.system_prompt = "Be brief."
    session.params = {
        "temperature": 0.3,
        "top_p": 0.5,
        "presence_penalty": 0.1,
        "max_tokens": 100,
    }
    session.save()
    assert say(session).status == "completed"
    assert len(scripted.requests) == 2
    assert "Be brief." in str(scripted.requests[-1].json["messages"])
    assert Provider.objects.get().list_learned() == {"test-model": facts}
    assert say(session).status == "completed"
    assert len(scripted.requests) == 3
    Provider.objects.update(base_url=scripted.base_url + "/")
    assert Provider.objects.get().list_learned() == {}
    assert say(session).status == "completed"
    assert len(scripted.requests) == 5


def test_the_field_that_a_refusal_names_apart_from_its_sentence_is_read(
    session: Session, scripted: ScriptedModel
) -> None:
    refusal = build_refusal(400, "Unsupported value.", param="temperature", code="unsupported")
    scripted.default = lambda body: refusal if "temperature" in body else Reply(text="Sure.")
    session.params = {"temperature": 0.3}
    session.save()
    assert [say(session).status for _ in range(2)] == ["completed"] * 2
    assert len(scripted.requests) == 3


def test_a_value_that_is_refused_is_told(session: Session, scripted: ScriptedModel) -> None:
    scripted.default = Reply(status=400, text="temperature 参数取值范围 [0, 1]")
    session.params = {"temperature": 1.7}
    session.save()
    assert say(session).status == "failed"
    assert len(scripted.requests) == 1


def test_several_facts_are_learned_of_one_request(
    session: Session, scripted: ScriptedModel
) -> None:
    def answer(body: Body) -> Reply:
        for name in ("stream_options", "temperature", "top_p"):
            if name in body:
                return Reply(status=422, text=f"Unknown field: {name}")
        return Reply(text="Sure.")

    scripted.default = answer
    session.params = {"temperature": 0.3, "top_p": 0.5}
    session.save()
    assert say(session).status == "completed"
    assert len(scripted.requests) == 4
    facts = Provider.objects.get().list_learned()["test-model"]
    assert facts == {"without": ["stream_options", "temperature", "top_p"]}


def test_what_did_not_help_is_not_learned(session: Session, scripted: ScriptedModel) -> None:
    scripted.default = Reply(status=400, text="Unsupported parameter: temperature")
    session.params = {"temperature": 0.3}
    session.save()
    assert say(session).status == "failed"
    assert len(scripted.requests) == 2
    assert Provider.objects.get().list_learned() == {}


def test_an_operators_option_goes_before_what_was_learned(
    session: Session, scripted: ScriptedModel
) -> None:
    Provider.objects.update(
        options={"max_tokens_field": "max_tokens"},
        learned={
            "address": scripted.base_url,
            "models": {"test-model": {"max_tokens_field": "max_completion_tokens"}},
        },
    )
    session.refresh_from_db()
    session.params = {"max_tokens": 100}
    session.save()
    assert say(session).status == "completed"
    assert "max_tokens" in scripted.requests[-1].json


def test_a_range_is_no_unknown_field(session: Session, scripted: ScriptedModel) -> None:
    scripted.default = Reply(status=400, text="temperature must be between 0 and 2")
    session.params = {"temperature": 0.3}
    session.save()
    assert say(session).status == "failed"
    assert len(scripted.requests) == 1


# What the server refuses in words that nobody knows, and what is learned.
UNKNOWN_WORDS: list[tuple[Callable[[Body], bool], Body, list[str]]] = [
    (lambda body: "temperature" in body, {"without_values": ["temperature=0.3"]}, ["temperature"]),
    (lambda body: "top_p" in body, {"without_values": ["top_p=0.5"]}, ["top_p"]),
    (lambda body: "seed" in body, {"without_values": ["seed=7"]}, ["seed"]),
    (lambda body: bool({"temperature", "top_p"} & {*body}),
     {"without_values": ["temperature=0.3", "top_p=0.5"]}, ["temperature", "top_p"]),
    (lambda body: body.get("temperature", 0) < 0.5 and "temperature" in body,
     {"without_values": ["temperature=0.3"]}, ["temperature"]),
    (lambda body: body["max_tokens"] > 2_000, {"output_limit": 2_000}, []),
    (lambda body: body["max_tokens"] > 1_100, {"output_limit": 1_000}, []),
    (lambda body: body["max_tokens"] > 1_100 or bool({"temperature", "top_p", "seed"} & {*body}),
     {"output_limit": 500, "without_values": ["seed=7", "temperature=0.3", "top_p=0.5"]},
     ["seed", "temperature", "top_p"]),
]  # fmt: skip
WORDS = [
    "Sampling options are not accepted by this model.",
    "La requête contient une option que ce service refuse.",
    "这个请求不被接受。",
]


@pytest.mark.parametrize(("is_refused", "facts", "left_out"), UNKNOWN_WORDS)
@pytest.mark.parametrize("words", mark_others_slow(WORDS))
def test_what_is_refused_in_unknown_words_is_found_once_and_the_user_is_told(
    words: str,
    is_refused: Callable[[Body], bool],
    facts: Body,
    left_out: list[str],
    session: Session,
    scripted: ScriptedModel,
) -> None:
    refusal = Reply(status=400, text=words)
    scripted.default = lambda body: refusal if is_refused(body) else Reply(text="Sure.")
    session.params = {"temperature": 0.3, "top_p": 0.5, "seed": 7, "max_tokens": 4_000}
    session.save()
    turn = say(session)
    assert turn.status == "completed"
    assert len(scripted.requests) <= 11
    assert Provider.objects.get().list_learned() == {"test-model": facts}
    names = "temperature", "top_p", "seed"
    sent = scripted.requests[-1].json
    assert sorted(name for name in names if name not in sent) == left_out
    assert any(", ".join(left_out) in notice for notice in turn.notices) == bool(left_out)
    count = len(scripted.requests)
    assert say(session).status == "completed"
    assert len(scripted.requests) == count + 1


def test_another_value_of_a_refused_parameter_is_sent(
    session: Session, scripted: ScriptedModel
) -> None:
    refusal = Reply(status=400, text="Nein.")
    scripted.default = lambda body: (
        refusal if body.get("temperature", 1) < 0.5 else Reply(text="Sure.")
    )
    for value, sent in ((0.3, None), (0.7, 0.7), (0.2, None), (0.1, None)):
        Session.objects.filter(pk=session.pk).update(params={"temperature": value})
        assert say(session).status == "completed"
        assert scripted.requests[-1].json.get("temperature") == sent
    assert [call.json.get("temperature") for call in scripted.requests].count(0.1) == 0


def test_an_answered_form_is_not_blamed_for_a_refused_message(
    session: Session, scripted: ScriptedModel
) -> None:
    refusal = Reply(status=400, text="Das geht nicht.")
    scripted.default = lambda body: refusal if "thriller" in str(body) else Reply(text="Sure.")
    session.params = {"temperature": 0.3, "max_tokens": 4_000}
    session.save()
    assert say(session).status == "completed"
    assert say(session, "A thriller, please.").status == "failed"
    assert len(scripted.requests) == 2
    assert Provider.objects.get().list_learned() == {}


def test_what_was_taken_before_is_blamed_once_it_is_refused_for_long(
    session: Session, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.params = {"temperature": 0.3}
    session.save()
    assert say(session).status == "completed"
    refusal = Reply(status=418, text="Nein.")
    scripted.default = lambda body: refusal if "temperature" in body else Reply(text="Sure.")
    assert say(session).status == "failed"
    monkeypatch.setattr(adaptation, "_ACCEPTED_SECONDS", 0.0)
    assert say(session).status == "completed"


def test_a_refusal_of_everything_is_tried_a_few_times_in_a_minute(
    session: Session, scripted: ScriptedModel
) -> None:
    scripted.default = Reply(status=400, text="Request 4711 is not possible.")
    session.params = {"temperature": 0.3, "max_tokens": 4_000}
    session.save()
    turns = [say(session) for _ in range(3)]
    assert {turn.status for turn in turns} == {"failed"}
    assert len(scripted.requests) <= 11  # later ones without the message that was refused
    assert Provider.objects.get().list_learned() == {}


def test_a_refusal_that_does_not_come_again_teaches_nothing(
    session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(status=400, text="Nein."))
    session.params = {"temperature": 0.3}
    session.save()
    assert say(session).status == "completed"
    assert scripted.requests[-1].json["temperature"] == 0.3
    assert Provider.objects.get().list_learned() == {}
