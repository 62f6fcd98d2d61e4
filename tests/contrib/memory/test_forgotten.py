"""What the user wants forgotten is not brought back: by searching, by recall or by an extract."""

import json
from collections.abc import Iterable, Sequence

import pytest
from rest_framework.test import APIClient

from chatcore.models import Session
from chatcore.providers.base import ToolCall
from chatcore.tools import registry as tool_registry
from chatcore.transfer import importer
from compaction.models import CompactionRun
from compaction.runs import engine
from tests.support.compaction_sessions import (
    fill_session,
    list_chat_calls,
    read_prompt,
    say,
    summarize_or_chat,
)
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.stored_talk import summarize
from tests.support.summary_knobs import DOWN

pytestmark = pytest.mark.django_db(transaction=True)

BETWEEN = [
    ("user", "The invoice INV-118 is over 90 €."),
    ("assistant", "Noted."),
    ("user", "What else is there to do?"),
    ("assistant", "The tax papers."),
]


def fill(session: Session, messages: Iterable[tuple[str, str]]) -> None:
    importer.import_messages(session, [{"role": role, "content": text} for role, text in messages])


def search(session: Session, query: str) -> str:
    call = ToolCall(id="1", name="search_history", arguments=json.dumps({"query": query}))
    return tool_registry.run_tool(call, session_id=session.pk).content


CASES = [
    (
        "My doctor is called Vogel and sits in Elm Street, number 555-0143.",
        "Thanks, I noted your doctor Vogel, 555-0143.",
        "I'd rather you forgot everything I said about my doctor.",
        ("Vogel", "555-0143"),
    ),
    (
        "My sister has been in rehab since May, clinic number 0221-8841.",
        "I am sorry to hear that about your sister.",
        "Sorry, could you please delete what I told you about my sister?",
        ("rehab", "0221-8841"),
    ),
    (
        "Ma sœur habite au 14 rue des Lilas.",
        "C'est noté : 14 rue des Lilas.",
        "Peux-tu oublier ce que j'ai dit de ma soeur ?",
        ("Lilas",),
    ),
    (
        "Mein Chef wurde im Mai abgemahnt, Aktenzeichen AZ-5511.",
        "Notiert, AZ-5511.",
        "Ich möchte, dass du alles über meinen Chef vergisst.",
        ("abgemahnt", "AZ-5511"),
    ),
    (
        "Il mio medico ha lo studio in via Garibaldi, numero 555-0143.",
        "Annotato.",
        "Dimentica quello che ti ho detto sul mio medico.",
        ("Garibaldi", "555-0143"),
    ),
    (
        "My salary is 84,300 a year since March.",
        "Noted: 84,300.",
        "Please do not keep what I told you about my salary.",
        ("84,300",),
    ),
]

OTHER_LANGUAGES = {
    "pl": (
        "Hasło do alarmu mojej matki to Bursztyn-4417.",
        "Zapisałem alarm matki: Bursztyn-4417.",
        "Czy możesz zapomnieć wszystko o alarmie mojej matki?",
        ("Bursztyn-4417",),
    ),
    "ru": (
        "Моего врача зовут Петров, телефон 555-0143.",
        "Записал врача: Петров, 555-0143.",
        "Пожалуйста, забудь, что я рассказывал тебе о моём враче.",
        ("Петров", "555-0143"),
    ),
    "tr": (
        "Kızımın alerjisi var, kart numarası TR-8841.",
        "Not ettim: kızınızın alerjisi, TR-8841.",
        "Kızımın alerjisi hakkında söylediğim her şeyi unutur musun?",
        ("TR-8841",),
    ),
    "ar": (
        "طبيبي اسمه أحمد ورقمه 555-0143.",
        "سجلت رقم طبيبك 555-0143.",
        "أريدك أن تنسى ما قلته لك عن طبيبي.",
        ("555-0143",),
    ),
    "zh": (
        "我的医生叫王建国，电话是555-0143。",
        "好的，医生王建国，555-0143。",
        "请忘记我告诉你的关于我医生的事。",
        ("555-0143", "王建国"),
    ),
    "ja": (
        "主治医は田中先生で、電話は555-0143です。",
        "主治医の田中先生、555-0143ですね。",
        "主治医について話したことは忘れてください。",
        ("555-0143", "田中"),
    ),
    "ko": (
        "제 의사는 김민수이고 전화는 555-0143입니다.",
        "의사 김민수, 555-0143 기록했습니다.",
        "제 의사에 대해 말한 것은 잊어 주세요.",
        ("555-0143", "김민수"),
    ),
}
CASES += OTHER_LANGUAGES.values()


