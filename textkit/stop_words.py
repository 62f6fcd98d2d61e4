"""List the English and German words that do not say what a text is about."""

from functools import lru_cache

from textkit.stems import fold_letters

# Without diacritics and in lower case, as `fold_case` writes them.
_ENGLISH = """
    a about above actually after again against all almost already also although always am among
    an and another any anybody anyone anything are aren around as ask asked at back be became
    because been before being below between both but by call called came can cannot come could
    couldn d did didn do does doesn doing don done dont down during each either else even ever
    every few for from further get gets getting give given go goes going gone got had hadn has
    hasn have haven having he her here hers herself him himself his how however i if in into is
    isn it its itself just kind know last let lets like ll m made make many may maybe me mean
    mention mentioned might mine more most much must mustn my myself need neither never no
    nobody none nor not nothing now nowhere of off often oh ok okay on once one only onto or
    other our ours ourselves out over own per please quite rather re really recall remember
    remind s said same saw say saying says see seem shall she should shouldn since so some
    somebody someone something still such sure t take talk talked talking tell telling than
    thank thanks that the their theirs them themselves then there these they thing things think
    this those though through to together told too toward under until up upon us use used user
    ve very via want wanted was wasn way we well were weren what whatever when where whether
    which while who whom whose why will with within without won would wouldn yes yet you your
    yours yourself yourselves
"""
_GERMAN = """
    aber ach alle allem allen aller alles als also am an ander andere anderen auch auf aus bei
    beim bin bis bist bitte da dabei dafur damit danach dann daran darauf darf darin darum das
    dass dazu dein deine deinem deinen deiner dem den denn der deren des dessen dich die dies
    diese diesem diesen dieser dieses dir doch dort du durch durfen eben ein eine einem einen
    einer eines einmal er erwahnt es etwa etwas euch euer eure fur gab gegen gerade gesagt
    gesprochen gewesen gibt ging hab habe haben hast hat hatte hatten hattest hier hin hinter
    ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im immer in ins ist ja je jede jedem jeden
    jeder jedes jemand jetzt kann kannst kein keine keinem keinen keiner keinerlei keines
    konnen konnte konnten letzte letzten letzter letztes mag mal man mehr mein meine meinem
    meinen meiner mich mir mit mochte muss mussen nach nein nicht nichts nie niemals niemand
    niemandem niemanden nirgends noch nun nur ob oder ohne pro sag sage sagen sagte sagtest
    schon sehr sei sein seine seinem seinen seiner seit sich sie sind so soll sollen sollte
    sollten sondern sonst uber um und uns unser unsere unserem unseren unserer unter viel vom
    von vor wann war waren warst warum was weder weil weiter welche welchem welchen welcher
    welches wem wen weniger wenn wer werde werden wessen wie wieder wieso will wir wird wirst
    wo wohin wollen wollte worden wurde wurden zu zum zur zwar zwischen
"""
STOP_WORDS = frozenset((_ENGLISH + _GERMAN).split())


@lru_cache(maxsize=50_000)
def is_stop_word(word: str) -> bool:
    """Return whether a word, or each part of one as "don't", is one of these words."""
    parts = fold_letters(word).replace("’", "'").split("'")
    return all(part in STOP_WORDS or not part for part in parts)


# Words that speak of an answer's form or of the talk itself: "Shorter, please", "That helps!".
_ENGLISH_FEEDBACK = """
    answer awesome better bit bye clear clearer continue cool correct detail detailed details
    different easier enough evening example examples exactly explain fine first formal friendlier
    funny glad good great haha happy hello help helped helpful helping helps hey hi idea ideas
    interesting longer list lol long lot lovely morning next nice night paragraph perfect
    point repeat rephrase reply respond response rewrite right sense sentence sentences short
    shorten shorter simple simpler sorry sound sounds step steps stop style sum summarise
    summarize summary super table tired today tomorrow tone translate try understand
    understood version wait welcome wonderful word words work works wow write wrong
"""
_GERMAN_FEEDBACK = """
    abend antwort antworte beispiel beispiele besser danke deutlicher einfach einfacher erklar
    erklare falsch fass fertig formeller freundlicher genau gerne grossartig gut gute guten gutes
    hallo helfen hilf hilfe hilft idee ideen interessant klar klasse kurz kurzer lang langer
    lustig machen mach morgen mude nachste nachsten nachstes nett prima richtig satz satze
    schade schone schones schreib schreibe schritt stimmt stil stopp super tabelle toll ton
    tschuss ubersetz ubersetze verstanden verstehe version wiederhol wiederhole witzig worte
    worten wunderbar zusammen zusammenfassung
"""
FEEDBACK_WORDS = frozenset((_ENGLISH_FEEDBACK + _GERMAN_FEEDBACK).split())
