"""German: by what rules, preferences, decisions, commitments and values are recognized."""

from compaction.memory.core.ledger.languages.base import Language, parse_cues, parse_parts

PARTS = parse_parts(r"""
language names: englisch|deutsch|französisch|spanisch|italienisch|niederländisch|portugiesisch
        |polnisch|russisch|türkisch|arabisch|chinesisch|japanisch|schwedisch|dänisch|griechisch
        |ukrainisch|latein|koreanisch
orders: (?:verwend|benutz|nutz|nimm|nehm|schreib|antwort|sprich|sprech|red|schick|send|versend|ruf
        |frag|deploy|push|merg|commit|buch|bestell|kauf|zahl|bezahl|akzeptier|führ|test|prüf|behalt
        |halt|zeig|gib|geb|list|zitier|nenn|sag|speicher|leg|plan|änder|lösch|erstell|installier
        |lies|les|übersetz|rund|formatier|unterschreib|beginn|fang|hör|beend|füg|mach|tu|erwähn
        |empfiehl|empfehl|arbeit|verbind|achte|acht|denk|lass|gib|veröffentlich|teil|stell|setz|fass
        |trag|warte|komm|fahr|geh|starte?|duz|siez|berühr|rühr|pack|gieß|füll|mail|meld|kontaktier
        |rechn|wähl|bleib|vermeid|verzicht|unterlass|begründ|runde|notier|merk)(?:e|en|t|et|st)?
not stated: (?![^,;:]*\b(?:ich|er|hat|habe|haben|hatte|hatten|hast|war|waren|wird|werde|wurde|würde
        |ist|sind|bin|ging|kam|gab|konnte|wollte|funktioniert|klappt|geht|passiert|kann)\b)
never: (?:nie|niemals|nie wieder|nie mehr|auf keinen fall|keinesfalls|unter keinen umständen
        |nie und nimmer|zu keiner zeit)
# Words that begin a statement and never an order.
statement starts: ich|du|er|sie|es|wir|ihr|man|der|die|das|den|dem|des|ein|eine|einen|einem|einer
        |mein\w*|unser\w*|dein\w*|sein\w*|ihre\w*|dies\w*|jen\w+|kein\w*|nicht\w*|nie|niemals
        |niemand|in|im|an|am|auf|aus|bei|beim|mit|nach|von|vom|zu|zum|zur|für|vor|seit|über|unter
        |hinter|neben|zwischen|ohne|um|gegen|durch|bis|trotz|wegen|während|gestern|heute|morgen
        |jetzt|nun|dann|da|hier|dort|leider|vielleicht|noch|schon|erst|nur|auch|so|wie|was|wer|wann
        |wo|warum|wieso|welche\w*|wenn|weil|dass|ob|als|obwohl|und|oder|aber|denn|sondern|habe?|hat
        |hast|hatte\w*|bin|ist|sind|war\w*|wird|werde\w*|wurde\w*|kann\w*|könn\w+|muss\w*|müss\w+
        |will|wollen|wollte\w*|soll\w*|darf\w*|dürf\w+|mag|möchte\w*|weiß|finde|denke|glaube|gibt
        |geht|kommt|hauptsache|überhaupt|gerne?|frag nur|ganz|sehr|gar|eher|eigentlich|manchmal|oft
        |damals|irgendwie|alles|etwas|nichts|ja|nein|doch|klar|gut|okay|danke|hallo|sorry|zufällig
        |tatsächlich|wohlgemerkt|bisher|früher|später|letzte\w*|nächste\w*|beide|viele|manche|einige
        |mir|mich|uns|dich|dir|ihm|ihn|ihnen
# A clause with one of these states something.
no statement: (?![^,;:]*\b(?:ich|er|man|hat|habe|haben|hatte|hatten|hast|war|waren|wird|werde|wurde
        |wurden|würde|ist|sind|bin|ging|kam|gab|gibt|konnte|konnten|wollte|funktioniert|klappt|geht
        |passiert|kann|könnte|weiß|scheint|bleibt|kommt|macht|dauert|kostet|sagt|sagte|meinte
        |stimmt)\b)
imperative: <start><no statement>(?!(?:<statement starts>)\b)[a-zäöüß]{3,}
second word: (?! (?:ich|er|es|wir|man|ihr|sich)\b)
end: (?= ?[,;:.!)–—]|$)
infinitive: [a-zäöüß]+(?:en|ern|eln|tun)<end>
when: (?:bis|am|vor|nach|heute|morgen|übermorgen|nächste\w*|diese\w*|um|in|spätestens|sobald|wenn
        |montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag|ende der woche)\b
""")