@pytest.mark.parametrize("policy", ["oneclaw", "chatcore"])
@pytest.mark.parametrize("language", OTHER_LANGUAGES)
def test_in_any_language_it_is_not_sent_after_a_compaction(
    session: Session, scripted: ScriptedModel, api: APIClient, policy: str, language: str
) -> None:
    told, reply, request_to_forget, secrets = OTHER_LANGUAGES[language]
    Session.objects.filter(pk=session.pk).update(policy=policy)
    fill(session, [("user", told), ("assistant", reply), *BETWEEN])
    fill(session, [("user", request_to_forget), ("assistant", "Ok.")])
    fill_session(session)
    scripted.default = summarize_or_chat(
        summary=Reply(text=f"{told} The user goes to Porto by train and the hotel is paid.")
    )
    path = f"/api/v1/sessions/{session.pk}"
    run = api.post(f"{path}/compact", {"wait": True}).json()
    assert run["status"] == "applied", run["reason"]
    preview = api.get(f"{path}/context/preview").json()
    sent = json.dumps([preview["system"], preview["messages"]], ensure_ascii=False)
    assert not [secret for secret in secrets if secret in sent], sent


@pytest.mark.parametrize("policy", ["", "chatcore"])
@pytest.mark.parametrize(("told", "reply", "request_to_forget", "secrets"), CASES)
def test_search_history_does_not_find_it(
    session: Session,
    policy: str,
    told: str,
    reply: str,
    request_to_forget: str,
    secrets: Sequence[str],
) -> None:
    Session.objects.filter(pk=session.pk).update(policy=policy)
    fill(session, [("user", told), ("assistant", reply), *BETWEEN])
    assert all(secret in search(session, told) for secret in secrets)
    fill(session, [("user", request_to_forget), ("assistant", "I will not use it any more.")])
    found = search(session, told)
    assert not any(secret in found for secret in secrets), found
    assert "INV-118" in search(session, "the invoice")


INDIRECT = [
    ("My sister has the number 555-0143.", "Could you wipe whatever I said regarding my sister?"),
    (
        "My psychiatrist has the number 555-0143.",
        "I'd rather you didn't keep the stuff about my psychiatrist.",
    ),
    ("My PIN hint is 555-0143.", "Let's pretend I never mentioned the PIN hint."),
    (
        "Meine Ärztin hat die Nummer 555-0143.",
        "Die Sache mit meiner Ärztin kannst du wieder vergessen.",
    ),
    ("Meine Ärztin hat die Nummer 555-0143.", "Tu so, als hätte ich meine Ärztin nie erwähnt."),
    ("Mon médecin a le numéro 555-0143.", "Fais comme si je n'avais rien dit sur mon médecin."),
    ("Mon médecin a le numéro 555-0143.", "Ne garde rien de ce que je t'ai dit sur mon médecin."),
    ("Mi médico tiene el número 555-0143.", "Haz como si nunca te hubiera hablado de mi médico."),
    ("Mi médico tiene el número 555-0143.", "Quita de tu memoria lo de mi médico."),
    (
        "Il mio medico ha il numero 555-0143.",
        "Togli dalla memoria quello che ho detto sul mio medico.",
    ),
    ("O meu médico tem o número 555-0143.", "Faz de conta que nunca te falei do meu médico."),
    ("Mijn dokter heeft het nummer 555-0143.", "Doe alsof ik nooit over mijn dokter heb verteld."),
]


