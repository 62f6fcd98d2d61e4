"""Sentences with rules and values in incidental wording, and ordinary ones, from a seed.

Braces hold names of VOCABULARY. The sentences are ours; no recognizer was written after them.
"""

RULES_EN = """
and one thing before we start, never {act} {object} without telling me first
Please don't ever {act} {object}, we got burned by that last year.
From now on, {act} {object} only after {person} has looked at it.
I know it sounds pedantic, but always {act} {object} before lunch.
Whatever happens, do not {act} {object}.
Under no circumstances should you {act} {object}.
You must never {act} {object}, even if {person} asks for it.
Oh, and going forward please {act} {object} in {place}.
We don't {act} {object} on {day}s, ever.
Nobody may {act} {object} except {person}.
Just so you know, we never {act} {object} during the {season}.
It is forbidden to {act} {object} from {place}; {person} was very clear.
{object_cap} must not leave {place}.
Keep {object} out of {place}, please.
Avoid mentioning {object} to {person}.
For the rest of this conversation answer in {language}.
Every time you {act} {object}, add a note for {person}.
No {thing} in the {place}, that's a hard rule.
Remember that {object} must always go through {person}.
Make sure you never {act} {object} twice.
Also, stop {acting} {object}.
If in doubt, ask me before you {act} {object}.
You're not allowed to {act} {object} while {person} is away.
{object_cap} should never be shared with {person}.
House rule: whoever wants to {act} {object} asks {person} first.
Only {act} {object} when {person} agrees.
please always put {object} behind {place}
By the way {object} may only be touched by {person}.
I want you to never {act} {object} again.
As of today, {object} stays in {place}, no exceptions.
Don't {act} {object} unless I say so.
At all times {object} has to stay in {place}.
Our policy is that {object} never leaves {place}.
It's important to me that you always {act} {object} in {language}.
Stick to {language} when you {act} {object}.
In future, {act} {object} in {place} instead of asking {person}.
Refrain from {acting} {object}, thanks.
Nothing that concerns {object} goes to {person}.
{object_cap} is off limits for {person}.
You may not {act} {object} without my approval.
I don't want you to {act} {object} at any point.
when you {act} {object}, always cc {person}
Treat {object} as confidential.
Each {thing} needs to be signed by {person} before it goes out.
Use only {language} in the {thing}.
Could you please never {act} {object}?
Do not under any circumstances {act} {object}.
Hands off {object}, that is {person}'s job.
""".strip().splitlines()

RULES_DE = """
und bevor wir anfangen: {object_de} bitte niemals ohne {person} {act_de}
Ab jetzt {object_de} nur noch in {place_de} {act_de}.
Du darfst {object_de} auf keinen Fall {act_de}.
Bitte {object_de} nie am {day_de} {act_de}, das gab schon einmal Ärger.
Übrigens, {object_de} darf nur {person} {act_de}.
Unter keinen Umständen {object_de} {act_de}!
Merk dir: {object_de} wird immer zuerst {person} gezeigt.
Wir wollen {object_de} grundsätzlich nicht in {place_de} haben.
Es ist verboten, {object_de} zu {act_de}.
Ich möchte, dass du {object_de} nie wieder {act_de_2}.
Achte darauf, dass {object_de} immer in {place_de} bleibt.
Künftig bitte {object_de} erst nach Rücksprache mit {person} {act_de}.
Ohne meine Freigabe darfst du {object_de} nicht {act_de}.
Nenn {person} gegenüber niemals {object_de}.
Antworte von nun an bitte ausschließlich auf {language_de}.
In Zukunft immer {object_de} {act_de}, bevor du {person} schreibst.
Schick {object_de} bitte nie an {person}.
Wichtig: {object_de} muss immer in {place_de} liegen.
Vermeide es, {object_de} zu {act_de}.
{object_de_cap} ist für {person} tabu.
Niemand außer {person} darf {object_de} {act_de}.
Frag mich immer, bevor du {object_de} {act_de_2}.
Egal was {person} sagt, {object_de} wird nicht angefasst und darf nicht raus.
Vergiss nicht, {object_de} darf nie in {place_de} landen.
Die Regel ist, dass {person} {object_de} zuerst sieht.
Bei uns gilt: {object_de} bleibt in {place_de}.
Keine {thing_de} in {place_de}, bitte.
Ich will nicht, dass du {object_de} {act_de_2}.
Lass die Finger von {object_de}.
Immer erst {person} fragen, dann {object_de} {act_de}.
""".strip().splitlines()

