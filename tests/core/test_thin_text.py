"""What is no summary is known without its language."""

import pytest

from compaction.summaries.validation import find_thinness

SOURCE = "\n".join(
    f"{number:04d} user: The gate of garden {number} opens with the code {4711 + number * 37}; "
    f"{person} waters the {plant} on {day} evenings, and the key lies under the {place}."
    for number, (person, plant, day, place) in enumerate(
        [
            ("Alice", "tomatoes", "Monday", "blue stone"),
            ("Bashir", "cucumbers", "Tuesday", "old bench"),
            ("Chen", "roses", "Wednesday", "water barrel"),
            ("Dorota", "pumpkins", "Thursday", "wooden box"),
            ("Emeka", "lettuce", "Friday", "red flowerpot"),
            ("Farid", "strawberries", "Saturday", "second step"),
        ]
        * 4
    )
)
PREVIOUS = (
    "The garden has six keepers. Alice has the code 4711, Bashir 4748, Chen 4785, Dorota 4822,"
    " Emeka 4859 and Farid 4896. The keys lie under the stone, the bench, the barrel, the box, the"
    " flowerpot and the step. Watering is in the evenings."
)
NO_SUMMARIES = [
    "(no changes)",
    "Same as before.",
    "No new information to add.",
    "The conversation is too long to be summarized here.",
    "Es gibt nichts Neues hinzuzufügen.",
    "Il n'y a rien à ajouter à ce résumé pour le moment.",
    "没有新的内容需要补充。",
    "Garden talk.",
    "Lo siento, pero no puedo ayudar con esa solicitud en este momento.",
    "Es tut mir leid, dabei kann ich leider nicht helfen; bitte versuche es später noch einmal.",
    "## Task\nNone captured.\n\n## Progress\nNo prior history.\n\n## Decisions\nNone recorded.\n",
    "## Aufgabe\nKeine.\n\n## Fortschritt\nNichts erfasst.\n\n## Beschlüsse\nKeine gefasst.\n",
    "Summary unavailable at this time. Please try again later with a shorter transcript.",
    # Refusals in other scripts, with the words of no list.
    "这段内容不适合由我来处理。",
    "依照使用政策，这段对话的内容恕不提供摘要，请改问其他问题，谢谢您的谅解与配合。",
    "この会話の内容は、利用規約に反する可能性があるため、要約を提供することを控えさせていただきます。",
    "이 대화의 내용은 정책에 어긋날 수 있어 요약해 드리기 어렵습니다. 다른 질문을 해 주세요.",
    "لا يمكنني تلخيص هذه المحادثة لأن محتواها قد يخالف سياسات الاستخدام، وأعتذر عن ذلك، ويسعدني أن"
    " أساعدك في أي موضوع آخر إذا رغبت في ذلك.",
    "К сожалению, содержание этой беседы нарушает правила использования, и составить её краткое"
    " изложение я не вправе. Если у вас есть другие вопросы, с удовольствием на них отвечу.",
    "ขออภัย เนื้อหานี้ขัดต่อนโยบายการใช้งาน จึงไม่สามารถสรุปให้ได้ กรุณาถามเรื่องอื่นแทน",
    "यह बातचीत उपयोग की नीतियों के विरुद्ध हो सकती है, इसलिए इसका सारांश देना संभव नहीं है।",
    # Of usual words, which any long conversation has too.
    "I would rather not go into this; it is something that should be left to someone else.",
    "This conversation is not something that can be summarized, because of what the user said.",
]


@pytest.mark.parametrize("text", NO_SUMMARIES)
@pytest.mark.parametrize("previous", [None, PREVIOUS])
def test_no_summary_is_known_as_none(text: str, previous: str | None) -> None:
    assert find_thinness(text, previous=previous, source=SOURCE, may_shrink=False)


