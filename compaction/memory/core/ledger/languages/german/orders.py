"""By what standing orders are recognized in German that need no word such as "niemals".

They are imperatives with a limit ("versprich in keinem Brief einen Ausgang"), orders without a verb
("alle Beträge in Euro"), wishes ("ich möchte, dass du …") and duties of things.
"""

# Words that begin a statement and never an order.
_STATEMENT_STARTS = (
    r"ich|du|er|sie|es|wir|ihr|man|der|die|das|den|dem|des|ein|eine|einen|einem|einer|mein\w*"
    r"|unser\w*|dein\w*|sein\w*|ihre\w*|dies\w*|jen\w+|kein\w*|nicht\w*|nie|niemals|niemand|in|im"
    r"|an|am|auf|aus|bei|beim|mit|nach|von|vom|zu|zum|zur|für|vor|seit|über|unter|hinter|neben"
    r"|zwischen|ohne|um|gegen|durch|bis|trotz|wegen|während|gestern|heute|morgen|jetzt|nun|dann"
    r"|da|hier|dort|leider|vielleicht|noch|schon|erst|nur|auch|so|wie|was|wer|wann|wo|warum|wieso"
    r"|welche\w*|wenn|weil|dass|ob|als|obwohl|und|oder|aber|denn|sondern|habe?|hat|hast|hatte\w*"
    r"|bin|ist|sind|war\w*|wird|werde\w*|wurde\w*|kann\w*|könn\w+|muss\w*|müss\w+|will|wollen"
    r"|wollte\w*|soll\w*|darf\w*|dürf\w+|mag|möchte\w*|weiß|finde|denke|glaube|gibt|geht|kommt"
    r"|hauptsache|überhaupt|gerne?|frag nur|ganz|sehr|gar|eher|eigentlich|manchmal|oft"
    r"|damals|irgendwie|alles|etwas|nichts|ja|nein|doch"
    r"|klar|gut|okay|danke|hallo|sorry|zufällig|tatsächlich|wohlgemerkt|bisher|früher|später"
    r"|letzte\w*|nächste\w*|beide|viele|manche|einige|mir|mich|uns|dich|dir|ihm|ihn|ihnen"
)
# A clause with one of these states something.
_NO_STATEMENT = (
    r"(?![^,;:]*\b(?:ich|er|man|hat|habe|haben|hatte|hatten|hast|war|waren|wird|werde|wurde|wurden"
    r"|würde|ist|sind|bin|ging|kam|gab|gibt|konnte|konnten|wollte|funktioniert|klappt|geht|passiert"
    r"|kann|könnte|weiß|scheint|bleibt|kommt|macht|dauert|kostet|sagt|sagte|meinte|stimmt)\b)"
)
_IMPERATIVE = rf"<start>{_NO_STATEMENT}(?!(?:{_STATEMENT_STARTS})\b)[a-zäöüß]{{3,}}"
_SECOND_WORD = r"(?! (?:ich|er|es|wir|man|ihr|sich)\b)"
_END = r"(?= ?[,;:.!)–—]|$)"
_INFINITIVE = rf"[a-zäöüß]+(?:en|ern|eln|tun){_END}"


def _build_limit(word: str) -> tuple[str, ...]:
    """Return the patterns of an order with a limit: an imperative, or a final infinitive."""
    return (
        rf"{_IMPERATIVE}{_SECOND_WORD} (?:[\w-]+ ){{0,7}}{word}\b",
        rf"<start>{_NO_STATEMENT}[^,;:]{{0,120}}\b{word}\b[^,;:]{{0,120}} {_INFINITIVE}",
    )


