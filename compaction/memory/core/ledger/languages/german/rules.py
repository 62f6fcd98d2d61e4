"""By what rules and prohibitions are recognized in German."""

_ORDERS = (
    r"(?:verwend|benutz|nutz|nimm|nehm|schreib|antwort|sprich|sprech|red|schick|send|versend|ruf"
    r"|frag|deploy|push|merg|commit|buch|bestell|kauf|zahl|bezahl|akzeptier|führ|test|prüf"
    r"|behalt|halt|zeig|gib|geb|list|zitier|nenn|sag|speicher|leg|plan|änder|lösch|erstell"
    r"|installier|lies|les|übersetz|rund|formatier|unterschreib|beginn|fang|hör|beend|füg|mach|tu"
    r"|erwähn|empfiehl|empfehl|arbeit|verbind|achte|acht|denk|lass|gib|veröffentlich|teil|stell"
    r"|setz|fass|trag|warte|komm|fahr|geh|starte?|duz|siez|berühr|rühr|pack|gieß|füll|mail"
    r"|meld|kontaktier|rechn|wähl|bleib|vermeid|verzicht|unterlass|begründ|runde|notier|merk)"
    r"(?:e|en|t|et|st)?"
)
_NOT_STATED = (
    r"(?![^,;:]*\b(?:ich|er|hat|habe|haben|hatte|hatten|hast|war|waren|wird|werde|wurde|würde|ist"
    r"|sind|bin|ging|kam|gab|konnte|wollte|funktioniert|klappt|geht|passiert|kann)\b)"
)
_NEVER = (
    r"(?:nie|niemals|nie wieder|nie mehr|auf keinen fall|keinesfalls|unter keinen umständen"
    r"|nie und nimmer|zu keiner zeit)"
)
_NEVER_RULES = (
    # an order, or words that end in an infinitive: "Schick nie …", "Bitte nie direkt pushen."
    rf"<start>(?:du )?{_ORDERS} (?:[\w-]+ ){{0,7}}{_NEVER}\b",
    rf"^{_NOT_STATED}.{{0,160}}\b{_NEVER}\b.{{0,160}}[a-zäöüß](?:en|ern|eln|tun|sein)[.!) ]*$",
    rf"<start>(?:bitte )?{_NEVER} (?!im leben|gehört|gesehen|vergessen\b|da\b|zuvor|so\b).{{0,120}}"
    r"[a-zäöüß]+(?:en|ern|eln)\b",
    rf"\b(?:darf|darfst|dürfen|dürft|soll|sollst|sollen|sollt|sollte|sollten|solltest|muss|müssen"
    rf"|will|wollen|möchte) (?:[\w-]+,? ){{0,8}}{_NEVER}\b",
    rf"\b{_NEVER}\b (?:[\w-]+,? ){{0,10}}(?:darf|dürfen|soll|sollen|sollte|sollten)\b",
    rf"\bwir (?!haben\b|hatten\b|waren\b|sind\b|werden\b|wissen\b|wussten\b|können\b)[\w-]+"
    rf" (?:[\w-]+,? ){{0,5}}{_NEVER}\b",
    rf"\b(?:wird|werden) (?:bei uns |hier |grundsätzlich )(?:[\w-]+,? ){{0,5}}{_NEVER}\b",
)