@pytest.mark.parametrize(("told", "request_to_forget"), INDIRECT)
def test_an_indirect_request_is_one(session: Session, told: str, request_to_forget: str) -> None:
    fill(session, [("user", told), *BETWEEN, ("user", request_to_forget)])
    assert "555-0143" not in search(session, told)


@pytest.mark.parametrize(
    ("told", "no_request"),
    [
        ("Die Nummer ist 555-0143.", "Das darfst du nicht vergessen."),
        ("Die Nummer ist 555-0143.", "Das kann man leicht vergessen."),
        ("The dog has the number 555-0143.", "You can't keep the dog in the office."),
        ("My teacher has the number 555-0143.", "Act as if you were my teacher."),
        ("Mon professeur a le numéro 555-0143.", "Fais comme si tu étais mon professeur."),
        ("Hasło do alarmu to 555-0143.", "Zapomniałem hasła do alarmu."),
        ("Hasło do alarmu to 555-0143.", "Nie zapomnij o alarmie."),
        ("Пароль сигнализации 555-0143.", "Я забыл пароль сигнализации."),
        ("Alarm kodu 555-0143.", "Alarm kodunu unutma lütfen."),
        ("رقم طبيبي 555-0143.", "لا تنس طبيبي."),
        ("我的医生的电话是555-0143。", "昨天我忘记去看医生了。"),
        ("我的医生的电话是555-0143。", "请不要忘记我的医生。"),
        ("医者の電話は555-0143です。", "医者に行くのを忘れてしまいました。"),
        ("의사 전화는 555-0143입니다.", "의사에게 가는 것을 잊지 마세요."),
    ],
)
def test_what_is_no_request_removes_nothing(session: Session, told: str, no_request: str) -> None:
    fill(session, [("user", told), ("user", no_request)])
    assert "555-0143" in search(session, told)


def test_what_is_said_again_is_found(session: Session) -> None:
    fill(
        session,
        [
            ("user", "My doctor has the number 555-0143."),
            ("user", "Forget what I told you about my doctor."),
            ("user", "My new doctor has the number 555-0177."),
        ],
    )
    found = search(session, "doctor number")
    assert "555-0143" not in found
    assert "555-0177" in found


def test_the_rest_of_a_message_is_found(session: Session) -> None:
    told = "My doctor has the number 555-0143. The dentist has the number 555-0188."
    fill(session, [("user", told), ("user", "Forget what I told you about my doctor.")])
    found = search(session, "number")
    assert "555-0143" not in found
    assert "555-0188" in found


def test_recall_does_not_bring_it_back(session: Session, scripted: ScriptedModel) -> None:
    Session.objects.filter(pk=session.pk).update(policy="chatcore")
    told = "My locker at the swimming pool has the number 4711."
    fill(session, [("user", told), ("assistant", "Locker 4711 it is."), *BETWEEN])
    fill(session, [("user", "Please forget what I said about my locker."), ("assistant", "Done.")])
    summarize(session, "They talked of small things.", boundary_seq=7)
    session.refresh_from_db()
    say(session, "What was the number of my locker at the swimming pool?")
    assert "4711" not in json.dumps(list_chat_calls(scripted)[-1].json)


TAKEN_BACK = [
    ("user", "My doctor Vogel has the number 555-0143."),
    ("assistant", "Your doctor has 555-0143, noted."),
    ("user", "The meeting with the auditors is on 14 March 2031. The budget is 6,180 euros."),
    ("assistant", "So the auditors come on 14 March 2031."),
    ("user", "Please forget what I told you about my doctor."),
    ("assistant", "Done."),
    ("user", "Oops, I was wrong about the meeting with the auditors: it's 21 March 2031."),
    ("assistant", "Noted."),
]
COPY = (
    "The user has a doctor, Vogel, with the number 555-0143. The budget is 6,180 euros. "
    "The meeting with the auditors is on 14 March 2031."
)