RULES = r"""
nie niemals:
    <start>(?:du )?<orders> (?:[\w-]+ ){0,7}<never>\b
    ^<not stated>.{0,160}\b<never>\b.{0,160}[a-zäöüß](?:en|ern|eln|tun|sein)[.!) ]*$
    <start>(?:bitte )?<never> (?!im leben|gehört|gesehen|vergessen\b|da\b|zuvor
        |so\b).{0,120}[a-zäöüß]+(?:en|ern|eln)\b
    \b(?:darf|darfst|dürfen|dürft|soll|sollst|sollen|sollt|sollte|sollten|solltest|muss|müssen|will
        |wollen|möchte) (?:[\w-]+,? ){0,8}<never>\b
    \b<never>\b (?:[\w-]+,? ){0,10}(?:darf|dürfen|soll|sollen|sollte|sollten)\b
    \bwir (?!haben\b|hatten\b|waren\b|sind\b|werden\b|wissen\b|wussten\b
        |können\b)[\w-]+ (?:[\w-]+,? ){0,5}<never>\b
    \b(?:wird|werden) (?:bei uns |hier |grundsätzlich )(?:[\w-]+,? ){0,5}<never>\b
fall:
    \bauf (?:gar )?keinen fall\b(?! (?:ist|war|hat)\b)
    \bauf jeden fall (?:immer|nur)\b
umständen: \bunter (?:gar )?keinen umständen\b
ab: \bab (?:jetzt|sofort|heute|nun|hier|diesem moment|morgen (?:immer|nur|bitte))\b(?! in (?:urlaub
        |rente))
an: \bvon (?:jetzt|nun|heute|hier) an\b
zukünftig grundsätzlich höchstens maximal: <start><orders> (?:[\w-]+ ){0,4}<word>\b
zukünftig: \bzukünftig (?:bitte|nur|immer|keine?|nie|alle|auf|im|mit|ohne|nicht)\b
zukunft:
    \bin zukunft (?:bitte|nur|immer|keine?\w*|nie|alle|auf|mit|ohne|nicht)\b
    <start><orders> (?:[\w-]+ ){0,4}in zukunft\b
grundsätzlich: \bgrundsätzlich (?:nur|nie|nicht|immer|keine?\w*|alle|auf|mit|ohne)\b
prinzipiell: \bprinzipiell (?:nur|nie|nicht|immer|keine?\w*)\b
ausnahme ausnahmen: \b(?:ohne|keine) ausnahmen?\b
immer:
    <start>(?:du )?<orders> (?:[\w-]+ ){0,7}immer\b(?! noch\b| wieder\b| mehr\b)
    ^<not stated>.{0,160}\bimmer\b(?! noch\b| wieder\b| mehr\b).{0,160}[a-zäöüß](?:en|ern|eln
        |tun)[.!) ]*$
    <start>(?:bitte )?immer (?!noch\b|wieder\b|mehr\b|diese\b|dieser\b|das\b|gleiche\b|wenn\b|öfter
        |schlimmer|besser|größer).{0,120}[a-zäöüß]+(?:en|ern|eln)\b
    \b(?:soll|sollst|sollen|sollt|sollte|sollten|solltest|muss|musst|müssen|müsst|bitte|will
        |möchte) (?:[\w-]+,? ){0,8}immer\b(?! noch\b| wieder\b| mehr\b)
    \bbitte (?:[\w-]+ ){0,6}immer\b
    \b(?:wir|man) (?!haben|hatten|waren|sind|werden|hat\b)[\w-]+ (?:[\w-]+ ){0,3}immer\b(?! noch
        | wieder| mehr)
jederzeit: \bmuss (?:[\w-]+ ){0,4}jederzeit\b
nicht:
    \b(?:darf|darfst|dürfen|dürft) (?:[\w-]+,? ){0,10}nicht\b(?! wahr\b)
    \bnicht (?:[\w-]+,? ){0,6}(?:darf|darfst|dürfen)\b
    \b(?:soll|sollst|sollen|sollt) (?:[\w-]+,? ){0,8}nicht\b
    <start>(?:bitte )?<orders> (?:mir |uns |dem kunden |dabei |jetzt |hier |das |die |den |es |ihn |
        sie |ihm |ihr |[\w-]+ ){0,5}(?:bitte )?nicht\b(?! wahr| mehr als sonst)
    \bbitte (?:[\w-]+ ){0,6}nicht (?:[\w-]+ ){0,4}[a-zäöüß]+(?:en|ern|eln)\b
    ^<not stated>(?:bitte )?(?:[\w-]+ ){0,8}nicht (?:[\w-]+ ){0,4}[a-zäöüß]+(?:en|ern|eln)[.!) ]*$
    \b(?:ist|sind) (?:[\w-]+ ){0,5}nicht (?:erlaubt|gestattet|zulässig|erwünscht)\b
    \b(?:ich|wir) (?:will|wollen|möchte|möchten) (?:[\w-]+,? ){0,4}nicht,? dass\b
    \bnicht,? (?:bevor|ehe|solange|ohne)\b
    \bniemand\b.{0,40}\bnicht\b
kein keine keinen:
    \b(?:darf|dürfen|darfst|soll|sollen|bitte|will|möchte) (?:[\w-]+,? ){0,5}<word>\b
    <start><orders> (?:[\w-]+,? ){0,3}<word>\b
kein: <start>kein [\w-]+ (?:vor|nach|am|in|im|an|ohne|auf|für|mehr|bitte|unter|über|während
        |außerhalb)\b
keine:
    <start>keine (?!ahnung|sorge|lust|zeit|angst|frage|idee|ursache|panik|chance)[\w-]+ (?:vor|nach
        |am|in|im|an|ohne|auf|für|mehr|bitte|unter|über|während|außerhalb|verwenden|benutzen
        |nutzen)\b
    <start>(?:bitte )?keine (?!ahnung|sorge|lust|zeit|angst|frage|idee|ursache|panik
        |chance)[\w-]+(?: [\w-]+){0,5} [a-zäöüß]+(?:en|ern|eln)[.!) ]*$
    \bkeine [\w-]+, bitte\b
keinen: <start>keinen [\w-]+ .{0,80}[a-zäöüß]+(?:en|ern|eln)[.!) ]*$
keinem:
    <start><orders> (?:[\w-]+,? ){0,4}keinem\b
    \b(?:darf|dürfen|soll) (?:[\w-]+ ){0,4}keinem\b
keiner: \bkeiner (?:darf|soll)\b
niemand:
    \bniemand (?:außer [\w-]+ )?(?:[\w-]+ ){0,2}(?:darf|soll|sonst)\b
    \b(?:darf|soll) (?:[\w-]+ ){0,4}niemand\b
nichts jede: <start><orders> (?:[\w-]+ ){0,3}<word>\b
nichts:
    \b(?:darf|soll|dürfen|sollen) (?:[\w-]+ ){0,4}nichts\b
    <start>nichts [\w-]+ .{0,60}\b(?:ohne|bevor|außer)\b
nur:
    <start>(?:bitte )?<orders> (?:[\w-]+,? ){0,5}(?:bitte )?nur\b(?! (?:kurz|mal|so)\b)
    \b(?:darf|darfst|dürfen|soll|sollst|sollen|sollte|muss|müssen
        |bitte) (?:[\w-]+,? ){0,6}nur\b(?! (?:kurz|mal|noch|so)\b)
    \bnur (?:[\w-]+ ){0,6}(?:darf|dürfen|erlaubt|zulässig)\b
    \bwir (?!haben\b|hatten\b|waren\b|sind\b|können\b)[\w-]+ (?:[\w-]+ ){0,3}nur (?!noch\b)
    ^<not stated>(?:bitte )?(?:[\w-]+ ){0,4}nur (?!noch|kurz)(?:[\w-]+ ){0,7}[a-zäöüß]+(?:en|ern
        |eln)[.!) ]*$
muss:
    \bmuss (?:[\w-]+,? ){0,12}(?:werden|bleiben|enthalten|haben|stehen|passen|kommen|laufen|erfolgen
        |vorliegen|lauten|beginnen|enden|dabei sein|unterschreiben|freigeben|zustimmen
        |genehmigen)\b(?<!ich)
    \b(?:jede|jeder|jedes|alles|alle) (?:[\w-]+ ){0,5}muss\b
    \bmuss (?:unbedingt|zwingend|immer|stets|vorher|zuerst|erst)\b
müssen:
    \b(?:alle|sämtliche|die|unsere) (?:[\w-]+ ){0,6}müssen\b
    \bmüssen (?:[\w-]+,? ){0,10}(?:werden|bleiben|enthalten|sein)\b
musst:
    \bdu musst\b(?! (?:wissen|mir glauben|verstehen|sagen))
    \bmusst du (?:immer|vorher|erst|zuerst|unbedingt)\b
darfst:
    \bdarfst du (?:nie|nicht|nur|kein\w*|niemals|wieder)\b
    \bdu darfst (?:nie|nicht|nur|kein\w*|niemals|ab|jetzt|wieder)\b
    \bdu darfst .{0,80}\b(?:wieder|doch|nur|nicht|nie)\b
dürfen: \bdürfen (?:[\w-]+,? ){0,6}(?:nur|nicht|nie|niemals|keine?\w*|wieder)\b
darf: \bdarf (?:[\w-]+,? ){0,6}(?:nur|nicht(?! wahr)|nie|niemals|keine?\w*|höchstens|maximal)\b
regel:
    \b(?:neue|feste|eiserne|wichtige|wichtigste|goldene|unsere|meine|eine|die|als
        |haus) regel\b(?: ist|:| lautet| gilt|,| für| hier)
    ^regel(?: \d+| nummer \w+)?:
    \bregel(?:,| ist| lautet)
vorgabe:
    \bvorgabe\b(?::| ist| lautet| von)
    ^vorgabe\b
gilt:
    \bes gilt:
    \b(?:ab jetzt|hier|grundsätzlich|künftig|bei uns|immer) gilt\b
merk:
    <start>merk dir\b
    \bmerk dir (?:bitte|das|dass|:|für)
merke:
    <start>merke? dir\b
    ^merke:
merken:
    \bbitte merken\b
    \bdas bitte merken\b
denk: <start>denk(?:e)? (?:bitte )?(?:immer |stets )?(?:daran|dran)\b
denke: <start>denke (?:bitte )?(?:immer |stets )?daran\b
achte: <start>achte (?:bitte )?(?:immer |stets )?(?:darauf|auf)\b
achten: \b(?:bitte|immer|stets) (?:[\w-]+ ){0,4}achten\b
sicher: <start>stell(?:e)? (?:bitte )?(?:immer )?sicher\b
vermeiden:
    \b(?:bitte|unbedingt|immer|sollst|sollen|zu) (?:[\w-]+ ){0,4}vermeiden\b
    \bvermeiden[.!]*$
verzichte: <start>verzichte (?:bitte )?(?:auf|immer)\b
unterlass: <start>unterlass\b
lass: <start>lass (?:bitte )?(?:die finger|das|den|die|alle) .{0,80}\b(?:weg|in ruhe|von)\b
finger:
    \bfinger weg\b
    \bdie finger (?:von|davon)\b
hör:
    <start>hör (?:bitte )?auf\b
    <start>hör (?:bitte )?auf,?[ ]
tabu:
    \b(?:ist|sind|bleibt|bleiben) (?:[\w-]+ ){0,3}tabu\b
    \btabu[.!]*$
verboten:
    \b(?:ist|sind|bleibt|bleiben) (?:[\w-]+ ){0,6}verboten\b
    \bverboten[.!]*$
untersagt: \b(?:ist|sind) (?:[\w-]+ ){0,4}untersagt\b
erlaubt:
    \b(?:nicht|nur|nie) (?:[\w-]+ ){0,4}erlaubt\b
    \berlaubt (?:ist|sind) nur\b
pflicht:
    \b(?:ist|sind) (?:[\w-]+ ){0,3}pflicht\b
    \bpflicht[.!]*$
verpflichtend: \b(?:ist|sind) verpflichtend\b
freigabe: \b(?:ohne|meine|braucht|bis zur) (?:[\w-]+ ){0,3}freigabe\b
rücksprache: \b(?:ohne|nach|nur nach) (?:[\w-]+ ){0,3}rücksprache\b
zustimmung: \b(?:ohne|nur mit) (?:[\w-]+ ){0,3}zustimmung\b
fragen: \bohne (?:mich |uns |vorher )*zu fragen\b
frag: <start>frage? (?:mich |uns |bitte |immer )*(?:vorher|zuerst|erst|bevor|immer)\b
bevor:
    \bbevor du\b.{0,100}, <orders>\b
    \berst .{1,60}, bevor\b
außer: \b(?:nie|nicht|keine?\w*|niemand|nichts)\b.{0,120}\baußer\b
solange: \b(?:nie|nicht|keine?\w*|nichts)\b.{0,120}\bsolange\b
wenn: \b(?:immer|jedes mal),? wenn\b.{0,120}, (?:dann )?<orders>\b
jedes jede jeder: ^<word> [\w-]+ (?:[\w-]+ ){0,4}(?:muss|braucht|bekommt|endet|beginnt|soll)\b
jedes: \bjedes mal,? wenn\b.{0,120}, (?:dann )?<orders>\b
egal:
    \begal,? (?:was|wie|wer|wann)\b.{0,100}(?:nie|nicht|immer|<orders>)\b
    \b(?:nie|nicht|immer|kein\w*)\b.{0,100}\begal,? (?:was|wie|wer|wann)\b
bleib: <start>bleib(?:e)? (?:bitte )?(?:immer )?(?:bei|unter|beim)\b
halte: <start>halte? (?:dich|alles|die|deine|es|das) .{0,60}\b(?:kurz|geheim|knapp|an|unter
        |vertraulich|einfach)\b
halt: <start>halt (?:dich|alles|die|deine|es|das) .{0,60}\b(?:kurz|geheim|knapp|an|unter|vertraulich
        |einfach)\b
vertraulich: \b(?:ist|sind|bleibt|bleiben|streng|alles|bitte) (?:[\w-]+ ){0,3}vertraulich\b
statt: <start><orders> .{1,60}\bstatt\b
wieder: \b(?:darfst|dürfen|kannst|können|darf) .{0,100}\bwieder\b.{0,60}
mehr:
    \b(?:muss|musst|müssen|brauchst|braucht) .{0,80}\bnicht mehr\b
    <start>nicht mehr .{0,80}[a-zäöüß]+(?:en|ern|eln)[.!) ]*$
wichtig:
    ^(?:ganz |sehr |noch |auch |und )*wichtig(?:[:,!–—-]| ist| noch)
    \bwichtig(?:,| ist),? dass\b
    \bmir ist (?:[\w-]+ )?wichtig\b
wünsche: \bich wünsche (?:mir )?(?:nur|keine?\w*|immer)\b
vergiss: <start>vergiss (?:die|meine) (?:[\w-]+ ){0,3}(?:regel|vorgabe|anweisung)\b
aufgehoben: \b(?:regel|verbot|vorgabe|freeze) .{0,60}aufgehoben\b
bitte: \bbitte (?:ab (?:jetzt|sofort)|künftig|nie|niemals|nur|immer|stets|keine?n?|nicht
        |ausschließlich|grundsätzlich)\b
höchstens maximal: \b(?:darf|dürfen|soll|sollen) (?:[\w-]+ ){0,5}<word>\b
keinesfalls künftig fortan ausnahmslos stets ausschließlich grundregel hausregel vermeide
"""

