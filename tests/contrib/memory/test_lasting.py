"""What lasts, as the call that writes a summary names it, and what code keeps of that."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from rest_framework.test import APIClient

from chatcore.models import Message, Session
from chatcore.transfer.exporter import export_session
from chatcore.transfer.importer import import_session
from chatcore.turns import deletion
from compaction.memory.models import LedgerLine
from compaction.models import CompactionRun
from compaction.runs import engine
from models_registry.models import AiModel, Provider
from tests.support.compaction_sessions import (
    list_chat_calls,
    list_summary_calls,
    read_prompt,
    say,
    summarize_or_chat,
)
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)

Mark = Mapping[str, object]
SUMMARY = "They talked about a trip to Lisbon."


@pytest.fixture
def session(session: Session, scripted: ScriptedModel) -> Session:
    """A session under the preset that keeps a ledger."""
    Session.objects.filter(pk=session.pk).update(policy="chatcore")
    AiModel.objects.update(context_window_size=32_768)
    scripted.default = summarize_or_chat(Reply(text=SUMMARY))
    session.refresh_from_db()
    return session


def write_block(*marks: Mark, summary: str = SUMMARY) -> Reply:
    lines = "\n".join(json.dumps(mark, ensure_ascii=False) for mark in marks)
    return Reply(text=f"{summary}\n\n```lasting\n{lines}\n```")


def add_small_talk(session: Session) -> None:
    """Store long answers of the model, and questions that say nothing."""
    session.refresh_from_db()
    start = session.last_seq
    Message.objects.bulk_create(
        Message(
            session=session,
            seq=seq,
            role="assistant" if seq % 2 == start % 2 else "user",
            content="lisbon trip " * 160 if seq % 2 == start % 2 else "?",
        )
        for seq in range(start + 1, start + 81)
    )
    Session.objects.filter(pk=session.pk).update(last_seq=start + 80)
    session.refresh_from_db()


def compact(session: Session, scripted: ScriptedModel, *marks: Mark) -> CompactionRun:
    scripted.default = summarize_or_chat(write_block(*marks))
    add_small_talk(session)
    run = engine.compact_now(session.pk, trigger="manual")
    assert run.status == "applied", run.reason
    session.refresh_from_db()
    return run


def read_next_request(session: Session, scripted: ScriptedModel) -> str:
    say(session)
    return json.dumps(list_chat_calls(scripted)[-1].json, ensure_ascii=False)


def list_named(session: Session) -> list[tuple[str, str, str]]:
    rows = LedgerLine.objects.filter(session=session).exclude(holds="").order_by("seq", "id")
    return list(rows.values_list("kind", "text", "holds"))


def test_what_no_pattern_knows_is_kept_in_the_users_own_words(
    session: Session, scripted: ScriptedModel
) -> None:
    say(session, "Morning! my dad's on warfarin, so go easy with the herbs. What about tea?")
    said = {"said": "My dad's on  warfarin", "kind": "fact", "until": "always"}
    run = compact(session, scripted, said)
    sentence = "my dad's on warfarin, so go easy with the herbs."
    assert list_named(session) == [("fact", sentence, "always")]
    assert sentence in read_next_request(session, scripted)
    assert run.summary_after
    assert run.summary_after.endswith(SUMMARY)
    assert run.provider_calls == 1
    lasting = run.verification["lasting"]
    assert (lasting["named"], lasting["kept"], lasting["not_said"]) == (1, 1, 0)
    assert lasting["input_tokens"] > 100
    assert lasting["output_tokens"] > 10


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("无论如何都不要提合并的事。今天天气很好。", "无论如何都不要提合并的事"),
        ("Nunca escriba los nombres de los pacientes. ¿Qué tal?", "nunca escriba los nombres"),
        ("ตอบสั้น ๆ เสมอนะ", "ตอบสั้น ๆ เสมอ"),
        ("لا تذكر اسم المريض أبدا. شكرا", "لا تذكر اسم المريض أبدا"),
        ("うちは全部Postgresqlです。よろしく。", "うちは全部Postgresqlです"),
        ("환자 이름은 절대 쓰지 마세요. 감사합니다.", "환자 이름은 절대 쓰지 마세요"),
        ("Никогда не пишите имена пациентов. Спасибо!", "никогда не пишите имена"),
        ("אל תזכיר את שם המטופל. תודה!", "אל תזכיר את שם המטופל"),
        ("N'écris jamais le nom des patients. Merci !", "n’écris jamais le nom"),
        ("Hasta adlarını asla yazma. Teşekkürler!", "Hasta adlarını asla yazma"),
        ("मरीज़ का नाम कभी न लिखें। धन्यवाद।", "मरीज़ का नाम कभी न लिखें"),
        ("Nigdy nie podawaj nazwisk. Dzięki!", "Nigdy nie podawaj nazwisk"),
    ],
)
def test_it_is_kept_in_any_language(
    session: Session, scripted: ScriptedModel, message: str, said: str
) -> None:
    say(session, message)
    compact(session, scripted, {"said": said, "kind": "rule", "until": "always"})
    [(kind, text, _)] = list_named(session)
    assert kind == "rule"
    assert said.casefold().replace("’", "'") in text.casefold()


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("Please keep the tone light.", "keep the tone heavy"),
        ('He said "never push on Fridays" and laughed.', "never push on Fridays"),
        (
            "Here is the mail from my landlord:\nThe garden is closed in May.",
            "The garden is closed",
        ),
        ("> the garden is closed in May\nWhat does that mean?", "the garden is closed in May"),
        ("```\ngarden: closed\n```\nWhat is that?", "garden: closed"),
    ],
)
def test_what_the_user_does_not_say_is_not_kept(
    session: Session, scripted: ScriptedModel, message: str, said: str
) -> None:
    say(session, message)
    compact(session, scripted, {"said": said, "kind": "rule", "until": "always"})
    assert list_named(session) == []


def test_a_pasted_text_is_kept_where_the_user_says_that_it_applies(
    session: Session, scripted: ScriptedModel
) -> None:
    say(session, "These are our agreed rates, keep them:\n> design: ninety an hour")
    mark = {"said": "design: ninety an hour", "kind": "fact", "until": "always"}
    compact(session, scripted, {**mark, "applies": "whatever he says, keep them"})
    assert list_named(session) == []
    say(session, "Once more, these are our agreed rates, keep them:\n> design: ninety an hour")
    compact(session, scripted, {**mark, "applies": "these are our agreed rates, keep them"})
    assert list_named(session) == [("fact", "> design: ninety an hour", "always")]


def test_a_newer_line_replaces_the_one_that_the_model_names_until_its_message_goes(
    session: Session, scripted: ScriptedModel, api: APIClient
) -> None:
    say(session, "We're a Postgres shop.")
    compact(session, scripted, {"said": "We're a Postgres shop", "kind": "fact"})
    turn = say(session, "The whole team has gone over to MariaDB in the meantime.")
    compact(
        session,
        scripted,
        {"said": "The whole team has gone over to MariaDB", "kind": "fact", "replaces": 1},
    )
    assert "1. [fact, message 1] We're a Postgres shop." in read_prompt(scripted, -1)
    request = read_next_request(session, scripted)
    assert "in the meantime. (was: “We're a Postgres shop.”" in request
    url = f"/api/v1/sessions/{session.pk}/ledger"
    old, new = api.get(url).json()["results"]
    assert (old["corrected_by"], old["holds"]) == (new["message"], "always")
    deletion.delete_message(turn.session.messages.get(pk=new["message"]))
    assert api.get(url).json()["results"][0]["corrected_by"] is None


def test_what_ends_a_line_is_no_line_itself(session: Session, scripted: ScriptedModel) -> None:
    say(session, "Until the audit is over, mail goes through Nadia.")
    mark = {"said": "mail goes through Nadia", "kind": "rule", "until": "task"}
    compact(session, scripted, mark)
    assert "mail goes through Nadia" in read_next_request(session, scripted)
    say(session, "Phew, the audit is behind us.")
    compact(session, scripted, {"ended": 1, "said": "the audit is behind us"})
    request = read_next_request(session, scripted)
    assert "mail goes through Nadia" not in request
    assert "the audit is behind us" not in request


def test_what_was_never_meant_to_last_goes_unless_it_is_older_or_pinned(
    session: Session, scripted: ScriptedModel
) -> None:
    say(session, "Never use the word synergy from now on.")
    compact(session, scripted)
    say(session, "Please never show the last row, thanks.")
    compact(session, scripted, {"ended": 1}, {"ended": 2}, {"ended": 99})
    request = read_next_request(session, scripted)
    assert "Never use the word synergy" in request
    assert "the last row" not in request


def test_what_a_user_dropped_does_not_come_back(
    session: Session, scripted: ScriptedModel, api: APIClient
) -> None:
    say(session, "Never use the word synergy from now on.")
    compact(session, scripted)
    line = LedgerLine.objects.get(session=session)
    url = f"/api/v1/sessions/{session.pk}/ledger/{line.pk}"
    assert api.patch(url, {"status": "dropped"}, format="json").status_code == 200
    compact(session, scripted, {"said": "Never use the word synergy", "kind": "rule"})
    assert "synergy" not in read_next_request(session, scripted)


@pytest.mark.parametrize(
    "block",
    [
        "```lasting\n```",
        "```lasting\nnonsense\n{\n```",
        '```lasting\n{"said": 7, "kind": []}\n[]\n{"ended": true}\n{"ended": 0}',
        "",
    ],
)
def test_a_broken_block_loses_only_itself(
    session: Session, scripted: ScriptedModel, block: str
) -> None:
    scripted.default = summarize_or_chat(Reply(text=f"{SUMMARY}\n{block}"))
    add_small_talk(session)
    run = engine.compact_now(session.pk, trigger="manual")
    assert run.status == "applied"
    assert run.summary_after
    assert run.summary_after.endswith(SUMMARY)
    assert list_named(session) == []


INVENTED = [{"said": f"an invented sentence {n}", "kind": "fact"} for n in range(4)]
EVERYTHING = [f"Sentence number {n} is about the weather." for n in range(14)]


@pytest.mark.parametrize("is_everything", [True, False])
def test_a_model_that_cannot_do_it_is_not_asked_again_for_a_day(
    session: Session, scripted: ScriptedModel, is_everything: bool
) -> None:
    say(session, " ".join(EVERYTHING))
    marks: Any = [{"said": each, "kind": "fact"} for each in EVERYTHING]
    scripted.default = summarize_or_chat(
        write_block(*(marks if is_everything else INVENTED)), Reply(text="Sunny.")
    )
    add_small_talk(session)
    engine.compact_now(session.pk, trigger="manual")
    assert "```lasting" in read_prompt(scripted, -1)
    assert list_named(session) == []
    add_small_talk(session)
    engine.compact_now(session.pk, trigger="manual")
    assert "```lasting" not in read_prompt(scripted, -1)
    Provider.objects.get().doubt_learned()
    add_small_talk(session)
    engine.compact_now(session.pk, trigger="manual")
    assert "```lasting" in read_prompt(scripted, -1)


def test_a_small_model_is_never_asked(session: Session, scripted: ScriptedModel) -> None:
    Provider.objects.update(options={"summary_headings": "bare"})
    compact(session, scripted)
    assert "```lasting" not in read_prompt(scripted)


def test_other_systems_are_not_asked(session: Session, scripted: ScriptedModel) -> None:
    Session.objects.filter(pk=session.pk).update(policy="oneclaw")
    compact(session, scripted)
    assert list_summary_calls(scripted)
    assert "```lasting" not in read_prompt(scripted)


def test_it_goes_with_an_export(session: Session, scripted: ScriptedModel) -> None:
    say(session, "We're a Postgres shop.")
    compact(session, scripted, {"said": "We're a Postgres shop", "kind": "fact"})
    document = json.loads(json.dumps(export_session(session)))
    assert session.owner
    copy = import_session(session.owner, document)
    assert list_named(copy) == list_named(session) != []