RULE_CUES = {
    "nie": _NEVER_RULES,
    "niemals": _NEVER_RULES,
    "fall": (
        r"\bauf (?:gar )?keinen fall\b(?! (?:ist|war|hat)\b)",
        r"\bauf jeden fall (?:immer|nur)\b",
    ),
    "keinesfalls": (r"\bkeinesfalls\b",),
    "umständen": (r"\bunter (?:gar )?keinen umständen\b",),
    "ab": (
        r"\bab (?:jetzt|sofort|heute|nun|hier|diesem moment|morgen (?:immer|nur|bitte))\b(?! in "
        r"(?:urlaub|rente))",
    ),
    "an": (r"\bvon (?:jetzt|nun|heute|hier) an\b",),
    "künftig": (r"\bkünftig\b",),
    "zukünftig": (
        r"\bzukünftig (?:bitte|nur|immer|keine?|nie|alle|auf|im|mit|ohne|nicht)\b",
        rf"<start>{_ORDERS} (?:[\w-]+ ){{0,4}}zukünftig\b",
    ),
    "zukunft": (
        r"\bin zukunft (?:bitte|nur|immer|keine?\w*|nie|alle|auf|mit|ohne|nicht)\b",
        rf"<start>{_ORDERS} (?:[\w-]+ ){{0,4}}in zukunft\b",
    ),
    "fortan": (r"\bfortan\b",),
    "grundsätzlich": (
        r"\bgrundsätzlich (?:nur|nie|nicht|immer|keine?\w*|alle|auf|mit|ohne)\b",
        rf"<start>{_ORDERS} (?:[\w-]+ ){{0,4}}grundsätzlich\b",
    ),
    "prinzipiell": (r"\bprinzipiell (?:nur|nie|nicht|immer|keine?\w*)\b",),
    "ausnahme": (r"\b(?:ohne|keine) ausnahmen?\b",),
    "ausnahmen": (r"\b(?:ohne|keine) ausnahmen?\b",),
    "ausnahmslos": (r"\bausnahmslos\b",),
    "immer": (
        rf"<start>(?:du )?{_ORDERS} (?:[\w-]+ ){{0,7}}immer\b(?! noch\b| wieder\b| mehr\b)",
        rf"^{_NOT_STATED}.{{0,160}}\bimmer\b(?! noch\b| wieder\b| mehr\b).{{0,160}}"
        r"[a-zäöüß](?:en|ern|eln|tun)[.!) ]*$",
        r"<start>(?:bitte )?immer (?!noch\b|wieder\b|mehr\b|diese\b|dieser\b|das\b|gleiche\b"
        r"|wenn\b|öfter|schlimmer|besser|größer).{0,120}[a-zäöüß]+(?:en|ern|eln)\b",
        r"\b(?:soll|sollst|sollen|sollt|sollte|sollten|solltest|muss|musst|müssen|müsst|bitte"
        r"|will|möchte) (?:[\w-]+,? ){0,8}immer\b(?! noch\b| wieder\b| mehr\b)",
        r"\bbitte (?:[\w-]+ ){0,6}immer\b",
        r"\b(?:wir|man) (?!haben|hatten|waren|sind|werden|hat\b)[\w-]+ (?:[\w-]+ ){0,3}immer\b"
        r"(?! noch| wieder| mehr)",
    ),
    "jederzeit": (r"\bmuss (?:[\w-]+ ){0,4}jederzeit\b",),
    "stets": (r"\bstets\b",),
    "nicht": (
        r"\b(?:darf|darfst|dürfen|dürft) (?:[\w-]+,? ){0,10}nicht\b(?! wahr\b)",
        r"\bnicht (?:[\w-]+,? ){0,6}(?:darf|darfst|dürfen)\b",
        r"\b(?:soll|sollst|sollen|sollt) (?:[\w-]+,? ){0,8}nicht\b",
        rf"<start>(?:bitte )?{_ORDERS} (?:mir |uns |dem kunden |dabei |jetzt |hier |das |die |den "
        rf"|es |ihn |sie |ihm |ihr |[\w-]+ ){{0,5}}(?:bitte )?nicht\b(?! wahr| mehr als sonst)",
        r"\bbitte (?:[\w-]+ ){0,6}nicht (?:[\w-]+ ){0,4}[a-zäöüß]+(?:en|ern|eln)\b",
        rf"^{_NOT_STATED}(?:bitte )?(?:[\w-]+ ){{0,8}}nicht (?:[\w-]+ ){{0,4}}[a-zäöüß]+(?:en|ern"
        rf"|eln)[.!) ]*$",
        r"\b(?:ist|sind) (?:[\w-]+ ){0,5}nicht (?:erlaubt|gestattet|zulässig|erwünscht)\b",
        r"\b(?:ich|wir) (?:will|wollen|möchte|möchten) (?:[\w-]+,? ){0,4}nicht,? dass\b",
        r"\bnicht,? (?:bevor|ehe|solange|ohne)\b",
        r"\bniemand\b.{0,40}\bnicht\b",
    ),
    "kein": (
        r"\b(?:darf|dürfen|darfst|soll|sollen|bitte|will|möchte) (?:[\w-]+,? ){0,5}kein\b",
        rf"<start>{_ORDERS} (?:[\w-]+,? ){{0,3}}kein\b",
        r"<start>kein [\w-]+ (?:vor|nach|am|in"
        r"|im|an|ohne|auf|für|mehr|bitte|unter|über|während|außerhalb)\b",
    ),
    "keine": (
        r"\b(?:darf|dürfen|darfst|soll|sollen|bitte|will|möchte) (?:[\w-]+,? ){0,5}keine\b",
        rf"<start>{_ORDERS} (?:[\w-]+,? ){{0,3}}keine\b",
        r"<start>keine (?!ahnung|sorge"
        r"|lust|zeit|angst|frage|idee|ursache|panik|chance)[\w-]+ (?:vor|nach|am|in|im|an"
        r"|ohne|auf|für|mehr|bitte|unter|über|während|außerhalb|verwenden|benutzen|nutzen)\b",
        r"<start>(?:bitte )?keine (?!ahnung|sorge|lust|zeit|angst|frage|idee|ursache|panik"
        r"|chance)[\w-]+(?: [\w-]+){0,5} [a-zäöüß]+(?:en|ern|eln)[.!) ]*$",
        r"\bkeine [\w-]+, bitte\b",
    ),
    "keinen": (
        r"\b(?:darf|dürfen|darfst|soll|sollen|bitte|will|möchte) (?:[\w-]+,? ){0,5}keinen\b",
        rf"<start>{_ORDERS} (?:[\w-]+,? ){{0,3}}keinen\b",
        r"<start>keinen [\w-]+ .{0,80}"
        r"[a-zäöüß]+(?:en|ern|eln)[.!) ]*$",
    ),
    "keinem": (
        rf"<start>{_ORDERS} (?:[\w-]+,? ){{0,4}}keinem\b",
        r"\b(?:darf|dürfen|soll) "
        r"(?:[\w-]+ ){0,4}keinem\b",
    ),
    "keiner": (r"\bkeiner (?:darf|soll)\b",),
    "niemand": (
        r"\bniemand (?:außer [\w-]+ )?(?:[\w-]+ ){0,2}(?:darf|soll|sonst)\b",
        r"\b(?:darf"
        r"|soll) (?:[\w-]+ ){0,4}niemand\b",
    ),
    "nichts": (
        r"\b(?:darf|soll|dürfen|sollen) (?:[\w-]+ ){0,4}nichts\b",
        r"<start>nichts [\w-]+ "
        r".{0,60}\b(?:ohne|bevor|außer)\b",
        rf"<start>{_ORDERS} (?:[\w-]+ ){{0,3}}nichts\b",
    ),
    "nur": (
        rf"<start>(?:bitte )?{_ORDERS} (?:[\w-]+,? ){{0,5}}(?:bitte )?nur\b(?! (?:kurz|mal|so)\b)",
        r"\b(?:darf|darfst|dürfen|soll|sollst|sollen|sollte|muss|müssen|bitte) (?:[\w-]+,? ){0,6}"
        r"nur\b(?! (?:kurz|mal|noch|so)\b)",
        r"\bnur (?:[\w-]+ ){0,6}(?:darf|dürfen|erlaubt|zulässig)\b",
        r"\bwir (?!haben\b|hatten\b|waren\b|sind\b|können\b)[\w-]+ (?:[\w-]+ ){0,3}nur (?!noch\b)",
        rf"^{_NOT_STATED}(?:bitte )?(?:[\w-]+ ){{0,4}}nur (?!noch|kurz)(?:[\w-]+ ){{0,7}}"
        r"[a-zäöüß]+(?:en|ern|eln)[.!) ]*$",
    ),
    "ausschließlich": (r"\bausschließlich\b",),
    "muss": (
        r"\bmuss (?:[\w-]+,? ){0,12}(?:werden|bleiben|enthalten|haben|stehen|passen|kommen|laufen"
        r"|erfolgen|vorliegen|lauten|beginnen|enden|dabei sein|unterschreiben|freigeben|zustimmen"
        r"|genehmigen)\b(?<!ich)",
        r"\b(?:jede|jeder|jedes|alles|alle) (?:[\w-]+ ){0,5}muss\b",
        r"\bmuss (?:unbedingt|zwingend|immer|stets|vorher|zuerst|erst)\b",
    ),
    "müssen": (
        r"\b(?:alle|sämtliche|die|unsere) (?:[\w-]+ ){0,6}müssen\b",
        r"\bmüssen (?:[\w-]+,? ){0,10}(?:werden|bleiben|enthalten|sein)\b",
    ),
    "musst": (
        r"\bdu musst\b(?! (?:wissen|mir glauben|verstehen|sagen))",
        r"\bmusst du (?:immer"
        r"|vorher|erst|zuerst|unbedingt)\b",
    ),
    "darfst": (
        r"\bdarfst du (?:nie|nicht|nur|kein\w*|niemals|wieder)\b",
        r"\bdu darfst (?:nie"
        r"|nicht|nur|kein\w*|niemals|ab|jetzt|wieder)\b",
        r"\bdu darfst .{0,80}\b(?:wieder"
        r"|doch|nur|nicht|nie)\b",
    ),
    "dürfen": (r"\bdürfen (?:[\w-]+,? ){0,6}(?:nur|nicht|nie|niemals|keine?\w*|wieder)\b",),
    "darf": (
        r"\bdarf (?:[\w-]+,? ){0,6}(?:nur|nicht(?! wahr)|nie|niemals|keine?\w*|höchstens"
        r"|maximal)\b",
    ),
    "regel": (
        r"\b(?:neue|feste|eiserne|wichtige|wichtigste|goldene|unsere|meine|eine|die|als|haus)"
        r" regel\b(?: ist|:| lautet| gilt|,| für| hier)",
        r"^regel(?: \d+| nummer \w+)?:",
        r"\bregel(?:,| ist| lautet)",
    ),
    "grundregel": (r"\bgrundregel\b",),
    "hausregel": (r"\bhausregel\b",),
    "vorgabe": (r"\bvorgabe\b(?::| ist| lautet| von)", r"^vorgabe\b"),
    "gilt": (r"\bes gilt:", r"\b(?:ab jetzt|hier|grundsätzlich|künftig|bei uns|immer) gilt\b"),
    "merk": (r"<start>merk dir\b", r"\bmerk dir (?:bitte|das|dass|:|für)"),
    "merke": (r"<start>merke? dir\b", r"^merke:"),
    "merken": (r"\bbitte merken\b", r"\bdas bitte merken\b"),
    "denk": (r"<start>denk(?:e)? (?:bitte )?(?:immer |stets )?(?:daran|dran)\b",),
    "denke": (r"<start>denke (?:bitte )?(?:immer |stets )?daran\b",),
    "achte": (r"<start>achte (?:bitte )?(?:immer |stets )?(?:darauf|auf)\b",),
    "achten": (r"\b(?:bitte|immer|stets) (?:[\w-]+ ){0,4}achten\b",),
    "sicher": (r"<start>stell(?:e)? (?:bitte )?(?:immer )?sicher\b",),
    "vermeide": (r"\bvermeide\b",),
    "vermeiden": (
        r"\b(?:bitte|unbedingt|immer|sollst|sollen|zu) (?:[\w-]+ ){0,4}vermeiden\b",
        r"\bvermeiden[.!]*$",
    ),
    "verzichte": (r"<start>verzichte (?:bitte )?(?:auf|immer)\b",),
    "unterlass": (r"<start>unterlass\b",),
    "lass": (
        r"<start>lass (?:bitte )?(?:die finger|das|den|die|alle) .{0,80}\b(?:weg|in ruhe|von)"
        r"\b",
    ),
    "finger": (r"\bfinger weg\b", r"\bdie finger (?:von|davon)\b"),
    "hör": (r"<start>hör (?:bitte )?auf\b", r"<start>hör (?:bitte )?auf,? "),
    "tabu": (r"\b(?:ist|sind|bleibt|bleiben) (?:[\w-]+ ){0,3}tabu\b", r"\btabu[.!]*$"),
    "verboten": (r"\b(?:ist|sind|bleibt|bleiben) (?:[\w-]+ ){0,6}verboten\b", r"\bverboten[.!]*$"),
    "untersagt": (r"\b(?:ist|sind) (?:[\w-]+ ){0,4}untersagt\b",),
    "erlaubt": (r"\b(?:nicht|nur|nie) (?:[\w-]+ ){0,4}erlaubt\b", r"\berlaubt (?:ist|sind) nur\b"),
    "pflicht": (r"\b(?:ist|sind) (?:[\w-]+ ){0,3}pflicht\b", r"\bpflicht[.!]*$"),
    "verpflichtend": (r"\b(?:ist|sind) verpflichtend\b",),
    "freigabe": (r"\b(?:ohne|meine|braucht|bis zur) (?:[\w-]+ ){0,3}freigabe\b",),
    "rücksprache": (r"\b(?:ohne|nach|nur nach) (?:[\w-]+ ){0,3}rücksprache\b",),
    "zustimmung": (r"\b(?:ohne|nur mit) (?:[\w-]+ ){0,3}zustimmung\b",),
    "fragen": (r"\bohne (?:mich |uns |vorher )*zu fragen\b",),
    "frag": (r"<start>frage? (?:mich |uns |bitte |immer )*(?:vorher|zuerst|erst|bevor|immer)\b",),
    "bevor": (rf"\bbevor du\b.{{0,100}}, {_ORDERS}\b", r"\berst .{1,60}, bevor\b"),
    "außer": (r"\b(?:nie|nicht|keine?\w*|niemand|nichts)\b.{0,120}\baußer\b",),
    "solange": (r"\b(?:nie|nicht|keine?\w*|nichts)\b.{0,120}\bsolange\b",),
    "wenn": (rf"\b(?:immer|jedes mal),? wenn\b.{{0,120}}, (?:dann )?{_ORDERS}\b",),
    "jedes": (
        rf"\bjedes mal,? wenn\b.{{0,120}}, (?:dann )?{_ORDERS}\b",
        r"^jedes [\w-]+ (?:[\w-]+ "
        r"){0,4}(?:muss|braucht|bekommt|endet|beginnt|soll)\b",
    ),
    "jede": (
        r"^jede [\w-]+ (?:[\w-]+ ){0,4}(?:muss|braucht|bekommt|endet|beginnt|soll)\b",
        rf"<start>{_ORDERS} (?:[\w-]+ ){{0,3}}jede\b",
    ),
    "jeder": (r"^jeder [\w-]+ (?:[\w-]+ ){0,4}(?:muss|braucht|bekommt|endet|beginnt|soll)\b",),
    "egal": (
        rf"\begal,? (?:was|wie|wer|wann)\b.{{0,100}}(?:nie|nicht|immer|{_ORDERS})\b",
        r"\b(?:nie|nicht|immer|kein\w*)\b.{0,100}\begal,? (?:was|wie|wer|wann)\b",
    ),
    "bleib": (r"<start>bleib(?:e)? (?:bitte )?(?:immer )?(?:bei|unter|beim)\b",),
    "halte": (
        r"<start>halte? (?:dich|alles|die|deine|es|das) .{0,60}\b(?:kurz|geheim|knapp|an|unter"
        r"|vertraulich|einfach)\b",
    ),
    "halt": (
        r"<start>halt (?:dich|alles|die|deine|es|das) .{0,60}\b(?:kurz|geheim|knapp|an|unter"
        r"|vertraulich|einfach)\b",
    ),
    "vertraulich": (
        r"\b(?:ist|sind|bleibt|bleiben|streng|alles|bitte) (?:[\w-]+ ){0,3}vertraulich"
        r"\b",
    ),
    "statt": (rf"<start>{_ORDERS} .{{1,60}}\bstatt\b",),
    "wieder": (r"\b(?:darfst|dürfen|kannst|können|darf) .{0,100}\bwieder\b.{0,60}",),
    "mehr": (
        r"\b(?:muss|musst|müssen|brauchst|braucht) .{0,80}\bnicht mehr\b",
        r"<start>nicht mehr .{0,80}[a-zäöüß]+(?:en|ern|eln)[.!) ]*$",
    ),
    "wichtig": (
        r"^(?:ganz |sehr |noch |auch |und )*wichtig(?:[:,!–—-]| ist| noch)",
        r"\bwichtig(?:,| ist),? dass\b",
        r"\bmir ist (?:[\w-]+ )?wichtig\b",
    ),
    "wünsche": (r"\bich wünsche (?:mir )?(?:nur|keine?\w*|immer)\b",),
    "vergiss": (r"<start>vergiss (?:die|meine) (?:[\w-]+ ){0,3}(?:regel|vorgabe|anweisung)\b",),
    "aufgehoben": (r"\b(?:regel|verbot|vorgabe|freeze) .{0,60}aufgehoben\b",),
    "bitte": (
        r"\bbitte (?:ab (?:jetzt|sofort)|künftig|nie|niemals|nur|immer|stets|keine?n?|nicht"
        r"|ausschließlich|grundsätzlich)\b",
    ),
    "höchstens": (
        rf"<start>{_ORDERS} (?:[\w-]+ ){{0,4}}höchstens\b",
        r"\b(?:darf|dürfen|soll"
        r"|sollen) (?:[\w-]+ ){0,5}höchstens\b",
    ),
    "maximal": (
        rf"<start>{_ORDERS} (?:[\w-]+ ){{0,4}}maximal\b",
        r"\b(?:darf|dürfen|soll|sollen) "
        r"(?:[\w-]+ ){0,5}maximal\b",
    ),
}