# Standing orders that need no word such as "niemals": imperatives with a limit ("versprich in
# keinem Brief einen Ausgang"), orders without a verb ("alle Beträge in Euro"), wishes ("ich möchte,
# dass du …") and duties of things.
ORDERS = r"""
nie niemals kein keinen keinem keiner nichts niemanden niemandem nicht nur ohne keine:
    <imperative><second word> (?:[\w-]+ ){0,7}<word>\b
nie niemals kein keinen keinem keiner nichts niemanden niemandem nicht nur keine:
    <start><no statement>[^,;:]{0,120}\b<word>\b[^,;:]{0,120} <infinitive>
nie niemals: (?:^|[,;:–-] )<word> (?:als|in|im|auf|mit|per|ohne|vor|an|unter|über|bei)\b
nie niemals niemanden niemandem: \b[a-zäöüß]+st du (?:[\w-]+ ){0,5}<word>\b
nicht nur ausschließlich:
    \b[a-zäöüß]+st du (?:[\w-]+ ){0,5}<word>\b(?! (?:wahr|mehr|noch|mal|kurz)\b)
nicht:
    \bnicht (?:in|im|auf|mit|per|über|an|zu|als|vor|nach) (?:[\w-]+ ){0,2}[\w-]+,? bitte\b
    <start><no statement>[^;:]{2,80}, nicht (?:in|im|auf|mit|per|über|an|zu|als)\b
immer:
    ^(?!(?:ich|wir|sie|er|es|das|die)\b)[\w-]+ (?:haben|tragen|bekommen|enthalten|stehen|liegen
        |kommen|bleiben|beginnen|enden|gehen|brauchen) immer\b
    <imperative><second word> (?:[\w-]+ ){0,7}immer\b(?! (?:noch|wieder|mehr|dieser?)\b)
    <start><no statement>[^,;:]{0,120}\bimmer\b(?! (?:noch|wieder|mehr)\b)[^,;:]{0,120} <infinitive>
    <start><no statement>[^,;:]{2,60} immer (?:nur|erst|zuerst|in|im|mit|per|auf|über|an|vor|nach
        |als|zu)\b
nur: <start><no statement>[^,;:]{2,60} nur (?:noch |nach )?(?:in|im|mit|per|auf|über|ab|bis|von|vor
        |nach|zu|an|unter|für|als|am)\b
ohne:
    \b(?:nichts|kein\w*|niemand|nie|nicht)\b[^;:]{0,80}\bohne\b[^;:]{0,80}<infinitive>
    \b(?:kommt|geht|läuft|verlässt|wird) (?:kein\w*|nichts|niemand)\b[^;:]{0,80}\bohne\b
erst:
    <imperative><second word> (?:[\w-]+ ){0,6}erst\b(?! (?:mal|einmal)\b)
    <start><no statement>[^,;:]{0,80}\berst\b[^,;:]{0,80}, (?:wenn|nachdem|sobald)\b
zuerst vorher:
    \b(?:fragst|rufst|sagst|schreibst|prüfst|zeigst) du (?:mir |mich |uns |es )*<word>\b
    <imperative><second word> (?:[\w-]+ ){0,6}<word>\b
    <start><no statement>[^,;:]{0,80}\b<word>\b[^,;:]{0,80} <infinitive>
alle jede jedes jeden: <start><no statement><word> [\w-]+ [^,;:]{0,60} <infinitive>
alle:
    <start><no statement>(?:bitte )?alle [\w-]+ (?:[\w-]+ )?(?:in|im|auf|mit|per|nach|vor|an|zu
        |als)\b(?!.*\?)
    \balle [\w-]+ (?:[\w-]+ ){0,4}(?:sollen|sollten|müssen|dürfen|gehen|kommen|bekommen)\b
sämtliche: <start><no statement>(?:bitte )?sämtliche [\w-]+\b
jede jeder jedes: \b<word> [\w-]+ (?:[\w-]+ ){0,4}(?:muss|soll|sollte|braucht|bekommt|endet|beginnt
        |geht|trägt|wird|darf|kommt)\b
jede:
    \b(?:endet|beginnt|bekommt|braucht|trägt|kommt|steht|geht|muss|soll|wird) (?:[\w-]+ ){0,2}jede\b
    <imperative> (?:[\w-]+ ){0,6}(?:an|in|bei|für|vor|nach|auf|unter) jede\b
jeder jedem: <imperative> (?:[\w-]+ ){0,6}(?:an|in|bei|vor|nach|auf|unter|mit) <word>\b
jedes: <imperative><second word> (?:[\w-]+ ){0,3}jedes [\w-]+ (?:auf|in|mit|nach|als)\b
jedem:
    \b(?:steht|kommt|gehört|muss|soll) (?:[\w-]+ ){0,3}(?:an|in|bei|vor|nach|auf|unter|mit) jedem\b
    <start><no statement>[^,;:]{0,80}\b(?:in|an|bei|mit|nach|vor
        |unter) jedem\b[^,;:]{0,80} <infinitive>
dass: \b(?:möchte|möchten|will|wollen|erwarte|erwarten|wünsche|verlange|bitte dich|bitte darum
        |wichtig|legen? wert darauf|bestehe darauf|besteht darauf)\b[^,;]{0,20},? dass (?:du|ihr
        |alle|jede\w*|kein\w*|nichts|niemand|die|der|das|unsere?|mein\w*|deine?)\b
sollen: \b(?:alle|die|unsere|deine|sämtliche|meine|keine
        |antworten) (?:[\w-]+ ){0,4}sollen (?!wir\b)(?:[\w-]+ ){0,8}[\w]+
soll: \b(?:der|die|das|unser\w*|dein\w*|mein\w*|jede\w*|kein\w*|alles
        |nichts) (?:[\w-]+ ){0,4}soll (?!ich\b|das heißen)(?:[\w-]+ ){0,8}(?:nicht|nie|nur|immer
        |stets|kein\w*|in|im|mit|ohne|unter|auf|vor|nach)\b
muss: ^(?!.*\bbis\b)(?:bitte )?(?:alles|jede\w*|unser\w*|dein\w*) (?:[\w-]+ ){0,4}muss\b
müssen: ^(?!.*\bbis\b)(?:alle|unsere|deine|sämtliche) (?:[\w-]+ ){0,4}müssen\b
wann: \bwann immer\b[^,;]{3,80}, \w
was:
    \bwas (?:du|ihr|wir|man) auch\b[^,;]{2,60}, \w
    \b(?:was immer|was auch immer|egal was) (?:du|ihr|wir|man)\b[^,;]{3,60}, <no statement>\w
    , was immer (?:du|ihr|wir|man)\b
sobald: \bsobald (?:du|ihr|wir|ein\w*|jemand|es|die|der
        |das)\b[^,;]{3,80}, (?!ich\b)[a-zäöüß]+ (?:bitte|mir|mich|uns|immer|sofort|das|die|den)\b
wenn falls: \b<word> [^,;]{3,80}, (?:dann )?(?:bitte )?[a-zäöüß]+ (?:ihn|ihm|mir|mich|uns|bitte|den
        |dem|einen|alles|sofort|das) (?!ich\b|er\b|wir\b|man\b)
wenn:
    \bwenn [^,;]{3,80}, [a-zäöüß]+ (?:[\w-]+ )?(?:ab|an|zu|auf|aus|weiter|zurück|nach|ein)[.!]*$
    \bwenn (?:du|ihr|wir|ein\w*|jemand|es|die|der|das|ich)\b[^,;]{3,80}, (?:dann )?(?:bitte|immer
        |nie|nur)\b
    \bwenn (?:du|ihr|ein\w*|jemand|die|der|das|es)\b[^,;]{3,80}, (?:dann )?(?:nimm|verwende|benutze?
        |nutze?|schreib\w*|frage?|gib|sag|antworte|schick\w*|melde?|rufe?|setz\w*|stell\w*|lass
        |mach\w*|warte|prüfe?|nenne?|runde|zähle?)\b
bevor: \b(?:nichts|kein\w*|niemand|nie|nicht)\b[^;:]{0,80}\bbevor\b
bitte:
    \bbitte (?:[\w-]+ ){0,6}(?:nie|niemals|nur|immer|stets|kein\w*|ausschließlich|jedes mal|jede\w*
        |alle|grundsätzlich|durchgehend|weglassen|auslassen|vermeiden)\b(?! (?:kurz|mal|noch)\b)
    \b(?:nie|niemals|nur|immer|stets|kein\w*|ausschließlich|grundsätzlich)\b[^;.]{0,80}\bbitte[.!]*$
weglassen: \bweglassen<end>
weg: <imperative> [^;.]{1,60}\bweg<end>
raus: <start>(?:lass|halte?) [^;.]{1,60}\b(?:da)?raus\b
heraus: <start>(?:lass|halte?) [^;.]{1,60}\bheraus\b
gehört:
    \bgehört (?:nie|nicht|nur|immer|niemals|unter|auf|in) (?:jede\w*|alle|keine\w*)\b
    \b(?:niemals|nie|nicht) in\b[^,;]{1,60}\bgehört\b
besteht: \b(?:darauf besteht|besteht darauf)\b
bestehe: \b(?:darauf bestehe ich|ich bestehe darauf)\b
intern: \b(?:bleibt|bleiben|bleib\w*) (?:[\w-]+ ){0,3}(?:intern|unter uns|geheim)\b
durchgehend: \bdurchgehend\b[^,;]{0,60}(?:en|ern|eln)\b
spätestens: \b(?:immer|jede\w*|alle) (?:[\w-]+ ){0,6}spätestens\b
pflicht tabu: \b<word>\b(?=[.,;!]|$)
vorgeschrieben: \b(?:ist|sind) (?:[\w-]+ ){0,4}vorgeschrieben\b
erwünscht: \b(?:nicht|un)[ ]?erwünscht\b
unerwünscht: \b(?:ist|sind) (?:[\w-]+ ){0,3}unerwünscht\b
sieh: <start>sieh (?:bitte )?zu,? dass\b
pass: <start>pass (?:bitte )?(?:immer )?auf,? dass\b
dafür: <start>sorge? (?:bitte )?(?:immer )?dafür\b
frage: \bkomm(?:t|en) (?:[\w-]+ ){0,3}nicht in ?frage\b
infrage: \bkomm(?:t|en) (?:[\w-]+ ){0,3}nicht infrage\b
kommt: \bkommt (?:mir|uns) (?:[\w-]+ )?(?:nicht|kein\w*|nie|nur)\b
geht: \bgeht (?:bei uns |hier )?(?:[\w-]+ ){0,2}nur (?:in|im|mit|per|auf|über|nach|an)\b
gehen: \bgehen (?:[\w-]+ ){0,4}(?:nur|immer|nie|niemals) (?:in|im|mit|per|auf|über|nach|an|erst
        |zuerst)\b
wird werden: \b<word> (?:[\w-]+ ){0,4}nicht ge\w+(?:t|en)(?=[.,;!]|$)
wird:
    \bwird (?:[\w-]+ ){0,4}nicht mehr (?:[\w-]+ ){0,3}\w+(?:t|en)(?=[.,;!]|$)
    \bwird (?:[\w-]+ ){0,6}(?:nie|niemals|immer|grundsätzlich|ausschließlich|nur (?:in|im|mit|per
        |auf|nach|von)|nicht (?:vor|ohne|nach|an|in))\b
werden:
    ^(?!(?:die|der|das|wir|sie|ich|es|ihr|was|wie|wann|wo)\b)[a-zäöüß]+(?:en|er|e
        |s) werden (?:[\w-]+ ){0,7}\w*ge\w+(?:t|en)(?=[.,;!]|$)
    \bwerden (?:[\w-]+ ){0,6}(?:nie|niemals|immer|grundsätzlich|ausschließlich|nur (?:in|im|mit|per
        |auf|nach|von)|nicht (?:vor|ohne|nach|an|in))\b(?!.*\b(?:wir|ich) )
unter: \b(?:bleibt|bleib\w*|bitte) (?:[\w-]+ ){0,2}unter uns\b
verbietet: \b(?:vertrag|gesetz|chef|chefin|ordnung|arzt|ärztin) (?:[\w-]+ )?verbietet\b
höchstens maximal: ^(?:bitte )?<word> [\w-]+ [\w-]+
erspar: <start>erspar mir\b
stopp: <start>stopp\b
streng: \bstreng (?:geheim|vertraulich|verboten|nach|getrennt)\b
okay ok: \bohne mein <word>\b
einwilligung genehmigung erlaubnis: \bohne (?:[\w-]+ ){0,3}<word>\b
rückfrage: \b(?:ohne|nur nach) (?:[\w-]+ ){0,3}rückfrage\b
mehr: \bwir (?!sind|haben|wissen|können|waren|hatten)\w+ (?:[\w-]+ ){0,4}(?:nicht mehr|nie mehr
        |kein\w* \w+ mehr)\b
jeden: <imperative><second word> (?:[\w-]+ ){0,3}jeden [\w-]+ (?:auf|in|mit|nach|als|erst)\b
keine: ^(?:und |bitte |also )*keine (?!ahnung|sorge|lust|zeit|angst|frage|idee|ursache|panik|chance
        |eile|hektik|gute|schlechte|große)[\w-]+(?: [\w-]+)?[.!]*$
niemand: \b(?:erfährt|bekommt|sieht|fasst|öffnet|betritt|unterschreibt
        |hört) (?:[\w-]+ ){0,3}niemand\b
bleibt bleiben: \b<word> (?:[\w-]+ ){1,4}(?:zu|geschlossen|draußen|außen vor|aus|weg|leer|privat
        |verschlossen|offen|intern|geheim)\b
bloß: \bbloß (?:nichts|nicht|kein\w*|nie)\b
braucht: \b(?:jede\w*|alle) [\w-]+ braucht\b
gilt: \bgilt:
zwingend verbiete strikt
"""

