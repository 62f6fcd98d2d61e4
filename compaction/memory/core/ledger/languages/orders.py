"""Recognize an order without a word that says "rule", by the small words of its grammar.

"Quote prices only in euros", "Keine Emojis", "只用中文回答": an order for all to come bounds what
may x subject and no finite auxiliary, as a statement has,
and points to nothing that is present ("this", "a", "give me"), as a task for one answer does.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from compaction.memory.core.verify.languages import FREQUENT_WORDS
from textkit.stems import is_unspaced

MAX_ORDER_WORDS = 16  # a longer sentence usually holds more than one order
MAX_CHARS = 40  # the same, where no spaces stand between words


@dataclass(frozen=True, slots=True)
class Grammar:
    """Small words of a language, separated by spaces."""

    bounds: str
    statements: str  # subjects and finite auxiliaries
    present: str  # what a task or an answer points to
    subjects: str = ""  # what begins a subject at the beginning of a sentence


GRAMMARS: Mapping[str, Grammar] = {
    "en": Grammar(
        bounds="only never always no every each without instead exclusively strictly",
        statements="i he she we they there what who is are was were am be been"
        " has have had does did will would could might can't won't isn't seems came went got",
        present="this these here a an me another last first second third next attached following"
        " mind luck idea way problem wonder reason thanks rush sign one two three four five six"
        " seven eight nine",
        subjects="it that you the my our your his her their some people in",
    ),
    "de": Grammar(
        bounds="nur nie niemals immer kein keine keinen jede jeder jedes jeden ohne statt"
        " ausschließlich stets",
        statements="ich er sie es wir ihr man wer was ist sind war waren bin hat haben hatte hatten"
        " wird wurde wurden werden kann konnte geht ging gibt gab macht kommt",
        present="dieser diese dieses diesen diesem hier ein eine einen mir letzte letzten nächste"
        " wunder ahnung problem zeit idee zwei drei vier fünf sechs sieben acht neun zehn",
    ),
    "es": Grammar(
        bounds="solo sólo solamente nunca jamás siempre sin cada ningún ninguna nada",
        statements="yo él ella nosotros ellos es son está están era fue fueron había he ha han hay"
        " tiene tengo dice quien funciona",
        present="este esta estos estas esto aquí un una dame última último primera próxima hay"
        " nuevo dos tres cuatro cinco seis siete ocho nueve diez",
    ),
    "fr": Grammar(
        bounds="uniquement seulement jamais toujours sans chaque aucun aucune exclusivement pas",
        statements="je j'ai il elle on nous ils elles c'est est sont était étaient a ai ont avait"
        " fut a-t-il qui",
        present="ce cet cette ces ici un une moi donne-moi dernier dernière premier prochaine idée"
        " nouvelles problème deux trois quatre cinq six sept huit neuf dix",
    ),
    "it": Grammar(
        bounds="solo soltanto mai sempre senza ogni nessun nessuna esclusivamente",
        statements="io lui lei noi loro è sono era erano ha hanno ho abbiamo aveva c'è dice",
        present="questo questa questi queste qui un una dammi ultimo ultima primo prossimo due tre"
        " quattro cinque sei sette otto nove dieci",
    ),
    "pt": Grammar(
        bounds="só somente apenas nunca jamais sempre sem cada nenhum nenhuma",
        statements="eu ele ela nós eles elas é são está estão era foi foram tem tinha há disse",
        present="este esta estes estas isto esse essa aqui um uma dá-me última último primeiro"
        " próximo dois duas três quatro cinco seis sete oito nove dez",
    ),
}
_TABLES = {
    code: tuple(
        frozenset(words.split())
        for words in (each.bounds, each.statements, each.present, each.subjects)
    )
    for code, each in GRAMMARS.items()
}
# "I've" has a subject and an auxiliary. What ends a clause bounds nothing: "no, on Saturday".
_SUBJECT = re.compile(r"\b(?:i|you|he|she|it|we|they|that|there|who|what)['’]\w")
_ANSWER = re.compile(r"(?<![^\W\d_])[^\W\d_]++(?=\s*+(?:[,;.!]|$))")
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
# The words of Chinese and Japanese stand without spaces.
_UNSPACED_BOUND = re.compile(
    r"只(?!有|是|剩|好)|不要|不得|禁止|(?<!特)别(?=[再用写说提问给把在])|必须|一律|一定要|每[份次篇封]"
    r"|だけ|のみ|必ず|すべて|全て|ないで(?=$|ください|下さい|ね|[。！])|禁止|常に|いつも"
)
_UNSPACED_STATEMENT = re.compile(
    r"[我他她它们]们?(?!们)|[了过](?:[。！]|$)|有没有|为什么|说(?=以后)"
    r"|(?:まし|し|っ|い|え|け|べ|て[いき])た(?:[。！]|$)|(?:です|ます|せん|ある|いる|ない)(?:[。！]|$)|って"
    r"|と言|私|僕|彼"
)
_UNSPACED_PRESENT = re.compile(
    r"这[个些段篇]?|那[个些段篇]|上面|最后一|以下|给我|[一二两三四五六七八九十\d]个|この|その|上の|下の"
    r"|最後の|[一二三四五六七八九十\d]つ"
)


def is_order(text: str) -> bool:
    """Return whether a sentence in lower case, without its quotations, is such an order."""
    if not text.isascii() and any(map(is_unspaced, text)):
        return (
            len(text) <= MAX_CHARS
            and _UNSPACED_BOUND.search(text) is not None
            and not _UNSPACED_STATEMENT.search(text)
            and not _UNSPACED_PRESENT.search(text)
        )
    words = _WORD.findall(text)
    if not 2 <= len(words) <= MAX_ORDER_WORDS or _SUBJECT.search(text):
        return False
    language = _find_language(frozenset(words), _WORD.findall(_ANSWER.sub("", text)))
    if not language:
        return False
    _, statements, present, subjects = _TABLES[language]
    is_stated = words[0] in subjects or not statements.isdisjoint(words)
    return not is_stated and present.isdisjoint(words)


def _find_language(words: frozenset[str], bound_words: Collection[str]) -> str:
    """Return the language whose small words a sentence has most of; empty without a bound."""
    counts = {
        code: len(words & frozenset().union(*tables, FREQUENT_WORDS[code]))
        for code, tables in _TABLES.items()
        if not tables[0].isdisjoint(bound_words)
    }
    return max(counts, key=lambda code: counts[code], default="")