VALUES_EN = """
The {attribute} is {number} now.
so the {attribute} we measured yesterday was {quantity}, which surprised {person}
I paid {amount} for the {thing} in {place}.
My order number is {id} if you need it.
The {event} is on {date} at {time}.
You can reach {person} at {email}.
Everything lives under {path}, at least on my machine.
The docs are at {url} by the way.
We are still on version {version} of the library.
I was born on {date} and moved to {place} later.
the invoice {id} over {amount} is still open
Budget for the {thing} is {amount}, not a cent more.
{person} has the ticket {id} on the desk.
It takes about {quantity} to heat the {thing}.
The commit was {hash}, I think {person} wrote it.
Our {attribute} went up to {percent} in {month}.
Call the office under {phone} after lunch.
The flight {flight} leaves at {time}.
We use {host} for the {thing}.
The wifi password is {password}.
Set the {attribute} to {number}, please.
Not {number} but {number2} is the right {attribute}.
The patient takes {quantity} of the medication twice a day.
Can you book the table for {date} at {time}?
My {attribute} is {number} and has been since {month}.
The branch is called {branch}.
Deadline for the {thing} is {date}.
The set-up has {quantity} and costs {amount} a month.
Our account at the bank is {iban}.
I have {number} {thing}s in {place}.
{person} lives at {street} in {place}.
the environment variable is {env}
""".strip().splitlines()

VALUES_DE = """
Der {attribute_de} ist jetzt {number}.
Ich habe {amount_de} für {object_de} bezahlt.
Meine Bestellnummer lautet {id}.
Das Treffen ist am {date_de} um {time_de}.
{person} erreichst du unter {email}.
Die Dateien liegen in {path} auf meinem Rechner.
Die Anleitung steht unter {url}, falls du sie brauchst.
Wir sind noch auf Version {version}.
Die Rechnung {id} über {amount_de} ist noch offen.
Das Budget liegt bei {amount_de}, mehr geht nicht.
Die Wohnung hat {quantity_de} und kostet {amount_de} im Monat.
Der Zug fährt um {time_de} von Gleis {number}.
Die Abgabe ist am {date_de}.
Ruf das Büro unter {phone} an.
Nicht {number}, sondern {number2} ist der richtige {attribute_de}.
Der Patient nimmt {quantity_de} am Tag.
Die Miete steigt um {percent} ab {month_de}.
Der Schlüssel liegt in der {street}.
Unser Konto ist {iban}.
Wir nutzen {host} als Server.
Der Branch heißt {branch}.
""".strip().splitlines()

ORDINARY_EN = """
I've never been to {place}, what is it like?
Never mind, I found {object} myself.
What do you think about {object}?
I always wondered why {person} likes {place}.
That was a lovely evening with {person}.
Can you explain how {object} works?
My teacher always said that practice makes perfect.
It must have been difficult for {person}.
You must be joking!
I never liked {place} much.
Thanks, that was exactly what I needed.
{person} told me about {object} yesterday.
Is it always this slow?
I don't know what to do about {object}.
We had a nice time in {place}.
Do you always {act} {object} like that?
It never rains in {place}, or so they say.
I can't find {object} anywhere.
There must be a better way to {act} {object}.
The weather in {place} was not great.
Sure, sounds good.
He said "never {act} {object}" and then laughed.
Why must everything be so complicated?
How do I {act} {object}?
I think {person} was only joking.
She has always been fond of {place}.
Don't worry about {object}.
I never thought {person} would {act} {object}.
No idea, honestly.
No problem, take your time.
I could not {act} {object} yesterday because {person} was late.
Show me a picture of {object}.
Tell me more about {place}.
It is not easy to {act} {object} in {place}.
People always talk about {object}, and I wonder why.
I should have known that {person} would be late.
{person} never answers the phone, does he?
Write a short poem about {place}.
I only wanted to see {object} once.
As always, {person} had the last word.
That never works for me.
We don't know yet whether {person} is coming.
I must admit that I like {object}.
Let me know what you think.
The movie said you should never give up, how cheesy.
I forgot to {act} {object} last week.
Every time I see {person} I have to laugh.
It would be nice to {act} {object} together some day.
""".strip().splitlines()