PREFERENCES = r"""
bitte: ^(?!.*\b(?:kannst|könntest|würdest|hilf|ist|sind|war|hat|muss)\b)(?!(?:gib|schreib|zeig|mach
        |erklär|sag|nenn|such|find|erstell|fass|übersetz|korrigier|prüf|lies|schau|erzähl|liste
        |stell|komm|warte|mehr|noch|einmal|das|die|den)\w*)(?:[\w-]+ ){1,5}bitte(?: [\w-]+){1,5}
        [.!]*$
bevorzugt: \b(?:am|ich|wird|werden|mein\w*) (?:[\w-]+ ){0,2}bevorzugt\b
lieber:
    \b(?:mag|hätte|möchte|würde|nehme|arbeite|esse|trinke|fliege|fahre|wäre|ist|sind|habe|haben
        |wollen|schreibe|lese|nutze|benutze|verwende|reise
        |telefoniere) (?:[\w-]+ ){0,5}lieber\b(?! (?:doch|nicht jetzt))
    \bmir (?:ist|wäre|sind|wären) (?:[\w-]+ ){0,3}lieber\b
liebsten: \bam liebsten\b
nenn:
    <start>nenne? mich\b
    \bnenn mich\b
nenne: \bnenne mich\b
nennen:
    \b(?:kannst|darfst|könnt) mich (?:[\w-]+ ){0,2}[\w-]+ nennen\b
    \bnennen mich\b
duze: \bduze mich\b
duz: \bduz mich\b
sieze: \bsieze mich\b
per: \bper (?:du|sie)\b
auf:
    \b(?:bitte|antworte?|schreib\w*|rede?|nur|immer|alles|weiter
        |lieber) (?:[\w-]+ ){0,4}auf (?:<language names>)\b
    \bauf (?:<language names>),? bitte\b
mag:
    \bich mag (?:[\w-]+ )?(?:keine?n?|es (?:nicht|lieber|wenn)|kurze|lange|lieber|nur)\b
    \bich mag (?:[\w-]+ ){0,4}(?:nicht|lieber|am liebsten)\b
hasse: \bich hasse\b
allergie: \bich habe eine? (?:[\w-]+ ){0,2}[\w-]*allergie\b
vertrage: \bich vertrage (?:[\w-]+ ){0,3}(?:keine?n?|nicht)\b
vegetarisch: \b(?:bin|esse|leben?|ernähr\w+|lebe) (?:[\w-]+ ){0,3}vegetarisch\b
vegan: \b(?:bin|esse|leben?|lebe|ernähr\w+|sind) (?:[\w-]+ ){0,3}vegan\b
veganer: \bveganerin?\b
esse trinke: \bich <word> (?:[\w-]+ ){0,3}(?:keine?n?|nur|nie|nicht)\b
esse: \besse ich (?:[\w-]+ ){0,3}(?:keine?n?|nur|nie|nicht)\b
möchte: \bich möchte (?:bitte )?(?:nur|keine?n?|immer|lieber|dass|kurze|ausführliche)\b
will: \bich will (?:nur|keine?n?|immer|lieber|dass|kurze)\b
nutze: \bich nutze (?:nur|immer|ausschließlich|grundsätzlich)\b
benutze: \bich benutze (?:nur|immer|ausschließlich|nie)\b
lieblings: \bmein\w* lieblings
antworten:
    \b(?:kurze|knappe|ausführliche|lange) antworten\b
    \bantworten (?:bitte )(?:kurz|knapp|ausführlich)\b
antworte: <start>antworte (?:mir )?(?:bitte )?(?:immer |nur )?(?:kurz|knapp|auf|in|mit|ohne
        |ausführlich)\b
fasse: <start>fasse? dich kurz\b
fass: <start>fass dich kurz\b
ohne:
    \b(?:bitte|antworte|immer|gern|lieber) ohne [\w-]+
    ^ohne [\w-]+,? bitte\b
fliege: \bich fliege (?:nur|nie|nicht|grundsätzlich|immer)\b
passt: \bpasst (?:mir|uns) (?:[\w-]+ ){0,3}(?:am besten|besser)\b
vorliebe: \bvorliebe für\b
wert: \blege? (?:[\w-]+ ){0,3}wert auf\b
ausstehen: \bnicht ausstehen\b
bevorzuge bevorzugen duzen siezen allergisch vegetarier veganerin
"""

