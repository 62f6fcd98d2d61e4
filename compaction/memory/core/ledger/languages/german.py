"""German: by what rules, preferences, decisions, commitments and values are recognized."""

from compaction.memory.core.ledger.languages.base import Language, join_rows

LANGUAGE_NAMES = (
    r"englisch|deutsch|französisch|spanisch|italienisch|niederländisch|"
    r"portugiesisch|polnisch|russisch|türkisch|arabisch|chinesisch|japanisch|"
    r"schwedisch|dänisch|griechisch|ukrainisch|latein|koreanisch"
)

# What only orders, and never reports: at the beginning of a clause.
RULE_STARTS = r"""
(?:bitte )?(?:nie|niemals) (?:wieder )?(?!im leben|gehört|gesehen|zuvor|vergessen\b|da\b
        |so\b).{2,120}[a-zäöüß]{2,}e?n(?=[.!,]|$)
(?:bitte )?immer (?!wieder\b|noch\b|mehr\b|wenn\b|ist\b|war\b).{2,120}[a-zäöüß]{2,}e?n(?=[.!,]|$)
(?:bitte )?(?:kein|keine|keinen|keinerlei) (?!ahnung|problem|sorge|eile|lust|zeit|frage|angst
        |idee)[\w-]+.{0,80}\bbitte\b
bitte (?:kein|keine|keinen|nie|niemals|nur|immer)\b
achte (?:bitte )?(?:immer )?(?:darauf|auf)\b
denk (?:bitte )?(?:immer )?(?:daran|dran)\b
frag (?:mich|uns|\w+) (?:immer |bitte )?(?:zuerst|vorher|bevor)\b
halte? dich an\b
lass (?:bitte )?die finger von\b
merk dir\b
vermeide?\b
verzichte? auf\b
(?!(?:ich|wir|er|sie|es|man|das|der|die|hab|habe|hat|hast|war|ist
        |sind)\b)[a-zäöüß]+ (?:bitte |mir |uns )?(?:[\w-]+ ){0,5}(?:nie|niemals|ausschließlich)\b
"""
RULES = r"""
\b(?:ab jetzt|ab sofort|ab heute|von nun an|von jetzt an|künftig|zukünftig|in zukunft|fortan)\b
\b(?:auf (?:gar )?keinen fall|keinesfalls|unter keinen umständen|ausnahmslos|ohne ausnahme
        |grundsätzlich (?:nicht|nie|nur|immer))\b
\b(?:darf|darfst|dürfen|soll|sollst|sollen|sollte|sollten|muss|müssen) (?:[\w-]+ ){0,6}(?:nie
        |niemals|immer|nur|nicht|keine?n?)\b(?! (?:sein|wahr)\b)
\b(?:nie|niemals) (?:[\w-]+,? ){0,6}(?:darf|dürfen|soll|sollen|sollte|sollten)\b
\b(?:niemand|keiner) (?:außer [\w-]+ )?(?:darf|soll|sollte)\b
\b(?:ist|sind) (?:[\w-]+ )?(?:verboten|tabu|untersagt|nicht erlaubt|vertraulich)\b
\b(?:verboten|untersagt) ist\b|\bes ist (?:verboten|untersagt)\b
\b(?:die|eine|unsere|neue|feste|goldene) regel\b|\bbei uns gilt\b
\bohne (?:meine|unsere) (?:freigabe|erlaubnis|zustimmung)\b|\bohne mich zu fragen\b
\bich (?:will|möchte) nicht, dass du\b|\bich (?:will|möchte), dass du (?:[\w-]+ ){0,6}(?:nie
        |niemals|immer|nur)\b
\b(?:du|bitte) [^,;]{0,60}\b(?:nie|niemals)\b
\bimmer,? (?:wenn|bevor) (?:du|ich|wir|jemand)\b
"""
PREFERENCES = r"""
\bnenne? mich\b|\bduze? mich\b|\bsieze mich\b|\bper (?:du|sie)\b
\bich (?:hasse|bevorzuge|vermeide|verabscheue|vertrage)\b
\bich (?:mag|esse|trinke|nehme) (?:[\w-]+ ){0,3}(?:keine?n?|nicht|nie|lieber)\b
\bam liebsten\b|\bmir (?:ist|wäre|sind|wären) (?:[\w-]+ ){0,3}lieber\b|\bich (?:hätte
        |würde) [^,;]{0,40}lieber\b
\b(?:bin|ist|sind|lebe|esse) (?:[\w-]+ ){0,3}(?:allergisch|vegan|vegetarisch|veganerin|veganer
        |vegetarier|vegetarierin|diabetiker|diabetikerin)\b|allergie\b
\b(?:antworte?|schreib\w*|bitte|nur|immer) (?:[\w-]+ ){0,3}auf (?:<languages>)\b
\blieblings\w+
"""
DECISIONS = r"""
\bwir (?:nehmen|machen|bleiben bei|haben uns)\b(?![^,;]*\bnicht\b)[^,;]{0,60}
        \b(?:entschieden|doch|jetzt|also
        |geeinigt)\b
\bich habe? mich (?:für|gegen) [^,;]{2,60} entschieden\b|\b(?:haben|ist|wurde) (?:uns |es )?
        (?:beschlossen|vereinbart)\b
\b(?:nehmen|machen|nutzen|bleiben) wir (?:doch|also|lieber|bei|es)\b
"""
COMMITMENTS = r"""
\berinnere? (?:mich|uns)\b
\bich verspreche\b|\b(?:muss|müssen) [^,;]{0,40}\bnoch [^,;]{2,60}\bwerden\b
\bich (?:schicke|liefere|überweise|bezahle|zahle|sende|melde|erledige|mache) [^,;]{3,80}\bbis\b
\b(?:ist|sind) (?:bis|am) [^,;]{2,30} fällig\b
"""

