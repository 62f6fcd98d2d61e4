"""The estimate by features: near an exact tokenizer, fast, and robust against odd input."""

import pytest

from compaction.core.estimate import Measurement, build_counter, measure
from compaction.core.policy import Policy
from compaction.core.presets import ONECLAW
from compaction.core.transcript import Transcript, TranscriptCall, TranscriptEntry
from textkit.token_features import estimate_by_features

BY_FEATURES = Policy.parse({"estimate": {"method": "features"}}, ONECLAW)

SAMPLES = {
    "English": (
        "The ferry leaves the harbor at seven every morning, and whoever misses it waits "
        "until noon. We had planned to be early, "
        "but the bakery on the corner had just opened its shutters, and the smell of "
        "warm bread made us forget the time. "
    ),
    "Chinese": (
        "这个系统会在对话变得太长之前自动整理上下文。旧的消息被总结成一段简短的文字,最新的消息保持原样,用户不会注意到任何变化。"
        "如果总结失败,系统只会删去请求中最早的消息,数据库里的内容永远不会改变。"
    ),
    "Japanese": (
        "会話が長くなりすぎる前に、古いメッセージは短い要約に置き換えられます。最新のメッセージはそのまま残り、"
        "データベースの内容は決して変わりません。ユーザーは何も気づかないでしょう。"
    ),
    "Korean": (
        "대화가 너무 길어지기 전에 오래된 메시지는 짧은 요약으로 바뀝니다. "
        "최신 메시지는 그대로 남고 데이터베이스의 내용은 절대 바뀌지 않습니다."
    ),
    "Russian": (
        "Прежде чем разговор станет слишком длинным, старые сообщения заменяются кратким "
        "изложением. "
        "Последние сообщения остаются без изменений, а содержимое базы данных никогда не меняется. "
    ),
    "German": (
        "Bevor das Gespräch zu lang wird, ersetzt eine kurze Zusammenfassung die älteren "
        "Nachrichten. "
        "Die neuesten Nachrichten bleiben unverändert, und der Inhalt der Datenbank "
        "ändert sich niemals. "
    ),
    "Python": (
        "def choose(entries, *, protected, scale=1.0):\n"
        "    total = 0\n"
        "    for index in range(len(entries) - 1, -1, -1):\n"
        "        total += entries[index].tokens\n"
        "        if total * scale > protected:\n"
        "            return index + 1\n"
        "    return 0\n"
    ),
    "JavaScript": (
        "export async function follow(url, { onEvent, signal }) {\n  const source = new "
        "EventSource(url, { withCredentials: true });\n"
        '  source.addEventListener("message.delta", (event) => onEvent(JSON.parse(event.data)));\n'
        "  signal?.addEventListener('abort', () => source.close());\n  return source;\n}\n"
    ),
    "JSON": (
        '{"id": "msg_01XkP9", "seq": 4182, "role": "tool", "tool_name": "read_file", '
        '"is_error": false, '
        '"created_at": "2026-11-21T08:41:07Z", '
        '"content": {"path": "src/app/main.py", "lines": [1, 250], "sha256": '
        '"9f86d081884c7d65"}, "tags": ["import", "code", null]}'
    ),
    "base64": (
        "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHx"
        "gljNBAAO9TXL0Y4OHwAAAABJRU5ErkJggg"
        "VGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVyIHRoZSBsYXp5IGRvZyBhbmQgdGhlbiBzb21lIG1v"
        "cmUgdGV4dCB0byBmaWxs"
    ),
    "log": (
        "[2026-11-21 08:41:07,318] INFO worker.lease: extended run 7f3c for 300 s\n"
        "[2026-11-21 08:41:09,002] WARN provider.openai: 429 from 10.0.4.17 after 1204 "
        "ms, retry in 2 s\n"
    ),
}

# Tokens of each sample in OpenAI's o200k_base vocabulary, counted by the package bpe-openai 0.1.4.
EXACT = {
    "English": 50,
    "Chinese": 66,
    "Japanese": 71,
    "Korean": 44,
    "Russian": 38,
    "German": 37,
    "Python": 65,
    "JavaScript": 67,
    "JSON": 106,
    "base64": 131,
    "log": 77,
}


def off(tokens_of_sample: float, name: str) -> float:
    """By which share a count is wrong."""
    return abs(tokens_of_sample / EXACT[name] - 1)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_short_text_of_any_kind_is_within_thirty_percent(name: str) -> None:
    assert off(estimate_by_features(SAMPLES[name]), name) < 0.30


@pytest.mark.parametrize(
    "name", ["Chinese", "Japanese", "Korean", "JSON", "base64", "log", "Python"]
)
def test_it_is_much_nearer_than_four_characters_to_a_token(name: str) -> None:
    text = SAMPLES[name]
    assert off(estimate_by_features(text), name) < off(len(text) // 4, name) / 2


def test_over_all_of_them_it_errs_by_a_tenth_where_characters_err_by_more_than_a_third() -> None:
    ours = sum(off(estimate_by_features(text), name) for name, text in SAMPLES.items()) / len(
        SAMPLES
    )
    by_characters = sum(off(len(text) // 4, name) for name, text in SAMPLES.items()) / len(SAMPLES)
    assert ours < 0.12
    assert by_characters > 0.35


@pytest.mark.parametrize(
    "odd",
    [
        "a" * 4_000,
        "Q" * 4_000,
        "7" * 4_000,
        "\n" * 4_000,
        "-" * 4_000,
        "\x00" * 4_000,
        "\U0001f600" * 4_000,
        "ሀ" * 4_000,
    ],
)
def test_a_text_without_words_still_costs_something(odd: str) -> None:
    assert 50 < estimate_by_features(odd) <= len(odd.encode())


def test_nothing_costs_nothing() -> None:
    assert estimate_by_features("") == 0
    policy = Policy.parse({"estimate": {"rounding": "floor"}}, BY_FEATURES)
    assert build_counter(policy).count_text("") == 0


def test_it_grows_with_the_text() -> None:
    for text in SAMPLES.values():
        assert estimate_by_features(text * 50) == pytest.approx(
            50 * estimate_by_features(text), rel=0.1
        )


def test_a_policy_may_count_by_features() -> None:
    message = TranscriptEntry(seq=1, role="tool", content=SAMPLES["Chinese"])
    by_characters, by_features = (
        measure(Transcript(entries=(message,)), policy) for policy in (ONECLAW, BY_FEATURES)
    )
    assert by_characters == Measurement(tokens=len(SAMPLES["Chinese"]) // 4)
    assert by_features == Measurement(tokens=int(estimate_by_features(SAMPLES["Chinese"])))


def test_calls_count_with_what_is_said() -> None:
    call = TranscriptCall(id="a", name="read_file", arguments=SAMPLES["JSON"])
    tokens_of_sample = measure(
        Transcript(entries=(TranscriptEntry(seq=1, role="assistant", calls=(call,)),)), BY_FEATURES
    ).tokens
    assert tokens_of_sample == int(estimate_by_features("read_file" + SAMPLES["JSON"]))