DECISIONS = r"""
entschieden:
    \b(?!.*\b(?:nicht|noch) entschieden)(?:habe|haben|hat|ist|wurde|sind|bin|entschieden:|endgültig
        |jetzt|uns|mich)\b.{0,100}\bentschieden\b
    ^entschieden\b
entscheidung:
    \b(?:die|unsere|meine|endgültige|neue) (?:[\w-]+ )?entscheidung\b
    ^entscheidung\b
einigen: \b(?:lass uns|wir) .{0,40}\beinigen\b
doch:
    \bdoch (?:lieber|den|die|das|wieder|auf|bei|mit|am|um|erst|nur|eher)\b(?! (?:so|wahr)\b)
    \bnehmen wir doch\b
    \bdann doch\b
anders: \banders (?:überlegt|entschieden)\b
meinung:
    \bmeinung geändert\b
    \bmeine meinung .{0,20}geändert\b
nehmen: \b(?:wir nehmen|nehmen wir|lass uns .{0,60}nehmen|dann nehmen)\b
nehme:
    \bich nehme (?:den|die|das|lieber|doch|option|variante)\b
    \bnehme ich\b
machen:
    \b(?:lass uns|lasst uns) .{0,80}\bmachen\b
    \bmachen wir (?:es|das|so|doch|lieber|also)\b
    \bwir machen (?:es|das) (?:so|jetzt|doch|lieber)\b
lass: <start>lass uns (?!mal (?:sehen|schauen)|überlegen|reden|kurz)\w
lasst: <start>lasst uns \w
bleiben: \b(?:wir bleiben|bleiben wir) .{0,40}\b(?:bei|beim|dabei)\b
bleibt: \bes bleibt (?:bei|beim|dabei)\b
wechseln verwenden nutzen: \b(?:wir <word>|<word> wir)\b
setzen: \b(?:wir setzen|setzen wir) .{0,20}\bauf\b
steht:
    \bsteht (?:jetzt )?fest\b
    \bes steht fest\b
verschieben: \b(?:wir|lass uns|bitte) .{0,60}\bverschieben\b
verlegt: \b(?:wurde|ist|wird|haben) .{0,60}\bverlegt\b
gestrichen: \b(?:ist|wird|wurde|haben) .{0,60}\bgestrichen\b
sondern: \bnicht .{1,80},? sondern\b
korrektur: ^(?:kleine |kurze )?korrektur\b
vergiss: <start>vergiss (?:das|was|den|die)\b
genehmigt abgelehnt: \b(?:ist|wurde|hat|sind|haben) .{0,60}\b<word>\b
fällt:
    \bwahl fällt auf\b
    \bfällt (?:weg|aus|flach)\b
gewählt: \b(?:habe|haben) .{0,60}\bgewählt\b
beschlossen beschluss vereinbart geeinigt stattdessen umentschieden planänderung festgelegt
verschoben abgesagt storniert
"""