def compact(session: Session, policy: str) -> CompactionRun:
    Session.objects.filter(pk=session.pk).update(policy=policy)
    session.refresh_from_db()
    fill_session(session)
    run = engine.compact_now(session.pk, trigger="manual", overrides={"summary": {"retries": 0}})
    assert run.status == "applied", run.reason
    return run


def read_request(session: Session, scripted: ScriptedModel) -> str:
    """Say something, and return the request without the messages that are sent as they are."""
    session.refresh_from_db()
    say(session)
    return json.dumps(list_chat_calls(scripted)[-1].json, ensure_ascii=False)


def is_after_its_correction(text: str) -> bool:
    newer, older = text.find("21 March 2031"), text.find("14 March 2031")
    return newer >= 0 and (older < 0 or "was: “The meeting with the auditors is on 14" in text)


def test_an_extract_keeps_to_what_was_taken_back(session: Session, scripted: ScriptedModel) -> None:
    fill(session, TAKEN_BACK)
    scripted.default = summarize_or_chat(summary=DOWN)
    summary = compact(session, "chatcore").summary_after or ""
    assert "Extract" in summary
    assert "555-0143" not in summary
    assert "Vogel" not in summary
    assert "6,180" in summary
    assert is_after_its_correction(summary)
    assert summary.count("14 March 2031") == 1


@pytest.mark.parametrize("policy", ["oneclaw", "chatcore"])
def test_a_summary_that_keeps_it_is_mended(
    session: Session, scripted: ScriptedModel, policy: str
) -> None:
    fill(session, TAKEN_BACK)
    scripted.default = summarize_or_chat(summary=Reply(text=COPY))
    compact(session, policy)
    prompt = read_prompt(scripted)
    instruction = prompt.rpartition("</transcript>")[2]
    assert TAKEN_BACK[4][1] in instruction
    assert TAKEN_BACK[6][1] in instruction
    request = read_request(session, scripted)
    assert "555-0143" not in request
    assert "6,180" in request
    assert is_after_its_correction(request)


def test_without_anything_taken_back_the_prompt_is_as_it_was(
    session: Session, scripted: ScriptedModel
) -> None:
    fill(session, TAKEN_BACK[2:4])
    scripted.default = summarize_or_chat(summary=Reply(text=COPY))
    assert compact(session, "oneclaw").summary_after == COPY
    assert "took the following back" not in read_prompt(scripted)


def test_numbers_of_one_name_correct_nothing_that_is_about_something_else(
    session: Session, scripted: ScriptedModel
) -> None:
    said = [
        ("user", "The roof of the barn costs 4,210 euros, as we said in point 70."),
        ("assistant", "Noted."),
        ("user", "The dog needs his vaccine before the ferry leaves, as we said in point 126."),
        ("user", "The van is back on Friday, see point 9. The lease ends in May, see point 12."),
    ]
    fill(session, said)
    text = "The roof of the barn costs 4,210 euros (point 70). The van is back on Friday (point 9)."
    scripted.default = summarize_or_chat(summary=Reply(text=text))
    assert compact(session, "oneclaw").summary_after == text
    assert "took the following back" not in read_prompt(scripted)


def test_an_extract_has_no_half_of_a_fence(session: Session, scripted: ScriptedModel) -> None:
    clauses = "\n".join(f"Clause {number} costs {number * 13} euros." for number in range(40))
    fenced = f'<attached_file name="c.txt">\n{clauses}\n</attached_file>'
    fill(session, [("user", f"Always answer briefly.\n\n{fenced}"), ("assistant", "I will.")])
    scripted.default = summarize_or_chat(summary=DOWN)
    summary = compact(session, "chatcore").summary_after or ""
    assert "Clause 39 costs" in summary or "Clause 1 costs" in summary
    assert "attached_file" not in summary
