"""By what preferences, decisions and commitments are recognized in German."""

from compaction.memory.core.ledger.languages.german.fragments import LANGUAGE_NAMES

_WHEN = (
    r"(?:bis|am|vor|nach|heute|morgen|übermorgen|nächste\w*|diese\w*|um|in|spätestens|sobald|wenn"
    r"|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag|ende der woche)\b"
)

PREFERENCE_CUES = {
    "bitte": (
        r"^(?!.*\b(?:kannst|könntest|würdest|hilf|ist|sind|war|hat|muss)\b)(?!(?:gib|schreib"
        r"|zeig|mach|erklär|sag|nenn|such|find|erstell|fass|übersetz|korrigier|prüf|lies|schau"
        r"|erzähl|liste|stell|komm|warte|mehr|noch|einmal|das|die|den)\w*)(?:[\w-]+ ){1,5}bitte"
        r"(?: [\w-]+){1,5}[.!]*$",
    ),
    "bevorzuge": (r"\bbevorzuge\b",),
    "bevorzugen": (r"\bbevorzugen\b",),
    "bevorzugt": (r"\b(?:am|ich|wird|werden|mein\w*) (?:[\w-]+ ){0,2}bevorzugt\b",),
    "lieber": (
        r"\b(?:mag|hätte|möchte|würde|nehme|arbeite|esse|trinke|fliege|fahre|wäre|ist|sind|habe"
        r"|haben|wollen|schreibe|lese|nutze|benutze|verwende|reise|telefoniere) (?:[\w-]+ ){0,5}"
        r"lieber\b(?! (?:doch|nicht jetzt))",
        r"\bmir (?:ist|wäre|sind|wären) (?:[\w-]+ ){0,3}lieber\b",
    ),
    "liebsten": (r"\bam liebsten\b",),
    "nenn": (r"<start>nenne? mich\b", r"\bnenn mich\b"),
    "nenne": (r"\bnenne mich\b",),
    "nennen": (
        r"\b(?:kannst|darfst|könnt) mich (?:[\w-]+ ){0,2}[\w-]+ nennen\b",
        r"\bnennen mich\b",
    ),
    "duzen": (r"\bduzen\b",),
    "duze": (r"\bduze mich\b",),
    "duz": (r"\bduz mich\b",),
    "siezen": (r"\bsiezen\b",),
    "sieze": (r"\bsieze mich\b",),
    "per": (r"\bper (?:du|sie)\b",),
    "auf": (
        rf"\b(?:bitte|antworte?|schreib\w*|rede?|nur|immer|alles|weiter|lieber) (?:[\w-]+ )"
        rf"{{0,4}}auf (?:{LANGUAGE_NAMES})\b",
        rf"\bauf (?:{LANGUAGE_NAMES}),? bitte\b",
    ),
    "mag": (
        r"\bich mag (?:[\w-]+ )?(?:keine?n?|es (?:nicht|lieber|wenn)|kurze|lange|lieber|nur)\b",
        r"\bich mag (?:[\w-]+ ){0,4}(?:nicht|lieber|am liebsten)\b",
    ),
    "hasse": (r"\bich hasse\b",),
    "allergisch": (r"\ballergisch\b",),
    "allergie": (r"\bich habe eine? (?:[\w-]+ ){0,2}[\w-]*allergie\b",),
    "vertrage": (r"\bich vertrage (?:[\w-]+ ){0,3}(?:keine?n?|nicht)\b",),
    "vegetarier": (r"\bvegetarier\b",),
    "vegetarisch": (r"\b(?:bin|esse|leben?|ernähr\w+|lebe) (?:[\w-]+ ){0,3}vegetarisch\b",),
    "vegan": (r"\b(?:bin|esse|leben?|lebe|ernähr\w+|sind) (?:[\w-]+ ){0,3}vegan\b",),
    "veganer": (r"\bveganerin?\b",),
    "veganerin": (r"\bveganerin\b",),
    "esse": (
        r"\bich esse (?:[\w-]+ ){0,3}(?:keine?n?|nur|nie|nicht)\b",
        r"\besse ich (?:[\w-]+ )"
        r"{0,3}(?:keine?n?|nur|nie|nicht)\b",
    ),
    "trinke": (r"\bich trinke (?:[\w-]+ ){0,3}(?:keine?n?|nur|nie|nicht)\b",),
    "möchte": (r"\bich möchte (?:bitte )?(?:nur|keine?n?|immer|lieber|dass|kurze|ausführliche)\b",),
    "will": (r"\bich will (?:nur|keine?n?|immer|lieber|dass|kurze)\b",),
    "nutze": (r"\bich nutze (?:nur|immer|ausschließlich|grundsätzlich)\b",),
    "benutze": (r"\bich benutze (?:nur|immer|ausschließlich|nie)\b",),
    "lieblings": (r"\bmein\w* lieblings",),
    "antworten": (
        r"\b(?:kurze|knappe|ausführliche|lange) antworten\b",
        r"\bantworten (?:bitte )"
        r"(?:kurz|knapp|ausführlich)\b",
    ),
    "antworte": (
        r"<start>antworte (?:mir )?(?:bitte )?(?:immer |nur )?(?:kurz|knapp|auf|in|mit"
        r"|ohne|ausführlich)\b",
    ),
    "fasse": (r"<start>fasse? dich kurz\b",),
    "fass": (r"<start>fass dich kurz\b",),
    "ohne": (r"\b(?:bitte|antworte|immer|gern|lieber) ohne [\w-]+", r"^ohne [\w-]+,? bitte\b"),
    "fliege": (r"\bich fliege (?:nur|nie|nicht|grundsätzlich|immer)\b",),
    "passt": (r"\bpasst (?:mir|uns) (?:[\w-]+ ){0,3}(?:am besten|besser)\b",),
    "vorliebe": (r"\bvorliebe für\b",),
    "wert": (r"\blege? (?:[\w-]+ ){0,3}wert auf\b",),
    "ausstehen": (r"\bnicht ausstehen\b",),
}

