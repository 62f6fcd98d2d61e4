"""Sentences that are no part of a summary: answers, orders to the reader, and a cut end."""

import re
from collections.abc import Sequence

from textkit.code_blocks import find_code_blocks
from textkit.sentences import Sentence

_OPENER = re.compile(
    r"\A[\s\"'*_]*(?:sure|certainly|of course|absolutely|great question|good question|no problem|"
    r"you['’]re welcome|glad to|happy to|thanks for|thank you for|hello|hi there|"
    r"gerne|natürlich|klar|selbstverständlich|gute frage|kein problem|vielen dank für|hallo|"
    r"bien sûr|claro|por supuesto|certo)\b\s*[!,.:–—-]",
    re.IGNORECASE,
)
_OWN_ACT = re.compile(
    r"\A[\s\"'*_]*(?:(?:ok(?:ay)?|alright|well|so|now|next|first|also|gut|nun|also|dann|jetzt|"
    r"als nächstes)[,.!]?\s+)?"
    r"(?:ich (?!habe|hatte|bin|war|wurde|konnte|wollte|sollte)\w+(?:e|nn|ll)\b|"
    r"i (?:take|do|go|make|call|send|write|start|begin|now|first|then)\b|"
    r"i['’]ll|i will|i am going to|i['’]m going to|i can (?:also )?(?:help|do|write|book|check|"
    r"provide|show|give|create|suggest)|i['’]d (?:be happy|recommend|suggest|start)|i would "
    r"(?:recommend|suggest|start)|i (?:recommend|suggest)|i['’]ve (?:gone|just|now|already)|let me|"
    r"let['’]s|here(?:['’]s| is| are) (?!(?:the|a|your|my) (?:\w+ )?(?:summary|overview|recap))|"
    r"would you like|do you want|shall i|should i|feel free|let me know|please (?:let|tell|provide|"
    r"share)|you (?:can|should|could|may want|might want)|what (?:would|do) you|"
    r"which .{0,60}do you|"
    r"is there anything else|"
    r"ich werde|ich kann (?:dir|ihnen|auch|gern)|ich (?:empfehle|schlage)|ich würde|lass mich|"
    r"lassen sie|hier (?:ist|sind) (?!(?:die|eine|deine|ihre|meine) (?:\w+ )?(?:zusammenfassung|"
    r"übersicht))|"
    r"möchtest du|möchten sie|soll ich|sag (?:mir )?(?:einfach )?bescheid|du (?:kannst|solltest)|"
    r"sie (?:können|sollten) (?:jetzt|nun|auch|einfach)|gibt es noch etwas|kann ich (?:dir|ihnen) "
    r"(?:noch|sonst))",
    re.IGNORECASE,
)
_TURN = re.compile(
    r"\A\W*(?:\[\s*(?:user|assistant|human|ai|nutzer|assistent)\s*\]|"
    r"(?:user|assistant|human|nutzer|benutzer|assistent)\s*:)",
    re.IGNORECASE,
)
_OVERRIDE = re.compile(
    r"\b(?:ignor\w*|disregard\w*|forget|override|vergiss|vergessen sie|ignoriere?n?|missachte\w*)\b"
    r".{0,40}\b(?:instruction\w*|prompt\w*|rules?|directions?|guidelines?|messages?|everything|"
    r"anweisung\w*|regeln?|vorgaben?|nachrichten|alles)\b|"
    r"\b(?:reveal|print|output|repeat|leak|show|gib|zeige|verrate)\b.{0,40}\b"
    r"(?:system ?prompt|system message|hidden instructions?|api keys?|passwords?|passwör\w+|"
    r"zugangsdaten)\b|"
    r"\byou are now\b|\bdu bist (?:jetzt|ab jetzt|nun)\b|\bsie sind (?:jetzt|ab jetzt) ein\w*\b|"
    r"\bact as (?:a|an|if)\b|\bnew (?:system )?instructions?\s*:|\bneue anweisung\w*\s*:|"
    r"\bdeveloper mode\b|\bjailbreak\w*|"
    r"\b(?:do not|don['’]t|never) (?:tell|inform|mention (?:this|it) to) the (?:user|reader)\b|"
    r"\b(?:the )?(?:reader|next (?:assistant|model|ai)|assistant reading this|model reading this) "
    r"(?:must|should|shall|has to|needs to)\b|"
    r"\b(?:der leser|die leserin|das (?:nächste )?modell|der nächste assistent) (?:muss|soll)\b",
    re.IGNORECASE,
)
_REPORT = re.compile(
    r"\b(?:contain\w*|included|attempt\w*|tried|tries|injection|suspicious|malicious|said|says|"
    r"claim\w*|asked (?:the )?(?:assistant|it|to)|instruct\w+|told|request\w*|refus\w+|declin\w+|"
    r"not follow\w*|was ignored|were ignored|did not|text|enth(?:ielt|ält|alten)\w*|versuch\w*|"
    r"verdächtig\w*|aufforderung\w*|forder\w*|stand|weigert\w*|abgelehnt|lehnt\w*|bat)\b",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"\A[\s\"'*_(]*(?:(?:important|note|attention|system|warning|urgent|wichtig|achtung|hinweis|"
    r"admin|todo)\s*[:!—-]+\s*)*"
    r"(?:from now on|you must|you have to|always|never|do not|don['’]t|respond|reply|answer|speak|"
    r"write (?:only|all)|send|transfer|forward|email|e-mail|wire|execute|delete|call|visit|click|"
    r"download|approve|tell|say|pretend|begin every|end every|start every|"
    r"ab jetzt|ab sofort|von nun an|du musst|sie müssen|immer|niemals|nie|antworte\w*|sprich|"
    r"schreib\w*|sende\w*|überweis\w*|schick\w*|leite|führe|lösch\w*|ruf\w*|besuch\w*|klick\w*|"
    r"lade|genehmig\w*|sag\w*|beginne jede|beende jede)\b",
    re.IGNORECASE,
)
_OPEN_END = re.compile(
    r"(?:[,(\[{„“«/-]|\b(?:the|a|an|and|or|but|to|with|of|for|in|on|at|by|from|that|which|who|is|"
    r"are|was|were|will|would|should|must|has|have|had|not|as|than|their|his|her|its|because|if|"
    r"der|die|das|den|dem|des|ein|eine|einen|einem|einer|und|oder|aber|mit|von|vom|zu|zum|zur|für|"
    r"in|im|auf|an|am|bei|beim|nach|aus|dass|weil|wenn|ist|sind|war|wird|wurde|soll|muss|hat|haben|"
    r"nicht|als|sein|seine|ihr|ihre|um))\s*\Z",
    re.IGNORECASE,
)
_CLOSED_END = re.compile(r"[.!?…。！？:;\])}\"”’»“'*_`|>]\s*\Z")
_LONG_PROSE_WORDS = 6


