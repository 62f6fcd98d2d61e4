"""Excerpts: the sentences of a long message that bear on a question."""

from compaction.memory.recall import QuestionWords, cut_excerpt, split_sentences

LONG_TEXT = (
    "We talked of the weather for a while. The garden needs some water. "
    "My locker at the pool has the number 4711. It sticks a little. "
    "Then we went home. The rest of the evening was quiet and nothing happened."
)


def make_words(question: str, *texts: str) -> QuestionWords:
    return QuestionWords(question, texts or (LONG_TEXT,))


def test_the_best_sentence_comes_with_those_beside_it() -> None:
    words = make_words("Which number has my locker?")
    sentences = split_sentences(LONG_TEXT)
    excerpt = cut_excerpt(sentences, words, 70)
    assert excerpt.text == "My locker at the pool has the number 4711. It sticks a little."
    assert excerpt.best_sentence == sentences[2]
    assert excerpt.rating > 0
    assert cut_excerpt(sentences, words, 10).text == "My locker at the poo"
    assert cut_excerpt(sentences, words, 1_000).text == LONG_TEXT


def test_a_rare_word_counts_for_more_than_a_frequent_one() -> None:
    texts = ["The pool is open.", "The pool is closed.", "The locker is closed."]
    words = make_words("pool locker", *texts)
    assert words.rate(texts[2]) > words.rate(texts[0]) > 0
    assert words.rate("Nothing of it.") == 0


def test_words_of_every_text_make_no_question() -> None:
    assert make_words("And what about that, please?").is_empty
    assert not make_words("And what about Minka?").is_empty
    for text in ("Thanks, that helps!", "Shorter, please.", "Danke, und jetzt bitte kürzer."):
        assert make_words(text).is_empty
    assert make_words("").is_empty


def test_sentences_end_where_languages_end_them() -> None:
    text = "Eins ist rot! 二是绿的。三是蓝的。\n- four\n\nfive?"
    assert split_sentences(text) == [
        "Eins ist rot!",
        "二是绿的。",
        "三是蓝的。",
        "- four",
        "five?",
    ]