DECISION_CUES = {
    "entschieden": (
        r"\b(?!.*\b(?:nicht|noch) entschieden)(?:habe|haben|hat|ist|wurde|sind|bin"
        r"|entschieden:|endgültig|jetzt|uns|mich)"
        r"\b.{0,100}\bentschieden\b",
        r"^entschieden\b",
    ),
    "entscheidung": (
        r"\b(?:die|unsere|meine|endgültige|neue) (?:[\w-]+ )?entscheidung\b",
        r"^entscheidung\b",
    ),
    "beschlossen": (r"\bbeschlossen\b",),
    "beschluss": (r"\bbeschluss\b",),
    "vereinbart": (r"\bvereinbart\b",),
    "geeinigt": (r"\bgeeinigt\b",),
    "einigen": (r"\b(?:lass uns|wir) .{0,40}\beinigen\b",),
    "doch": (
        r"\bdoch (?:lieber|den|die|das|wieder|auf|bei|mit|am|um|erst|nur|eher)"
        r"\b(?! (?:so|wahr)\b)",
        r"\bnehmen wir doch\b",
        r"\bdann doch\b",
    ),
    "stattdessen": (r"\bstattdessen\b",),
    "anders": (r"\banders (?:überlegt|entschieden)\b",),
    "umentschieden": (r"\bumentschieden\b",),
    "meinung": (r"\bmeinung geändert\b", r"\bmeine meinung .{0,20}geändert\b"),
    "planänderung": (r"\bplanänderung\b",),
    "nehmen": (r"\b(?:wir nehmen|nehmen wir|lass uns .{0,60}nehmen|dann nehmen)\b",),
    "nehme": (r"\bich nehme (?:den|die|das|lieber|doch|option|variante)\b", r"\bnehme ich\b"),
    "machen": (
        r"\b(?:lass uns|lasst uns) .{0,80}\bmachen\b",
        r"\bmachen wir (?:es|das|so|doch"
        r"|lieber|also)\b",
        r"\bwir machen (?:es|das) (?:so|jetzt|doch|lieber)\b",
    ),
    "lass": (r"<start>lass uns (?!mal (?:sehen|schauen)|überlegen|reden|kurz)\w",),
    "lasst": (r"<start>lasst uns \w",),
    "bleiben": (r"\b(?:wir bleiben|bleiben wir) .{0,40}\b(?:bei|beim|dabei)\b",),
    "bleibt": (r"\bes bleibt (?:bei|beim|dabei)\b",),
    "wechseln": (r"\b(?:wir wechseln|wechseln wir)\b",),
    "verwenden": (r"\b(?:wir verwenden|verwenden wir)\b",),
    "nutzen": (r"\b(?:wir nutzen|nutzen wir)\b",),
    "setzen": (r"\b(?:wir setzen|setzen wir) .{0,20}\bauf\b",),
    "festgelegt": (r"\bfestgelegt\b",),
    "steht": (r"\bsteht (?:jetzt )?fest\b", r"\bes steht fest\b"),
    "verschoben": (r"\bverschoben\b",),
    "verschieben": (r"\b(?:wir|lass uns|bitte) .{0,60}\bverschieben\b",),
    "verlegt": (r"\b(?:wurde|ist|wird|haben) .{0,60}\bverlegt\b",),
    "abgesagt": (r"\babgesagt\b",),
    "storniert": (r"\bstorniert\b",),
    "gestrichen": (r"\b(?:ist|wird|wurde|haben) .{0,60}\bgestrichen\b",),
    "sondern": (r"\bnicht .{1,80},? sondern\b",),
    "korrektur": (r"^(?:kleine |kurze )?korrektur\b",),
    "vergiss": (r"<start>vergiss (?:das|was|den|die)\b",),
    "genehmigt": (r"\b(?:ist|wurde|hat|sind|haben) .{0,60}\bgenehmigt\b",),
    "abgelehnt": (r"\b(?:ist|wurde|hat|sind|haben) .{0,60}\babgelehnt\b",),
    "fällt": (r"\bwahl fällt auf\b", r"\bfällt (?:weg|aus|flach)\b"),
    "gewählt": (r"\b(?:habe|haben) .{0,60}\bgewählt\b",),
}