@pytest.mark.parametrize(
    "text",
    [
        PREVIOUS,
        "Six people care for the gardens: Alice, Bashir, Chen, Dorota, Emeka and Farid. Codes begin"
        " at 4711 and rise by 37. Each waters on one evening: tomatoes on Monday, then cucumbers,"
        " roses, pumpkins, lettuce and strawberries. Codes 4748, 4785, 4822 work as well.",
        "Sechs Leute pflegen die Gärten: Alice, Bashir, Chen, Dorota, Emeka und Farid. Die Codes"
        " lauten 4711, 4748, 4785, 4822, 4859 und 4896; die Schlüssel liegen unter Steinen, Bänken,"
        " Tonnen, Kisten, Töpfen und Stufen, und gegossen wird am Abend, jeden Tag jemand anders.",
        "六个人照看花园: Alice 4711, Bashir 4748, Chen 4785, Dorota 4822, Emeka 4859, Farid 4896。"
        "钥匙放在石头、长凳、水桶、木箱、花盆和台阶下面, 每天晚上浇水, 每人一天。",
    ],
)
@pytest.mark.parametrize("previous", [None, PREVIOUS])
def test_a_summary_in_any_language_is_one(text: str, previous: str | None) -> None:
    assert find_thinness(text, previous=previous, source=SOURCE, may_shrink=False) is None


def test_a_short_talk_may_have_a_short_summary() -> None:
    assert find_thinness("Hi.", previous=None, source="user: hello", may_shrink=False) is None


def test_who_was_told_to_shorten_may_be_shorter() -> None:
    short = "Alice 4711, Bashir 4748, Chen 4785, Dorota 4822, Emeka 4859, Farid 4896: gardens."
    assert find_thinness(short, previous=PREVIOUS, source=SOURCE, may_shrink=False)
    assert find_thinness(short, previous=PREVIOUS, source=SOURCE, may_shrink=True) is None


FOREIGN_TALKS = {
    "German": "Wir wollen im Herbst den alten Schuppen abreißen und an seiner Stelle ein Haus aus"
    " Holz für die Hühner bauen, mit einem Dach aus Schindeln und einer Tür nach Süden. ",
    "Russian": "Осенью мы хотим снести старый сарай и построить на его месте деревянный домик для"
    " кур, с крышей из дранки и дверью на юг, чтобы зимой там было тепло и светло. ",
    "Greek": "Το φθινόπωρο θέλουμε να γκρεμίσουμε την παλιά αποθήκη και να χτίσουμε στη θέση της"
    " ένα ξύλινο σπιτάκι για τις κότες, με πόρτα προς τον νότο και σκεπή από σανίδες. ",
}
ENGLISH_SUMMARY = (
    "They want to tear down the old shed in autumn and to build a small house of timber for the"
    " chickens there. The roof is to be made of shingles, the door faces south, and there should be"
    " light and warmth in winter. They agreed to do most of the work themselves and to ask the"
    " neighbours for help with the roof. Still open is whether they need a permit, who buys the"
    " timber, and where the chickens live until the house is ready."
)


@pytest.mark.parametrize("language", FOREIGN_TALKS)
def test_a_summary_may_be_in_another_language_than_the_talk(language: str) -> None:
    source = "".join(f"user: {FOREIGN_TALKS[language]}" for _ in range(40))
    assert find_thinness(ENGLISH_SUMMARY, previous=None, source=source, may_shrink=False) is None


def test_a_long_text_about_something_else_is_no_summary() -> None:
    source = (
        "user: The parser reads each token of the grammar twice, and it is not clear to me why. Can"
        " we do it in one pass, or has the lookahead to be there for a reason? It would be good to"
        " know what breaks if we take it out. assistant: Lookahead separates casts from grouped"
        " expressions; without it the second alternative of every prefix rule is unreachable, and"
        " error messages point at whatever token comes last. "
    ) * 20
    assert find_thinness(ENGLISH_SUMMARY, previous=None, source=source, may_shrink=False)
