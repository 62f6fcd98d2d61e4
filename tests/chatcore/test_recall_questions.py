"""Questions in ordinary words find what was said, in any language, and anywhere in a text."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from chatcore.files import intake
from chatcore.models import Message, Session, Turn
from chatcore.providers.base import ToolCall
from chatcore.search.passages import find_passages
from chatcore.search.query import search_messages
from chatcore.tools import registry as tool_registry
from tests.support.incidental_facts import write_chat

NOISE = [
    "What is the weather like in the mountains?",
    "It rains, and the wind comes from the west.",
    "Das Wetter ist heute schlecht, morgen wird es besser.",
    "Please write a poem about autumn leaves.",
    "今天的天气很好。",
    "今日は天気がいいですね。",
    "पहाड़ों में मौसम कैसा है?",
    "बारिश हो रही है और हवा पश्चिम से आ रही है।",
]

pytestmark = pytest.mark.django_db


@pytest.fixture
def chat(user: User) -> Session:
    return Session.objects.create(owner=user)


def say(session: Session, texts: Iterable[str], **fields: Any) -> None:
    start = session.messages.count() + 1
    rows = [
        Message(
            session=session,
            seq=seq,
            content=text,
            **{"role": "user" if seq % 2 else "assistant", **fields},
        )
        for seq, text in enumerate(texts, start)
    ]
    Message.objects.bulk_create(rows)
    session.last_seq = start + len(rows) - 1
    session.save()


def find(session: Session, question: str, limit: int = 10) -> list[int]:
    return [hit.seq for hit in search_messages(session.pk, question, limit)]


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("We adopted a kitten called Minka.", "What are the names of the kittens we adopted?"),
        ("Der Hausmeister repariert die Heizung am Freitag.", "Wann wird die Heizungen repariert?"),
        ("Meine Krankenversicherungskarte ist abgelaufen.", "Wo ist die Versicherungskarte?"),
        ("Die Haustür klemmt seit Tagen.", "Was war mit der Tür? Haustüren?"),
        ("我的猫叫米卡，它三岁了。", "我的猫叫什么名字？"),
        ("猫の名前はミカです。", "私の猫の名前は何ですか"),
        ("제 고양이 이름은 미카입니다.", "고양이 이름이 뭐예요?"),
        ("Call parse_http_header before the body is read.", "What does parse_http_header do?"),
        ("The bug is in src/net/outbound.py, line 40.", "Which line of src/net/outbound.py?"),
        ("The invoice is over 1,250.40 euros.", "Which invoice has 1,250.40?"),
        ("Version 4.11.2 breaks the login.", "What does 4.11.2 break?"),
        ("Mail it to ada@example.org, please.", "Whose address is ada@example.org?"),
        ("The Straße in Zürich is closed.", "Welche straße in zürich?"),
        ("I swim in the Traunsee.", "swimming in traun"),
        ("Договор с клиникой подписан в пятницу.", "Что известно о договорах?"),
        ("Η σύμβαση με την κλινική υπογράφηκε.", "Τι ξέρουμε για τις συμβάσεις;"),
        ("สัญญากับคลินิกเซ็นแล้ววันศุกร์", "สัญญาเซ็นเมื่อไหร่"),
        ("अनुबंध पर शुक्रवार को हस्ताक्षर हुए।", "अनुबंधों का क्या हुआ?"),
        ("मेरे डॉक्टर का नाम शर्मा है।", "डॉक्टर कौन है?"),
        ("मेरी लड़की स्कूल जाती है।", "लड़कियाँ कहाँ जाती हैं?"),
    ],
)
def test_a_question_finds_its_answer_first(chat: Session, text: str, question: str) -> None:
    say(chat, [*NOISE, text, *NOISE])
    assert find(chat, question)[0] == len(NOISE) + 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_most_facts_mentioned_in_passing_are_found_among_ten_hits(chat: Session, seed: int) -> None:
    texts, facts = write_chat(seed)
    say(chat, texts)
    found_count = sum(
        any(fact.value in texts[seq - 1] for seq in find(chat, fact.question)) for fact in facts
    )
    passage_count = sum(
        any(
            fact.value in passage.text
            for passage in find_passages(chat.pk, fact.question, limit=10)
        )
        for fact in facts
    )
    assert found_count >= 0.7 * len(facts)
    assert passage_count >= 0.7 * len(facts)


def test_a_question_of_forty_words_works(chat: Session) -> None:
    say(chat, [*NOISE, "The greenhouse thermostat is set to eleven degrees."])
    question = (
        "I know that we have talked about this a long time ago and I am not sure any more whether"
        " it was you or me who said it, but to how many degrees did we set the thermostat in the"
        " greenhouse?"
    )
    assert find(chat, question)[0] == len(NOISE) + 1


def test_quoted_words_must_stand_as_they_are(chat: Session) -> None:
    say(chat, ["The red bicycle is old.", "The bicycle is red.", "A red  Bicycle."])
    assert find(chat, '"red bicycle"') == [3, 1]
    assert find(chat, 'Is there a "red bicycle" that is old?')[0] == 1
    assert find(chat, '"bicycle red"') == []


@pytest.mark.parametrize(
    "question",
    ['" OR 1', "NEAR(red, blue)", "red* AND -blue", "content:red", "red & !blue | (", "'"],
)
def test_the_query_languages_of_the_databases_are_words(chat: Session, question: str) -> None:
    say(chat, ["Something red."])
    assert find(chat, question) in ([], [1])


@pytest.mark.parametrize(
    ("texts", "question"),
    [
        (
            ["The regatta is on 12 September.", "We talked about the regatta again and again."],
            "When is",
        ),
        (["Everyone pays $45 for the regatta.", "The regatta again, the regatta."], "How much is"),
        (["Be at the regatta by 7:30 am.", "The regatta, what a regatta."], "At what time is"),
        (
            ["The code for the regatta is KX-4471.", "The regatta, and a regatta code."],
            "What code has",
        ),
        (
            ["Call +44 20 555 0199 about the regatta.", "Whom to call? The regatta."],
            "Where do I call for",
        ),
        (
            ["About the regatta: ~/boats/regatta.csv", "The regatta, what a regatta."],
            "Which folder has",
        ),
        (["Die Regatta beginnt am 3. Mai.", "Die Regatta, immer die Regatta."], "Wann ist"),
        (
            ["Für die Regatta sind es 45,50 € je Boot.", "Die Regatta, teure Regatta."],
            "Wie teuer ist",
        ),
    ],
)
def test_what_a_question_asks_for_comes_before_what_only_speaks_of_it(
    chat: Session, texts: list[str], question: str
) -> None:
    """A date answers "When …?", however often other messages name the same thing."""
    say(chat, [texts[0], *NOISE, texts[1], *NOISE])
    assert find(chat, f"{question} the regatta?")[0] == 1


def test_the_parts_of_german_compounds_are_found_by_their_stems(chat: Session) -> None:
    say(chat, [*NOISE, "Nach dem Anruf ist der Lohnlauf fällig.", *NOISE])
    assert find(chat, "Was war mit den Löhnen?")[0] == len(NOISE) + 1


def test_the_answer_of_the_next_message_is_found(chat: Session) -> None:
    say(chat, [*NOISE, "Which city did Hanna's parents emigrate to?", "Perth.", *NOISE])
    seqs = find(chat, "To which city did the parents of Hanna emigrate?")
    assert seqs[:2] == [len(NOISE) + 1, len(NOISE) + 2]


def test_a_message_at_the_time_that_is_named_comes_first(chat: Session) -> None:
    say(chat, ["The plover was here."], created_at=timezone.now() - timedelta(days=1))
    say(chat, ["The plover was here."], created_at=timezone.now() - timedelta(days=40))
    say(chat, ["The plover was here."], created_at=timezone.now())
    assert find(chat, "What about the plover yesterday?")[0] == 1
    assert find(chat, "Was war gestern mit dem plover?")[0] == 1
    assert find(chat, "What about the plover today?")[0] == 3


def test_whose_words_are_asked_for_come_first(chat: Session) -> None:
    say(chat, ["Bake the bread at 230 degrees."], role="user")
    say(chat, ["Bake the bread at 250 degrees."], role="assistant")
    assert find(chat, "What did I say about the bread?")[0] == 1
    assert find(chat, "What did you say about the bread?")[0] == 2


def test_arguments_of_tool_calls_are_searched(chat: Session) -> None:
    calls = [{"id": "1", "name": "book_table", "arguments": '{"restaurant": "Löwenbräu"}'}]
    say(chat, ["Let me see."], role="assistant", tool_calls=calls)
    say(chat, NOISE)
    assert find(chat, "At the restaurant Löwenbräu, was a table booked?")[0] == 1
    chat.messages.filter(seq=1).delete()
    assert 1 not in find(chat, "restaurant")


def test_the_text_of_attached_files_is_searched(chat: Session, user: User) -> None:
    say(chat, [*NOISE, "Here is the contract."])
    text = "First clause. " * 200 + "The notice period is eleven weeks. " + "Last clause. " * 200
    file = intake.store_file(chat, name="contract.txt", data=text.encode())
    assert find(chat, "How long is the period of notice?") == []
    intake.bind_files(chat.messages.get(seq=len(NOISE) + 1), [file.pk])
    for scope in (chat.pk, user):
        hit = search_messages(scope, "How long is the period of notice?")[0]
        assert hit.seq == len(NOISE) + 1
        assert "eleven weeks" in hit.snippet
    (passage,) = find_passages(chat.pk, "How long is the period of notice?", limit=1)
    assert "The notice period is eleven weeks." in passage.text
    file.delete()
    assert find(chat, "How long is the period of notice?") == []


def test_the_best_place_of_a_long_text_is_shown_and_marked(api: APIClient, chat: Session) -> None:
    text = "A harbor. " + "Nothing here. " * 500 + "The harbor opened in 1893. " + "More. " * 500
    say(chat, [text])
    (hit,) = api.get(
        f"/api/v1/sessions/{chat.pk}/search", {"q": "When was the harbor opened?"}
    ).json()["results"]
    assert "The harbor opened in 1893." in hit["snippet"]
    words = [hit["snippet"][start:end] for start, end in hit["marks"]]
    assert words == ["harbor", "opened"]
    assert 0 < hit["score"] <= 1


def test_a_passage_is_short_and_made_of_whole_sentences(chat: Session) -> None:
    say(
        chat,
        ["One more sentence about it. " * 60 + "The anchor weighs nine tons. " * 3 + "Yes. " * 400],
    )
    (passage,) = find_passages(chat.pk, "How heavy is the anchor, how many tons?", limit=1)
    assert len(passage.text) <= 800
    assert "The anchor weighs nine tons." in passage.text
    assert passage.text[0].isupper()
    assert passage.text.endswith(".")


def test_the_score_of_a_passage_is_its_share_of_the_question(chat: Session) -> None:
    say(chat, [*NOISE, "The lighthouse keeper is called Edda.", *NOISE])

    def score(question: str) -> float:
        passages = find_passages(chat.pk, question, limit=1)
        return passages[0].score if passages else 0.0

    assert score("What is the lighthouse keeper called?") > 0.9
    assert 0 < score("Which submarine captain did the lighthouse keeper meet in Lisbon?") < 0.6
    assert score("Which submarine captain?") == 0


def test_passages_are_older_than_the_message_that_asks(chat: Session) -> None:
    say(chat, ["A plover.", "Another plover.", "Where is the plover?"])
    passages = find_passages(chat.pk, "plover", limit=9, up_to_seq=3)
    assert {passage.seq for passage in passages} == {1, 2}
    assert find_passages(chat.pk, "plover", limit=9, up_to_seq=1) == []


def test_the_tool_says_when_it_was_said_and_what_stood_next_to_it(chat: Session) -> None:
    time = datetime(2026, 3, 4, 9, 30, tzinfo=UTC)
    say(chat, ["How is the cat called?", "Minka, the cat.", "A fine name."], created_at=time)
    say(chat, ["What was the name of the cat?"])
    asking = chat.messages.get(seq=4)
    Turn.objects.create(session=chat, question=asking, lease_until=timezone.now())
    outcome = tool_registry.run_tool(
        ToolCall(id="1", name="search_history", arguments=json.dumps({"query": "cat", "limit": 1})),
        session_id=chat.pk,
    )
    first, *others = outcome.content.splitlines()
    assert first.startswith("[message 2, assistant, 2026-03-04 09:30 UTC, ")
    assert " ago] Minka, the cat." in first
    assert [line.split("]")[1] for line in others] == [" How is the cat called?", " A fine name."]
