"""How people take back what they said, by language.

Patterns see a sentence in lower case, with straight apostrophes and without its quotations; words
are compared as `fold_letters` writes them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangeWords:
    """What a sentence says that takes something back.

    `corrections` say that something said before is wrong, whatever it was about. `turns` say that
    something is otherwise now; they count only if an earlier line is about the same.
    """

    corrections: str
    turns: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ForgetWords:
    """The words of a request to forget. Each field is a list of words, separated by spaces.

    `forget` has the forms of the verb "forget" that ask for it. A verb of `erase` asks for it only
    with a word of `told` behind it: "delete what I said". A verb of `keep` asks for it only in the
    negative: "do not remember". Before the verb stand only words of these lists; one of
    `speaker` ("I") needs one of `listener` ("you") too, because "I forgot" asks for nothing.
    `negations` turn the request round. Words of `small` do not say what is to be forgotten.
    """

    forget: str
    erase: str = ""
    keep: str = ""
    told: str = ""
    openers: str = ""
    speaker: str = ""
    listener: str = ""
    negations: str = ""
    small: str = ""


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
    ),
}

CORRECTIONS = re.compile("|".join(each.corrections for each in CHANGES.values()))
TURNS = re.compile("|".join(each.turns for each in CHANGES.values()))
# A sentence that begins with one of these goes on with what was spoken of.
PRONOUNS = frozenset(
    "it he she they his her its their er sie ihr ihre ihm il elle son sa ses su sus él ella".split()  # noqa: SIM905
)
# Of the languages behind German there is no other table: `small` has their commonest words.
FORGETTING: Mapping[str, ForgetWords] = {
    "en": ForgetWords(
        forget="forget forgetting forgot unlearn",
        erase="erase erasing delete deleting remove wipe disregard disregarding ignore discard",
        keep="remember keep store retain memorize",
        told="told tell said say mentioned memory know known remember remembered everything"
        " anything",
        openers=(
            "please ok okay and so now just then well oh also actually sorry kindly can could would"
            " will may might should must need want like love prefer rather d ll best mind be to it"
            " do if that let lets s have make sure go ahead completely simply immediately from on"
            " better good great nice feel free try as one thing instead no wait hey hi"
        ),
        speaker="i we me us my our he she they",
        listener="you your yourself please let lets",
        negations="not don t never no longer dont didn",
        small="whatever regarding concerning stuff bit part"
        " anything everything know known mentioned number remember remembered tell told said"
        " mention thing things please memory",
    ),
    "de": ForgetWords(
        forget="vergiss vergesst vergessen vergesse vergisst",
        erase="lösch lösche löschen streich streiche streichen entfern entferne entfernen"
        " ignorier ignoriere ignorieren",
        keep="merk merke merken behalt behalte behalten speicher speichere speichern",
        told="gesagt erzahlt sagte erzahlte erwahnt gedachtnis alles",
        openers=(
            "bitte ok okay und so jetzt nun mal also kannst konntest konnen konnten wurdest wurden"
            " solltest sollst sollen sollten darfst mochte will hatte gern gerne dass es am besten"
            " einfach sofort ach oh ja doch das alles was"
        ),
        speaker="ich wir mir uns er",
        listener="du sie dir dich ihr bitte",
        negations="nicht nie kein keine keinen niemals",
        small="erzahlt gesagt gesagte sagte erzahlte alles erwahnt sache sachen mit wieder"
        " ruhig ding thema zum zu was",
    ),
    "fr": ForgetWords(
        forget="oublie oubliez oublier oublies",
        erase="efface effacez effacer supprime supprimez supprimer",
        keep="retiens retenez retenir garde gardez garder souviens souvenez",
        told="dit parle raconte explique memoire tout",
        openers=(
            "s il te vous plait merci d de peux pouvez pourrais pourriez veuillez voudrais veux"
            " aimerais que ok et maintenant alors tout simplement bien svp n ne"
        ),
        speaker="j je nous",
        listener="te vous tu toi plait merci veuillez svp",
        negations="pas jamais",
        small="le la les l un une des de du d au aux et ou est sont mon ma mes ton ta tes son sa"
        " ses ce cette que qui qu je j tu il elle nous vous ne n pas plus me m te t se s lui leur"
        " en dans sur pour par avec toujours jamais tout dit parle raconte explique ai propos"
        " sujet rien ce avais avait avions",
    ),
    "es": ForgetWords(
        forget="olvida olvide olvidar olvides olvidate olviden",
        erase="borra borre borrar elimina elimine eliminar quita quite quitar",
        keep="recuerdes recuerde guardes guarde menciones",
        told="dije conte dicho hable mencione memoria todo",
        openers=(
            "por favor puedes podrias puede quiero quisiera gustaria que ok y ahora pues bien ya"
            " necesito"
        ),
        speaker="yo me nos",
        listener="te tu usted favor puedes podrias puede que",
        negations="no nunca",
        small="el los las una unos unas del al y o es son mi mis tu tus su sus lo que yo se no ya"
        " en por para con siempre nunca me te de la un todo dije conte dicho sobre acerca eso he"
        " hubiera hubiese hablado habia",
    ),
    "it": ForgetWords(
        forget="dimentica dimentichi dimenticare dimenticati scorda scordati dimenticate",
        erase="cancella cancellare elimina eliminare togli togliere rimuovi rimuovere",
        keep="ricordare conservare ricordi",
        told="detto parlato raccontato memoria tutto",
        openers="per favore puoi potresti vorrei che ok e ora adesso allora ti prego",
        speaker="io",
        listener="ti favore puoi potresti",
        negations="non mai",
        small="il lo la i gli le un uno una di del dello della dei degli delle al allo alla sul"
        " sullo sulla sui e o che ho hai ti mi si tutto quello cio cosa detto parlato raccontato"
        " dalla dal abbia avessi avesse mio mia miei mie tuo tua suo sua con per in non"
        " piu riguardo proposito circa su a",
    ),
    "pt": ForgetWords(
        forget="esquece esqueca esquecer esquecas esquecam",
        erase="apaga apague apagar elimina elimine eliminar",
        keep="lembre lembres guarde guardes",
        told="disse falei contei dito memoria tudo",
        openers="por favor podes pode poderia podias quero gostaria que ok e agora voce",
        speaker="eu",
        listener="te voce tu favor podes pode poderia podias",
        negations="nao nunca",
        small="o a os as um uma de do da dos das ao no na nos nas em e ou que eu te lhe me se tudo"
        " isso aquilo disse falei contei dito sobre meu minha meus minhas seu sua com por para nao"
        " mais respeito acerca",
    ),
    "nl": ForgetWords(
        forget="vergeet vergeten",
        erase="wis wissen verwijder verwijderen schrap schrappen",
        keep="onthoud onthouden bewaar bewaren",
        told="zei gezegd verteld vertelde geheugen alles",
        openers="alsjeblieft alstublieft kun kan kunt zou wil graag dat ok en nu gewoon maar",
        speaker="ik wij we",
        listener="je jij u alsjeblieft alstublieft",
        negations="niet nooit geen",
        small="de het een van over wat dat alles ik je jij u jou mij me mijn uw zijn haar heb hebt"
        " heeft nooit zei gezegd verteld vertelde en of met voor in op aan te niet meer",
    ),
}

# Requests to forget that ask for no forgetting: "pretend that I never mentioned X".
PRETENDING: Mapping[str, str] = {
    "en": r"\b(?:pretend|act as (?:if|though)|act like) (?:that )?(?:i|we)(?:'d)? "
    r"(?:have |had )?(?:never|not|didn't|hadn't|did not)\b",
    "de": r"\btu(?:n sie)? (?:bitte )?(?:einfach )?so, als (?:ob|hätte) (?:ich|wir)\b"
    r"(?=.{0,200}\bni)",
    "fr": r"\b(?:fais|faites|faire) comme si (?:je|nous) n",
    "es": r"\b(?:haz|haga|hagamos|hacer) (?:como si|de cuenta que) (?:yo )?(?:nunca|no)\b",
    "it": r"\b(?:fai|facciamo|faccia) (?:finta|conto) che (?:io )?non\b",
    "pt": r"\b(?:faz|faça|faca|finge|finja) (?:de conta )?que (?:eu )?(?:nunca|não)\b",
    "nl": r"\bdoe (?:maar )?alsof ik\b(?=.{0,200}\b(?:nooit|niet|niets)\b)",
}