ORDER_CUES = {
    "nie": (
        *_build_limit("nie"),
        r"(?:^|[,;:–-] )nie (?:als|in|im|auf|mit|per|ohne|vor|an|unter|über|bei)\b",
        r"\b[a-zäöüß]+st du (?:[\w-]+ ){0,5}nie\b",
    ),
    "niemals": (
        *_build_limit("niemals"),
        r"(?:^|[,;:–-] )niemals (?:als|in|im|auf|mit|per|ohne|vor|an|unter|über|bei)\b",
        r"\b[a-zäöüß]+st du (?:[\w-]+ ){0,5}niemals\b",
    ),
    "kein": _build_limit("kein"),
    "keinen": _build_limit("keinen"),
    "keinem": _build_limit("keinem"),
    "keiner": _build_limit("keiner"),
    "nichts": _build_limit("nichts"),
    "niemanden": (
        *_build_limit("niemanden"),
        r"\b[a-zäöüß]+st du (?:[\w-]+ ){0,5}niemanden\b",
    ),
    "niemandem": (
        *_build_limit("niemandem"),
        r"\b[a-zäöüß]+st du (?:[\w-]+ ){0,5}niemandem\b",
    ),
    "nicht": (
        r"\b[a-zäöüß]+st du (?:[\w-]+ ){0,5}nicht\b(?! (?:wahr|mehr|noch|mal|kurz)\b)",
        *_build_limit("nicht"),
        r"\bnicht (?:in|im|auf|mit|per|über|an|zu|als|vor|nach) (?:[\w-]+ ){0,2}[\w-]+,? bitte\b",
        rf"<start>{_NO_STATEMENT}[^;:]{{2,80}}, nicht (?:in|im|auf|mit|per|über|an|zu|als)\b",
    ),
    "immer": (
        r"^(?!(?:ich|wir|sie|er|es|das|die)\b)[\w-]+ (?:haben|tragen|bekommen|enthalten|stehen"
        r"|liegen"
        r"|kommen|bleiben|beginnen|enden|gehen|brauchen) immer\b",
        rf"{_IMPERATIVE}{_SECOND_WORD} (?:[\w-]+ ){{0,7}}immer\b(?! (?:noch|wieder|mehr"
        rf"|dieser?)\b)",
        rf"<start>{_NO_STATEMENT}[^,;:]{{0,120}}\bimmer\b(?! (?:noch|wieder"
        rf"|mehr)\b)[^,;:]{{0,120}} "
        rf"{_INFINITIVE}",
        rf"<start>{_NO_STATEMENT}[^,;:]{{2,60}} immer (?:nur|erst|zuerst|in|im|mit|per|auf|über"
        rf"|an|vor"
        rf"|nach|als|zu)\b",
    ),
    "nur": (
        r"\b[a-zäöüß]+st du (?:[\w-]+ ){0,5}nur\b(?! (?:wahr|mehr|noch|mal|kurz)\b)",
        *_build_limit("nur"),
        rf"<start>{_NO_STATEMENT}[^,;:]{{2,60}} nur (?:noch |nach )?(?:in|im|mit|per|auf|über"
        rf"|ab|bis|von"
        rf"|vor|nach|zu|an|unter|für|als|am)\b",
    ),
    "ohne": (
        rf"{_IMPERATIVE}{_SECOND_WORD} (?:[\w-]+ ){{0,7}}ohne\b",
        rf"\b(?:nichts|kein\w*|niemand|nie|nicht)\b[^;:]{{0,80}}\bohne\b[^;:]{{0,80}}{_INFINITIVE}",
        r"\b(?:kommt|geht|läuft|verlässt|wird) (?:kein\w*|nichts|niemand)\b[^;:]{0,80}\bohne\b",
    ),
    "erst": (
        rf"{_IMPERATIVE}{_SECOND_WORD} (?:[\w-]+ ){{0,6}}erst\b(?! (?:mal|einmal)\b)",
        rf"<start>{_NO_STATEMENT}[^,;:]{{0,80}}\berst\b[^,;:]{{0,80}}, (?:wenn|nachdem|sobald)\b",
    ),
    "zuerst": (
        r"\b(?:fragst|rufst|sagst|schreibst|prüfst|zeigst) du (?:mir |mich |uns |es )*zuerst\b",
        rf"{_IMPERATIVE}{_SECOND_WORD} (?:[\w-]+ ){{0,6}}zuerst\b",
        rf"<start>{_NO_STATEMENT}[^,;:]{{0,80}}\bzuerst\b[^,;:]{{0,80}} {_INFINITIVE}",
    ),
    "vorher": (
        r"\b(?:fragst|rufst|sagst|schreibst|prüfst|zeigst) du (?:mir |mich |uns |es )*vorher\b",
        rf"{_IMPERATIVE}{_SECOND_WORD} (?:[\w-]+ ){{0,6}}vorher\b",
        rf"<start>{_NO_STATEMENT}[^,;:]{{0,80}}\bvorher\b[^,;:]{{0,80}} {_INFINITIVE}",
    ),
    "alle": (
        rf"<start>{_NO_STATEMENT}alle [\w-]+ [^,;:]{{0,60}} {_INFINITIVE}",
        rf"<start>{_NO_STATEMENT}(?:bitte )?alle [\w-]+ (?:[\w-]+ )?(?:in|im|auf|mit|per|nach"
        rf"|vor|an|zu"
        rf"|als)\b(?!.*\?)",
        r"\balle [\w-]+ (?:[\w-]+ ){0,4}(?:sollen|sollten|müssen|dürfen|gehen|kommen|bekommen)\b",
    ),
    "sämtliche": (rf"<start>{_NO_STATEMENT}(?:bitte )?sämtliche [\w-]+\b",),
    "jede": (
        rf"<start>{_NO_STATEMENT}jede [\w-]+ [^,;:]{{0,60}} {_INFINITIVE}",
        r"\bjede [\w-]+ (?:[\w-]+ ){0,4}(?:muss|soll|sollte|braucht|bekommt|endet|beginnt|geht"
        r"|trägt|wird|darf|kommt)\b",
        r"\b(?:endet|beginnt|bekommt|braucht|trägt|kommt|steht"
        r"|geht|muss|soll|wird) (?:[\w-]+ ){0,2}jede\b",
        rf"{_IMPERATIVE} (?:[\w-]+ ){{0,6}}"
        r"(?:an|in|bei|für|vor|nach|auf|unter) jede\b",
    ),
    "jeder": (
        r"\bjeder [\w-]+ (?:[\w-]+ ){0,4}(?:muss|soll|sollte|braucht|bekommt|endet|beginnt"
        r"|geht|trägt|wird|darf|kommt)\b",
        rf"{_IMPERATIVE} (?:[\w-]+ ){{0,6}}(?:an|in|bei|vor"
        r"|nach|auf|unter|mit) jeder\b",
    ),
    "jedes": (
        rf"<start>{_NO_STATEMENT}jedes [\w-]+ [^,;:]{{0,60}} {_INFINITIVE}",
        rf"{_IMPERATIVE}{_SECOND_WORD} (?:[\w-]+ ){{0,3}}jedes [\w-]+ (?:auf|in|mit|nach|als)\b",
        r"\bjedes [\w-]+ (?:[\w-]+ ){0,4}(?:muss|soll|sollte|braucht|bekommt|endet|beginnt"
        r"|geht|trägt|wird|darf|kommt)\b",
    ),
    "jedem": (
        rf"{_IMPERATIVE} (?:[\w-]+ ){{0,6}}(?:an|in|bei|vor|nach|auf|unter|mit) jedem\b",
        r"\b(?:steht|kommt|gehört|muss|soll) (?:[\w-]+ ){0,3}(?:an|in|bei|vor|nach|auf|unter"
        r"|mit) jedem\b",
        rf"<start>{_NO_STATEMENT}[^,;:]{{0,80}}\b(?:in|an|bei|mit|nach|vor|unter)"
        rf" jedem\b[^,;:]{{0,80}} {_INFINITIVE}",
    ),
    "dass": (
        r"\b(?:möchte|möchten|will|wollen|erwarte|erwarten|wünsche|verlange|bitte dich|bitte darum"
        r"|wichtig|legen? wert darauf|bestehe darauf|besteht darauf)\b[^,;]{0,20},? dass (?:du|ihr"
        r"|alle|jede\w*|kein\w*|nichts|niemand|die|der|das|unsere?|mein\w*|deine?)\b",
    ),
    "sollen": (
        r"\b(?:alle|die|unsere|deine|sämtliche|meine|keine|antworten) (?:[\w-]+ ){0,4}sollen "
        r"(?!wir\b)(?:[\w-]+ ){0,8}[\w]+",
    ),
    "soll": (
        r"\b(?:der|die|das|unser\w*|dein\w*|mein\w*|jede\w*|kein\w*|alles|nichts) (?:[\w-]+ )"
        r"{0,4}soll (?!ich\b|das heißen)(?:[\w-]+ ){0,8}(?:nicht|nie|nur|immer|stets|kein\w*"
        r"|in|im|mit|ohne|unter|auf|vor|nach)\b",
    ),
    "muss": (
        r"^(?!.*\bbis\b)(?:bitte )?(?:alles|jede\w*|unser\w*|dein\w*) (?:[\w-]+ ){0,4}muss\b",
    ),
    "müssen": (r"^(?!.*\bbis\b)(?:alle|unsere|deine|sämtliche) (?:[\w-]+ ){0,4}müssen\b",),
    "wann": (r"\bwann immer\b[^,;]{3,80}, \w",),
    "was": (
        r"\bwas (?:du|ihr|wir|man) auch\b[^,;]{2,60}, \w",
        rf"\b(?:was immer|was auch immer|egal was) (?:du|ihr|wir"
        rf"|man)\b[^,;]{{3,60}}, {_NO_STATEMENT}"
        r"\w",
        r", was immer (?:du|ihr|wir|man)\b",
    ),
    "sobald": (
        r"\bsobald (?:du|ihr|wir|ein\w*|jemand|es|die|der|das)\b[^,;]{3,80}, (?!ich\b)"
        r"[a-zäöüß]+ (?:bitte|mir|mich|uns|immer|sofort|das|die|den)\b",
    ),
    "wenn": (
        r"\bwenn [^,;]{3,80}, [a-zäöüß]+ (?:[\w-]+ )?(?:ab|an|zu|auf|aus|weiter|zurück|nach"
        r"|ein)[.!]*$",
        r"\bwenn [^,;]{3,80}, (?:dann )?(?:bitte )?[a-zäöüß]+ (?:ihn|ihm|mir|mich|uns|bitte|den|dem"
        r"|einen|alles|sofort|das) (?!ich\b|er\b|wir\b|man\b)",
        r"\bwenn (?:du|ihr|wir|ein\w*|jemand|es|die|der|das|ich)\b[^,;]{3,80}, (?:dann )?(?:bitte"
        r"|immer|nie|nur)\b",
        r"\bwenn (?:du|ihr|ein\w*|jemand|die|der|das|es)\b[^,;]{3,80}, "
        r"(?:dann )?(?:nimm|verwende|benutze?|nutze?|schreib\w*|frage?|gib|sag|antworte|schick\w*"
        r"|melde?|rufe?|setz\w*|stell\w*|lass|mach\w*|warte|prüfe?|nenne?|runde|zähle?)\b",
    ),
    "bevor": (r"\b(?:nichts|kein\w*|niemand|nie|nicht)\b[^;:]{0,80}\bbevor\b",),
    "bitte": (
        r"\bbitte (?:[\w-]+ ){0,6}(?:nie|niemals|nur|immer|stets|kein\w*|ausschließlich|jedes mal"
        r"|jede\w*|alle|grundsätzlich|durchgehend|weglassen|auslassen|vermeiden)\b(?! (?:kurz|mal"
        r"|noch)\b)",
        r"\b(?:nie|niemals|nur|immer|stets|kein\w*|ausschließlich|grundsätzlich)\b[^;.]{0,80}"
        r"\bbitte[.!]*$",
    ),
    "weglassen": (rf"\bweglassen{_END}",),
    "weg": (rf"{_IMPERATIVE} [^;.]{{1,60}}\bweg{_END}",),
    "raus": (r"<start>(?:lass|halte?) [^;.]{1,60}\b(?:da)?raus\b",),
    "heraus": (r"<start>(?:lass|halte?) [^;.]{1,60}\bheraus\b",),
    "gehört": (
        r"\bgehört (?:nie|nicht|nur|immer|niemals|unter|auf|in) (?:jede\w*|alle|keine\w*)\b",
        r"\b(?:niemals|nie|nicht) in\b[^,;]{1,60}\bgehört\b",
    ),
    "besteht": (r"\b(?:darauf besteht|besteht darauf)\b",),
    "bestehe": (r"\b(?:darauf bestehe ich|ich bestehe darauf)\b",),
    "intern": (r"\b(?:bleibt|bleiben|bleib\w*) (?:[\w-]+ ){0,3}(?:intern|unter uns|geheim)\b",),
    "durchgehend": (r"\bdurchgehend\b[^,;]{0,60}(?:en|ern|eln)\b",),
    "spätestens": (r"\b(?:immer|jede\w*|alle) (?:[\w-]+ ){0,6}spätestens\b",),
    "pflicht": (r"\bpflicht\b(?=[.,;!]|$)",),
    "vorgeschrieben": (r"\b(?:ist|sind) (?:[\w-]+ ){0,4}vorgeschrieben\b",),
    "zwingend": (r"\bzwingend\b",),
    "erwünscht": (r"\b(?:nicht|un)[ ]?erwünscht\b",),
    "unerwünscht": (r"\b(?:ist|sind) (?:[\w-]+ ){0,3}unerwünscht\b",),
    "sieh": (r"<start>sieh (?:bitte )?zu,? dass\b",),
    "pass": (r"<start>pass (?:bitte )?(?:immer )?auf,? dass\b",),
    "dafür": (r"<start>sorge? (?:bitte )?(?:immer )?dafür\b",),
    "frage": (r"\bkomm(?:t|en) (?:[\w-]+ ){0,3}nicht in ?frage\b",),
    "infrage": (r"\bkomm(?:t|en) (?:[\w-]+ ){0,3}nicht infrage\b",),
    "kommt": (r"\bkommt (?:mir|uns) (?:[\w-]+ )?(?:nicht|kein\w*|nie|nur)\b",),
    "geht": (
        r"\bgeht (?:bei uns |hier )?(?:[\w-]+ ){0,2}nur (?:in|im|mit|per|auf|über|nach|an)\b",
    ),
    "gehen": (
        r"\bgehen (?:[\w-]+ ){0,4}(?:nur|immer|nie|niemals) (?:in|im|mit|per|auf|über|nach|an|erst"
        r"|zuerst)\b",
    ),
    "wird": (
        r"\bwird (?:[\w-]+ ){0,4}nicht mehr (?:[\w-]+ ){0,3}\w+(?:t|en)(?=[.,;!]|$)",
        r"\bwird (?:[\w-]+ ){0,4}nicht ge\w+(?:t|en)(?=[.,;!]|$)",
        r"\bwird (?:[\w-]+ ){0,6}(?:nie|niemals|immer|grundsätzlich|ausschließlich|nur (?:in|im|mit"
        r"|per|auf|nach|von)|nicht (?:vor|ohne|nach|an|in))\b",
    ),
    "werden": (
        r"\bwerden (?:[\w-]+ ){0,4}nicht ge\w+(?:t|en)(?=[.,;!]|$)",
        r"^(?!(?:die|der|das|wir|sie|ich|es|ihr|was|wie|wann|wo)\b)[a-zäöüß]+(?:en|er|e|s) werden "
        r"(?:[\w-]+ ){0,7}\w*ge\w+(?:t|en)(?=[.,;!]|$)",
        r"\bwerden (?:[\w-]+ ){0,6}(?:nie|niemals|immer|grundsätzlich|ausschließlich|nur (?:in|im"
        r"|mit|per|auf|nach|von)|nicht (?:vor|ohne|nach|an|in))\b(?!.*\b(?:wir|ich) )",
    ),
    "unter": (r"\b(?:bleibt|bleib\w*|bitte) (?:[\w-]+ ){0,2}unter uns\b",),
    "verbiete": (r"\bverbiete\b",),
    "verbietet": (r"\b(?:vertrag|gesetz|chef|chefin|ordnung|arzt|ärztin) (?:[\w-]+ )?verbietet\b",),
    "höchstens": (r"^(?:bitte )?höchstens [\w-]+ [\w-]+",),
    "maximal": (r"^(?:bitte )?maximal [\w-]+ [\w-]+",),
    "erspar": (r"<start>erspar mir\b",),
    "tabu": (r"\btabu\b(?=[.,;!]|$)",),
    "stopp": (r"<start>stopp\b",),
    "strikt": (r"\bstrikt\b",),
    "streng": (r"\bstreng (?:geheim|vertraulich|verboten|nach|getrennt)\b",),
    "okay": (r"\bohne mein okay\b",),
    "ok": (r"\bohne mein ok\b",),
    "einwilligung": (r"\bohne (?:[\w-]+ ){0,3}einwilligung\b",),
    "genehmigung": (r"\bohne (?:[\w-]+ ){0,3}genehmigung\b",),
    "erlaubnis": (r"\bohne (?:[\w-]+ ){0,3}erlaubnis\b",),
    "rückfrage": (r"\b(?:ohne|nur nach) (?:[\w-]+ ){0,3}rückfrage\b",),
    "mehr": (
        r"\bwir (?!sind|haben|wissen|können|waren|hatten)\w+ (?:[\w-]+ ){0,4}(?:nicht mehr|nie mehr"
        r"|kein\w* \w+ mehr)\b",
    ),
    "jeden": (
        rf"<start>{_NO_STATEMENT}jeden [\w-]+ [^,;:]{{0,60}} {_INFINITIVE}",
        rf"{_IMPERATIVE}{_SECOND_WORD} (?:[\w-]+ ){{0,3}}jeden [\w-]+ (?:auf|in|mit|nach|als"
        rf"|erst)\b",
    ),
    "keine": (
        *_build_limit("keine"),
        r"^(?:und |bitte |also )*keine (?!ahnung|sorge|lust|zeit|angst|frage|idee|ursache"
        r"|panik|chance"
        r"|eile|hektik|gute|schlechte|große)[\w-]+(?: [\w-]+)?[.!]*$",
    ),
    "falls": (
        r"\bfalls [^,;]{3,80}, (?:dann )?(?:bitte )?[a-zäöüß]+ (?:ihn|ihm|mir|mich|uns|bitte"
        r"|den|dem"
        r"|einen|alles|sofort|das) (?!ich\b|er\b|wir\b|man\b)",
    ),
    "ausschließlich": (
        r"\b[a-zäöüß]+st du (?:[\w-]+ ){0,5}ausschließlich\b(?! (?:wahr|mehr|noch|mal|kurz)\b)",
    ),
    "niemand": (
        r"\b(?:erfährt|bekommt|sieht|fasst|öffnet|betritt|unterschreibt"
        r"|hört) (?:[\w-]+ ){0,3}niemand\b",
    ),
    "bleibt": (
        r"\bbleibt (?:[\w-]+ ){1,4}(?:zu|geschlossen|draußen|außen vor|aus|weg|leer|privat"
        r"|verschlossen"
        r"|offen|intern|geheim)\b",
    ),
    "bleiben": (
        r"\bbleiben (?:[\w-]+ ){1,4}(?:zu|geschlossen|draußen|außen vor|aus|weg|leer|privat"
        r"|verschlossen|offen|intern|geheim)\b",
    ),
    "bloß": (r"\bbloß (?:nichts|nicht|kein\w*|nie)\b",),
    "braucht": (r"\b(?:jede\w*|alle) [\w-]+ braucht\b",),
    "gilt": (r"\bgilt:",),
}
