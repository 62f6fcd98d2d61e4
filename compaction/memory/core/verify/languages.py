"""Which language a text is written in: by its script, or by its most frequent words."""

import re
from collections import Counter
from collections.abc import Iterable

MIN_HITS = 3  # fewer frequent words do not tell a language
LEAD = 1.6  # the first language must have so many times the words of the second
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
# Words that are frequent in one of these languages, with as few as possible that two share.
_FREQUENT = {
    "en": "the and of to is are was were that this with for from have has had not but they you "
    "will would should which what when there their been an it as by at or be on his her",
    "de": "der die das und ist nicht ein eine einen einem mit für auf den dem von zu sich auch "
    "werden wird wurde soll sollte muss hat haben ich wir sie er dass daß bei nach aus oder aber "
    "noch nur wie im am zum zur als kann keine kein",
    "fr": "le la les des du et est une un dans pour pas que qui sur avec au aux ce cette sont ont "
    "il elle nous vous par plus mais ne été être ses leur",
    "es": "el los las una y es en que por con para del al se no su como más pero está son ha "
    "fue sus lo este esta también ser sobre",
    "it": "il lo gli una e è di che per con non del della nel si sono ha più ma come anche al "
    "questo questa stato dei delle alla",
    "pt": "o os as uma e é em que por com para do da dos das se não seu como mais mas está são "
    "foi ao na no também ser",
    "nl": "de het een en van is niet dat op te zijn met voor aan er ook maar wordt door naar heeft "
    "hebben bij uit deze wel moet geen",
    "pl": "i w na z do się nie jest to że o jak ale po przez dla są od za który może być oraz",
    "sv": "och att det är som en på av för med till den inte har de ett om men var vi kan ska",
    "da": "og at det er en på af for med til den ikke har de et om men var vi kan skal som",
    "tr": "ve bir bu için ile da de olarak çok daha olan gibi kadar sonra en ama var değil",
    "fi": "ja on ei että se oli hän mutta ovat kun niin myös joka kuin sen ole",
    "cs": "a je na se že v s z do to jako ale pro by o tak podle jsou není",
}
FREQUENT_WORDS = {language: frozenset(words.split()) for language, words in _FREQUENT.items()}
_SCRIPTS = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("zh", re.compile(r"[\u4e00-\u9fff]")),
    ("ko", re.compile(r"[\uac00-\ud7af]")),
    ("ru", re.compile(r"[\u0400-\u04ff]")),
    ("el", re.compile(r"[\u0370-\u03ff]")),
    ("ar", re.compile(r"[\u0600-\u06ff]")),
    ("he", re.compile(r"[\u0590-\u05ff]")),
    ("th", re.compile(r"[\u0e00-\u0e7f]")),
    ("hi", re.compile(r"[\u0900-\u097f]")),
)
KANA_SHARE = 0.1  # of the letters; only Japanese has kana
SCRIPT_SHARE = 0.3  # of the letters; one character of Chinese is a word


def detect_language(text: str, *, min_hits: int = MIN_HITS) -> str | None:
    """Return the code of a text's language; None where too few words tell it."""
    letters = sum(map(str.isalpha, text))
    for language, script in _SCRIPTS:
        count = len(script.findall(text)) if not text.isascii() else 0
        share = KANA_SHARE if language == "ja" else SCRIPT_SHARE
        if count >= 2 and count >= share * letters:
            return language
    counts: Counter[str] = Counter()
    for word in _WORD.findall(text.casefold()):
        counts.update(code for code, words in FREQUENT_WORDS.items() if word in words)
    ranking = counts.most_common(2)
    if not ranking or ranking[0][1] < min_hits:
        return None
    if len(ranking) == 2 and ranking[0][1] < LEAD * ranking[1][1]:
        return None
    return ranking[0][0]


def count_languages(texts: Iterable[str]) -> Counter[str]:
    """Return how many of these texts are written in each language; unclear ones do not count."""
    languages = (detect_language(text, min_hits=2) for text in texts)
    return Counter(language for language in languages if language)