GERMAN = Language(
    code="de",
    starters=frozenset(
        """
        bitte und aber also auch dann oder ok okay übrigens ach achso so denn weil jetzt
        nochmal erstens zweitens wichtig außerdem wirklich hey hallo generell allgemein
        danke klar sonst ansonsten nebenbei achtung ps grundsätzlich zudem
        dabei deshalb daher darum apropos künftig
        """.split()  # noqa: SIM905
    ),
    rule_starts=join_rows(RULE_STARTS),
    cues={
        "rule": join_rows(RULES),
        "preference": join_rows(PREFERENCES, languages=LANGUAGE_NAMES),
        "decision": join_rows(DECISIONS),
        "commitment": join_rows(COMMITMENTS),
    },
    one_off=r"\b(?:diesmal|dieses mal|ausnahmsweise|vorerst|fürs erste|nur (?:heute|einmal))\b",
    requests=(
        r"\b(?:kannst|könntest|würdest|magst) du (?:[\w-]+ ){0,3}(?:bitte |immer|nie|nur|ab jetzt"
        r"|ab sofort|künftig|in zukunft|mich |nicht mehr|auf (?:deutsch|englisch))|\bab (?:jetzt"
        r"|sofort)\b"
    ),
    reports=(
        r"\b(?:er|sie|jemand|man|leute|manche|viele|alle|der (?:artikel|autor|lehrer|film|typ"
        r"|beitrag)|das (?:buch|lied)|die (?:doku|zeitung|anleitung|lehrerin)|(?:mein|meine) "
        r"(?:lehrer|lehrerin|oma|opa|mutter|vater|freund|freundin|ex)|experten|kritiker) "
        r"(?:[\w-]+ )?(?:sagte|sagt|sagten|sagen|meinte|meint|schrieb|schreibt|behauptet\w*|glaubt"
        r"|glaubte|findet|fand|riet|warnte|empfiehlt|empfahl|erzählte|hat gesagt|hat gemeint)\b"
        r"|^(?:warum|wieso|weshalb)\b|\bich habe (?:gelesen|gehört|mal gelesen)\b|\b(?:hat"
        r"|haben) (?:[\w-]+ ){0,3}(?:gesagt"
        r"|geschrieben|gemeint|erzählt)\b"
    ),
    list_titles=(
        r"\b(?:regeln?|grundregeln?|richtlinien|vorgaben?|anforderungen|bedingungen|hausregeln"
        r"|anweisungen|präferenzen|vorlieben|bitte beachten|beachte|ab jetzt|ab sofort|künftig"
        r"|konventionen|standards|verbote|merk dir|no-gos?|einschränkungen|wünsche)\b"
    ),
    foreign_titles=(
        r"\b(?:schrieb|schreibt|sagte|sagt|weitergeleitete nachricht|ursprüngliche nachricht"
        r"|hier (?:ist|sind|kommt|der|die|das) (?:[\w-]+ ){0,4}(?:e-?mail|mail|artikel|text"
        r"|nachricht|rezension|transkript|beitrag|geschichte|brief|gedicht|auszug|absatz|zitat"
        r"|entwurf|log|ausgabe|fehler|code|skript|funktion|datei|dokument|vertrag|rezept)\w*"
        r"|(?:fasse?|übersetze?|korrigiere?|verbessere?|kürze?|analysiere?|erkläre?|überarbeite?)"
        r" (?:mir |bitte )*(?:diesen|diese|dieses|den folgenden|die folgende|das folgende|folgenden"
        r"|folgende|folgendes)\b[^:]{0,60})"
    ),
    units=(
        r"prozent|jahren?|jahre?|monaten?|monate?|wochen?|tagen?|tage?|stunden?|std|minuten?"
        r"|sekunden?|meilen?|meter|kilometer|quadratmeter|liter|gramm|kilo|kilogramm|tonnen?"
        r"|personen|leute|gäste|plätze|nutzer|mitarbeiter\w*|anfragen|zeichen|wörter|zeilen|spalten"
        r"|seiten|stück|nächte|versuche|kerne|knoten|grad|mal|zimmer|räume|esslöffel|teelöffel|el"
        r"|tl|tassen|portionen|etagen|stockwerke|euro"
    ),
    plain_words=frozenset(
        """
        ab achte aktuell aktuelle aktuellen aktueller ausnahmslos ausschließlich beginnt
        benutze beschlossen bestellt betragen beträgt bezahlt bleiben bleibt danke darfst
        dauert davon endet endgültig entschieden erhöht fall fast findet geboren gebucht
        gehen geht gekauft gelten gemäß genau gesenkt gesetzt gestern geändert gilt
        grundsätzlich hallo heißen heißt heute hi höchstens insgesamt knapp kommen kommt
        kosten kostet kurz kurze künftig laufen laut lauten lautet lebt lieber liegen liegt
        läuft machen macht maximal merk merke mindestens misst musst nehme nehmen neu neue
        neuem neuen neuer neues nimm nutze nutzen regel rund setz setze setzen sofort sollst
        startet statt stattdessen stehen steht stell stelle stellen stets tatsächlich
        umgestellt umständen ungefähr unsererseits vergiss verlegt verschoben verwende
        verwenden wichtig wiegt wohne wohnt während wäre zukünftig ändert übrigens
        """.split()  # noqa: SIM905
    ),
    negations=frozenset(
        """
        nicht kein keine keinen keinem keiner keinerlei nie niemals niemand niemanden niemandem
        nichts weder nirgends keineswegs
        """.split()  # noqa: SIM905
    ),
    feelings=(
        r"\b(?:ich|mir|mich)\b[^,;]*\b(?:weiß|wusste|glaube|denke|verstehe|finde|mag|kann"
        r"|konnte|will"
        r"|möchte|sicher|ahnung|lust|zeit|erinnere|gefällt|hätte|gedacht|gesehen|geschafft)\b"
        r"|\b(?:weiß|glaube|denke|verstehe|finde|kann|konnte) ich\b|\bnicht (?:so|sehr|ganz"
        r"|wirklich"
        r"|schlimm|schlecht|sicher|wahr|mehr|viel|leicht|einfach|wichtig|eilig|besonders|gut|schön"
        r"|nur|immer|nötig|unbedingt)\b|\bkeine? (?:problem|ahnung|sorge|eile|lust|zeit|wunder"
        r"|frage"
        r"|angst|idee|gute)\b|\b(?:nichts|nie) (?:neues|besonderes|wissen|schlimmes)\b|\bwarum\b"
        r"|^(?:das|es) (?:ist|war|geht|klappt|stimmt|macht|funktioniert|darf|kann)\b|^(?:nein|nicht"
        r"|nie)\b[^,]*$|^(?:er|sie|man) "
    ),
)