COMMITMENT_CUES = {
    "erinnere": (r"<start>erinnere? (?:mich|uns)\b", r"\berinnere mich (?:bitte )?(?:daran|am|an)"),
    "erinner": (r"<start>erinner (?:mich|uns)\b",),
    "erinnern": (
        r"\b(?:bitte|kannst du mich|könntest du mich|musst mich|sollst mich) .{0,80}"
        r"erinnern\b",
    ),
    "vergiss": (r"<start>vergiss (?:bitte )?nicht\b",),
    "vergessen": (r"\bnicht (?:zu )?vergessen\b", r"\bdarf ich nicht vergessen\b"),
    "verspreche": (r"\bich verspreche\b", r"\bverspreche ich\b"),
    "versprochen": (r"\bversprochen\b",),
    "zugesagt": (r"\bzugesagt\b",),
    "schulde": (r"\bschulde (?:ich )?\w",),
    "schicke": (rf"\b(?:ich schicke|schicke ich)\b.{{0,100}}?\b{_WHEN}",),
    "sende": (rf"\b(?:ich sende|sende ich)\b.{{0,100}}?\b{_WHEN}",),
    "liefere": (rf"\b(?:ich liefere|liefere ich)\b.{{0,100}}?\b{_WHEN}",),
    "mache": (r"\b(?:ich mache|mache ich)\b.{0,80}\b(?:bis|am|morgen|heute abend|nächste)\b",),
    "melde": (rf"\b(?:ich melde|melde ich)\b.{{0,80}}?\b{_WHEN}",),
    "bezahle": (rf"\b(?:ich bezahle|bezahle ich)\b.{{0,80}}?\b{_WHEN}",),
    "überweise": (r"\b(?:ich überweise|überweise ich)\b",),
    "kümmere": (r"\b(?:ich kümmere|kümmere ich) mich\b",),
    "werde": (rf"\b(?:ich werde|werde ich)\b.{{0,120}}?\b{_WHEN}.{{0,120}}(?:en|ern|eln)\b",),
    "muss": (
        r"\b(?:ich muss|muss ich|wir müssen)\b.{0,100}\b(?:bis|spätestens|vor dem|am)\b",
        r"\bmuss bis\b",
    ),
    "müssen": (r"\b(?:wir müssen|müssen wir)\b.{0,100}\b(?:bis|spätestens|vor dem)\b",),
    "frist": (r"\bfrist\b",),
    "deadline": (r"\bdeadline\b",),
    "abgabe": (r"\babgabe(?:termin)?\b.{0,40}\b(?:ist|am|bis)\b",),
    "fällig": (r"\bfällig\b",),
    "spätestens": (
        r"\bspätestens (?:bis|am|um|morgen|montag|dienstag|mittwoch|donnerstag|freitag"
        r"|ende)\b",
    ),
}