ORDINARY_DE = """
Ich war noch nie in {place_de}, wie ist es dort?
Was hältst du von {object_de}?
Das hat {person} mir gestern erzählt.
Es muss schwierig für {person} gewesen sein.
Ich weiß nicht, was ich mit {object_de} machen soll.
Danke, das war genau richtig.
Wir hatten eine schöne Zeit in {place_de}.
Kannst du mir erklären, wie das funktioniert?
Das klappt bei mir nie.
Er hat immer gute Laune.
Keine Ahnung, ehrlich gesagt.
Meine Lehrerin sagte immer, dass Übung den Meister macht.
Ist das immer so langsam?
Ich habe {person} lange nicht gesehen.
Das Wetter in {place_de} war nicht besonders.
Kein Problem, lass dir Zeit.
Ich konnte gestern nicht kommen, weil {person} krank war.
Warum ist das nur so kompliziert?
Erzähl mir mehr über {place_de}.
Man kann ja nie wissen.
Ich hätte nie gedacht, dass {person} das schafft.
Das ist doch nicht schlimm.
Schreib mir ein kurzes Gedicht über {place_de}.
Wie immer hatte {person} das letzte Wort.
Ich wollte nur kurz hallo sagen.
Sie meinte „niemals {object_de} {act_de}“ und lachte.
Das darf doch nicht wahr sein!
Ich muss zugeben, dass mir das gefällt.
Es gibt nichts Neues von {person}.
Wir haben uns immer noch nicht entschieden, was wir essen.
""".strip().splitlines()

FILLERS = """
I had a long day and the train was late again.
Anyway, the team seems to be in good spirits.
Thanks for the help so far.
The first draft looked decent to me.
Hope you are well!
We looked at a few other options as well.
Das Wetter ist heute richtig schön.
Danke schon mal für die Hilfe.
Gestern war viel los bei uns.
Der erste Entwurf sah ganz gut aus.
""".strip().splitlines()


def _split(words: str) -> list[str]:
    return words.split()


VOCABULARY = {
    "act": _split("delete merge print publish forward rename open restart archive sign copy move"),
    "acting": _split("deleting merging printing publishing forwarding renaming copying"),
    "act_de": _split("löschen drucken weitergeben veröffentlichen umbenennen kopieren verschieben"),
    "act_de_2": _split("löschst druckst weitergibst veröffentlichst umbenennst kopierst"),
    "object": [
        "the customer list",
        "the old backups",
        "the signed contract",
        "the shared calendar",
        "my recipes",
        "the lab results",
        "the production database",
        "our price list",
        "the guest list",
        "the tax folder",
    ],
    "object_de": [
        "die Kundenliste",
        "das Archiv",
        "den Mietvertrag",
        "den Kalender",
        "die Laborwerte",
        "die Datenbank",
        "die Preisliste",
        "die Gästeliste",
        "den Steuerordner",
    ],
    "person": _split("Miriam Okafor Henrik Dana Petra Tomasz Yuki Bernd Leila Sven"),
    "name": _split("Ada Bruno Ciara Dmitri Elif Fenja Gustav Hanneke"),
    "place": _split("Lisbon Graz Oslo Kyoto Leeds Tallinn Bremen Porto"),
    "place_de": _split("Lissabon Graz Oslo Kyoto Leeds Bremen Tallinn"),
    "day": _split("Monday Tuesday Wednesday Thursday Friday"),
    "day_de": _split("Montag Dienstag Mittwoch Donnerstag Freitag"),
    "season": ["summer", "winter", "holidays", "audit"],
    "language": _split("English German French Spanish Italian"),
    "language_de": _split("Deutsch Englisch Französisch Spanisch"),
    "thing": _split("report tent printer sofa boiler camera ticket poster"),
    "thing_de": ["Schuhe", "Emojis", "Anrufe", "Fotos", "Tiere"],
    "attribute": [
        "staging port",
        "retry limit",
        "room temperature",
        "error rate",
        "page limit",
        "batch size",
        "conversion rate",
    ],
    "attribute_de": ["Port", "Grenzwert", "Zinssatz", "Stundensatz", "Blutdruck", "Rabatt"],
    "event": ["review", "wedding", "dentist appointment", "kickoff", "exam"],
    "branch": ["feature/login-form", "hotfix/tax-rounding", "release-4.2", "wip_parser"],
    "env": ["ORDERS_DB_URL", "SMTP_TIMEOUT", "FEATURE_DARK_MODE", "API_KEY_2"],
    "month": _split("January March June September November"),
    "month_de": _split("Januar März Juni September November"),
}