COMMITMENTS = r"""
erinnere:
    <start>erinnere? (?:mich|uns)\b
    \berinnere mich (?:bitte )?(?:daran|am|an)
erinner: <start>erinner (?:mich|uns)\b
erinnern: \b(?:bitte|kannst du mich|könntest du mich|musst mich|sollst mich) .{0,80}erinnern\b
vergiss: <start>vergiss (?:bitte )?nicht\b
vergessen:
    \bnicht (?:zu )?vergessen\b
    \bdarf ich nicht vergessen\b
verspreche:
    \bich verspreche\b
    \bverspreche ich\b
schulde: \bschulde (?:ich )?\w
schicke sende liefere: \b(?:ich <word>|<word> ich)\b.{0,100}?\b<when>
mache: \b(?:ich mache|mache ich)\b.{0,80}\b(?:bis|am|morgen|heute abend|nächste)\b
melde bezahle: \b(?:ich <word>|<word> ich)\b.{0,80}?\b<when>
überweise: \b(?:ich überweise|überweise ich)\b
kümmere: \b(?:ich kümmere|kümmere ich) mich\b
werde: \b(?:ich werde|werde ich)\b.{0,120}?\b<when>.{0,120}(?:en|ern|eln)\b
muss:
    \b(?:ich muss|muss ich|wir müssen)\b.{0,100}\b(?:bis|spätestens|vor dem|am)\b
    \bmuss bis\b
müssen: \b(?:wir müssen|müssen wir)\b.{0,100}\b(?:bis|spätestens|vor dem)\b
abgabe: \babgabe(?:termin)?\b.{0,40}\b(?:ist|am|bis)\b
spätestens: \bspätestens (?:bis|am|um|morgen|montag|dienstag|mittwoch|donnerstag|freitag|ende)\b
versprochen zugesagt frist deadline fällig
"""