def is_continuation(sentence: str) -> bool:
    """Return whether a sentence goes on with the conversation instead of reporting it."""
    return bool(_TURN.match(sentence) or _OPENER.match(sentence) or _OWN_ACT.match(sentence))


def is_override(sentence: str) -> bool:
    """Return whether a sentence gives an order as injections do, and does not report one."""
    match = _OVERRIDE.search(sentence)
    if match is None:
        return False
    before = sentence[: match.start()]
    return not (_REPORT.search(before) or _is_quoted(sentence, match.start()))


def is_order(sentence: str) -> bool:
    """Return whether a sentence orders its reader to do something."""
    return bool(_ORDER.match(sentence))


def is_cut_off(sentences: Sequence[Sentence]) -> bool:
    """Return whether a summary breaks off in its last sentence.

    Lists often have no full stops. So the end counts as cut where it cannot be one, or where all
    that comes before ends with a full stop.
    """
    if not sentences:
        return False
    last = sentences[-1]
    if last.is_code:
        return any(block.is_open for block in find_code_blocks(last.text))
    if last.is_heading or _CLOSED_END.search(last.text):
        return False
    if _OPEN_END.search(last.text) or last.text.count("(") > last.text.count(")"):
        return True
    others = [sentence for sentence in sentences[:-1] if not sentence.is_heading]
    if last.is_item:
        others = [sentence for sentence in others if sentence.is_item]
        return len(others) >= 2 and all(_CLOSED_END.search(item.text) for item in others)
    is_prose = bool(others) and not any(sentence.is_item for sentence in others[-1:])
    return is_prose and all(_CLOSED_END.search(sentence.text) for sentence in others)


def _is_quoted(sentence: str, position: int) -> bool:
    before = sentence[:position]
    return before.count('"') % 2 == 1 or before.count("“") > before.count("”")
