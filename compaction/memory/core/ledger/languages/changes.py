"""How people take back what they said, by language: three short lists of patterns each.

They see a sentence in lower case, with straight apostrophes and without its quotations.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangeWords:
    """What a sentence says that takes something back.

    `corrections` say that something said before is wrong, whatever it was about. `turns` say that
    something is otherwise now; they count only if an earlier line is about the same.
    `forgettings` ask to forget, and `subjects` are the words of such a request that name nothing.
    """

    corrections: str
    turns: str
    forgettings: str
    subjects: str


_INTERJECTION = r"^(?:(?:oh|ah|ups|oops|sorry|pardon|hm+|no|nein|non|ay|uy)[,.!]? )*"

CHANGES: Mapping[str, ChangeWords] = {
    "en": ChangeWords(
        corrections=(
            rf"{_INTERJECTION}(?:actually|correction|rather|wait|scratch (?:that|it)|strike that"
            r"|never ?mind|on second thoughts?|scrap)\b|^(?:no|nope|oops|sorry),"
            r"|\bi(?:'d|'ve| have| had)? (?:just )?(?:meant|misspoke|mistyped|misremembered|misread"
            r"|mixed|confused|made a mistake|gave you the wrong|told you the wrong)\b"
            r"|\b(?:was|were|is|'s) (?:wrong|mistaken|a typo|a mistake)\b|\bgot .{1,40} wrong\b"
        ),
        turns=(
            r"\bany ?more\b|\bno longer\b|\bafter all\b|\binstead\b|\bagain\b|\bnot true\b"
            r"|\b(?:is|are) over(?=[,.;!]|$)|\b(?:is|are|it's|they're|we're|i'm) now\b|\bnow\W*$"
            r"|\bfrom now on\b|\b(?:went|go|goes|gone) (?:up|down)\b|\b(?:moved|pushed|put|brought"
            r"|postponed|rescheduled|shifted|changed|switched|raised|cut|lowered|increased"
            r"|decreased)\b|\bforget (?:the|my|our|that)\b"
            # What had to be done is done.
            r"|\b(?:was|were|has been|have been|got|i|we|i've|we've|have) (?:already |just |all )?"
            r"(?:done|sent|paid|finished|completed|booked|delivered|signed|fixed|solved|settled"
            r"|cancell?ed|submitted|shipped|handed in|taken care of)\b"
            r"|\bis (?:already |all )?(?:done|finished)\b"
        ),
        forgettings=(
            r"^(?:(?:please|ok|okay|and|can you|could you|you can|i want you to|i'd like you to)"
            r",? )*(?:just )?(?:forget|erase|delete|remove|wipe|disregard"
            r"|(?:don't|do not|no longer) remember)(?: (?:what|all|everything|anything"
            r"|that|this|about|my|our|the)\b|\W*$)"
        ),
        subjects=(
            "forget erase delete remove wipe disregard tell told said say mention mentioned know"
            " known anything everything memory remember remembered please number thing things"
        ),
    ),
    "de": ChangeWords(
        corrections=(
            rf"{_INTERJECTION}(?:korrektur|moment|halt|quatsch|streich das|doch nicht|stimmt nicht"
            r"|eigentlich)\b|^nein,|\bich meinte?\b|\bhabe? (?:ich )?mich (?:vertan|geirrt"
            r"|verschrieben|vertippt|versprochen)\b|\b(?:war|ist) (?:das )?falsch\b|\bverwechselt\b"
        ),
        turns=(
            r"\bnicht mehr\b|\bkeine?[nr]? .{0,40}mehr\b|\bwieder\b|\bdoch\b|\bstattdessen\b"
            r"|\bab jetzt\b|\bjetzt\b|\bverschoben\b|\bverlegt\b|\bgeändert\b|\bvorbei\b|\berst\b"
            r"|\b(?:ist|sind|wurden?|hab|habe|haben)\b.{0,60}\b(?:erledigt|fertig|abgeschickt"
            r"|verschickt|bezahlt|gebucht|abgegeben|unterschrieben|überwiesen|storniert)\b"
        ),
        forgettings=(
            r"^(?:(?:bitte|ok|okay|und|du kannst|kannst du),? )*(?:vergiss|vergessen(?: sie)?|lösch"
            r"|lösche|streich|streiche)(?: (?:bitte )?(?:was|alles|das|die|den|meine?n?|unsere?n?)"
            r"\b|,|\W*$)"
        ),
        subjects="vergiss vergessen lösch lösche streich streiche erzählt gesagt gesagte alles",
    ),
    "fr": ChangeWords(
        corrections=(
            rf"{_INTERJECTION}(?:en fait|plutôt|attends|attendez|correction|oublie ça)\b|^non,"
            r"|\bje voulais dire\b|\bje me suis tromp|\bc'est faux\b|\bj'ai confondu\b"
        ),
        turns=r"\bne? .{1,40} plus\b|\bà nouveau\b|\bde nouveau\b|\bdésormais\b|\bmaintenant\b"
        r"|\bdéplacée?s?\b|\breportée?s?\b|\bfinalement\b"
        r"|\b(?:est|sont|a été|ai|avons) .{0,40}(?:fait|terminé|envoyé|payé|réservé|signé|réglé)"
        r"e?s?\b",
        forgettings=r"^(?:s'il te plaît,? |merci d'|tu peux |peux-tu )*"
        r"(?:oublie[rz]?|efface[rz]?|supprime[rz]?)"
        r" (?:ce que|tout|ça|mon|ma|mes|le|la|les)\b",
        subjects="oublie oubliez oublier efface effacez effacer supprime supprimez tout dit parlé"
        " raconté expliqué t'ai j'ai peux",
    ),
    "es": ChangeWords(
        corrections=(
            rf"{_INTERJECTION}(?:en realidad|mejor dicho|espera|corrección|olvida eso)\b|^no,"
            r"|\bqu(?:ise|ería) decir\b|\bme (?:equivoqué|he equivocado|confundí)\b"
        ),
        turns=r"\bya no\b|\bde nuevo\b|\botra vez\b|\bahora\b|\ba partir de ahora\b"
        r"|\baplazad|\bcambiad|\bpasó a\b|\bal final\b"
        r"|\b(?:está|están|fue|he|hemos|ha sido)\b.{0,40}\b(?:hech|terminad|enviad|pagad|reservad"
        r"|firmad)",
        forgettings=r"^(?:por favor,? )?(?:olvida|olvide|borra|borre|elimina)"
        r" (?:lo que|todo|eso|mi|mis|el|la|los|las)\b",
        subjects="olvida olvide borra borre elimina todo dije conté dicho",
    ),
}

CORRECTIONS = re.compile("|".join(each.corrections for each in CHANGES.values()))
TURNS = re.compile("|".join(each.turns for each in CHANGES.values()))
FORGETTINGS = re.compile("|".join(each.forgettings for each in CHANGES.values()))
REQUEST_WORDS = frozenset(word for each in CHANGES.values() for word in each.subjects.split())
# A sentence that begins with one of these goes on with what was spoken of.
PRONOUNS = frozenset(
    "it he she they his her its their er sie ihr ihre ihm il elle son sa ses su sus él ella".split()  # noqa: SIM905
)
# Of French and Spanish there is no other table: words that say nothing of the subject.
SMALL_WORDS = frozenset(
    """
    le la les un une des de du au aux et ou est sont mon ma mes ton ta tes son sa ses ce cette que
    qui je tu il elle nous vous ne pas plus me te se lui leur en dans sur pour par avec toujours
    jamais el los las una unos unas del al y o es son mi mis tu tus su sus lo que yo se no ya en por
    para con siempre nunca me te
    """.split()  # noqa: SIM905
)