GERMAN = Language(
    code="de",
    starters=frozenset(
        """
        bitte und aber also auch dann oder ok okay übrigens ach achso so denn weil jetzt
        nochmal erstens zweitens wichtig außerdem wirklich hey hallo generell allgemein
        nein danke klar sonst ansonsten nebenbei achtung ps grundsätzlich zudem
        dabei deshalb daher darum apropos künftig
        """.split()  # noqa: SIM905
    ),
    cues={
        "rule": parse_cues(RULES + ORDERS, PARTS),
        "preference": parse_cues(PREFERENCES, PARTS),
        "decision": parse_cues(DECISIONS, PARTS),
        "commitment": parse_cues(COMMITMENTS, PARTS),
    },
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
    abbreviations=frozenset(
        """
        z z.b d.h u.a bzw ca usw etc vgl nr str dr prof hr fr inkl exkl ggf evtl bspw zzgl abzgl
        tel max min mind o.ä s.o s.u i.d.r u.u z.t o.g sog geb gest abs art ziff kap bd hrsg aufl
        st mio mrd jh chr v.a i.a m.e u.ä allg bes betr dipl ing mwst std sek jan feb mrz apr jun
        jul aug sept okt nov dez mo di mi do sa so a.d v.chr n.chr e.v k.o
        """.split()  # noqa: SIM905
    ),
    weekdays=(
        r"(?:nächste[nrms]? |diese[nrms]? |am |bis |jeden )?(?:montag|dienstag|mittwoch|donnerstag"
        r"|freitag|samstag|sonnabend|sonntag)s?|übermorgen|nächste[nrms]? (?:woche|monat|jahr)"
        r"|ende (?:der woche|des monats|des jahres)"
    ),
    units=(
        r"prozent|jahren?|jahre?|monaten?|monate?|wochen?|tagen?|tage?|stunden?|std|minuten?"
        r"|sekunden?|meilen?|meter|kilometer|quadratmeter|liter|gramm|kilo|kilogramm|tonnen?"
        r"|personen|leute|gäste|plätze|nutzer|mitarbeiter\w*|anfragen|zeichen|wörter|zeilen|spalten"
        r"|seiten|stück|nächte|versuche|kerne|knoten|grad|mal|zimmer|räume|esslöffel|teelöffel|el"
        r"|tl|tassen|portionen|etagen|stockwerke|euro"
    ),
    relations=frozenset(
        """
        schwester bruder mutter vater mama papa frau mann sohn tochter chefin chef
        kollegin kollege kollegen freundin freund nachbarin nachbar kundin kunde kunden
        vermieterin vermieter ärztin arzt zahnärztin zahnarzt anwältin anwalt
        steuerberaterin steuerberater hund katze kater pferd lehrerin lehrer trainerin
        trainer assistentin assistent cousine cousin tante onkel neffe neffen nichte oma
        opa großmutter großvater projekt firma team verein schule mitbewohnerin
        mitbewohner verlobte verlobter baby ansprechpartnerin ansprechpartner lieferant
        lieferanten dienstleister designerin designer entwicklerin entwickler therapeutin
        therapeut professorin professor betreuerin betreuer schwägerin schwager
        schwiegermutter schwiegervater enkelin enkel babysitterin projektleiterin
        projektleiter praktikantin praktikant hausmeister hotel schiff boot band server
        hündin papagei klempner elektriker architektin architekt gärtner gärtnerin
        kardiologin kardiologe hebamme krankenschwester patenkind patentante patenonkel
        hausärztin hausarzt kinderärztin kinderarzt produkt
        """.split()  # noqa: SIM905
    ),
    events=frozenset(
        """
        deadline termin frist abgabe treffen besprechung flug prüfung lieferung hochzeit start
        fällig meeting abgabetermin liefertermin demo release geburtstag umzug operation party
        feier vorstellungsgespräch arzttermin zahnarzttermin workshop konferenz reise abreise
        anreise übergabe abnahme präsentation livegang veröffentlichung sitzung spätestens
        abgabefrist kündigungsfrist zug
        """.split()  # noqa: SIM905
    ),
    possessives=(
        r"mein|meine|meinen|meinem|meiner|meines|unser|unsere|unseren|unserem|unserer|sein|seine"
        r"|seinen|seinem|seiner|ihr|ihre|ihren|ihrem|ihrer|der|die|das|den|dem"
    ),
    glue_words=frozenset(
        """
        der die das den dem des ein eine einen einem einer eines für von vom im in am an auf zu zum
        zur bei beim mit aus und mein meine meinen meinem meiner unser unsere unseren unserem
        unserer dein deine ihr ihre sein seine dieser diese dieses diesen diesem pro
        """.split()  # noqa: SIM905
    ),
    break_words=frozenset(
        """
        ich du er sie es wir ihr man mir mich dir dich uns euch ihm ihn ihnen wer was wann wie wo
        warum wenn weil dass ob als ist sind war waren bin bist sei wäre wären wird werden wurde
        wurden worden hat haben habe hatte hatten kann können muss müssen soll sollen sollte darf
        dürfen will wollen möchte nicht kein keine keinen nie niemals immer nur auch sehr jetzt nun
        dann heute gestern aktuell aktuelle aktueller aktuellen neu neue neuer neues neuen neuem
        endgültig tatsächlich genau ungefähr etwa rund fast knapp über unter mehr weniger bis seit
        vor nach während schon noch wieder mal doch lieber stattdessen bitte danke ja nein ok okay
        also übrigens aber oder sondern statt beträgt betragen lautet lauten liegt liegen läuft
        laufen kostet kosten heißt heißen steht stehen kommt kommen geht gehen findet statt macht
        machen bleibt bleiben gilt gelten ändert geändert geändert verschoben verlegt setzen setze
        setz gesetzt stell stelle stellen nimm nehmen nehme nutzen nutze verwende verwenden benutze
        merk merke gebucht bestellt bezahlt gekauft beginnt startet endet insgesamt davon dazu
        hier dort da so sich wohnt wohne lebt geboren wiegt misst dauert hallo hi kurz kurze
        unsererseits laut gemäß per maximal mindestens höchstens umgestellt erhöht gesenkt
        """.split()  # noqa: SIM905
    ),
    marker_words=frozenset(
        """
        nie niemals immer nur bitte ab jetzt sofort nicht kein keine keinen auf keinen fall unter
        keinen umständen künftig zukünftig darf darfst dürfen soll sollst sollen muss musst müssen
        du wir ich der die das den dem ein eine einen und aber also auch dann grundsätzlich stets
        wieder doch lieber stattdessen ist sind wird werden merk dir regel wichtig vergiss achte
        darauf dass ausnahmslos ausschließlich haben habe uns mich entschieden beschlossen von an
        heute nun in im zu zum zur für mit bei mir es sie ihr mein meine unser unsere
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
    topics={
        "language of answers": (
            rf"\b(?:antwort\w*|schreib\w*|sprich|rede?|sprechen|bitte|weiter|alles)\b.{{0,40}}"
            rf"\bauf (?:{PARTS['language names']})\b"
        ),
        "form of address": r"\b(?:nenne? mich|duzen?|siezen?|per (?:du|sie))\b",
        "length of answers": r"\bantworte?n?\b.{0,40}\b(?:kurz|knapp|ausführlich|lang)\w*\b",
    },
)
