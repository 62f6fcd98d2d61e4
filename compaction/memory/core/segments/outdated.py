"""Leave out what newer segments say is done: a segment is frozen, its composition is not."""

import re
from collections.abc import Sequence
from dataclasses import replace

from compaction.core.outcome import Segment
from compaction.memory.core.ledger.corrections import list_subject
from compaction.memory.core.segments.ranking import (
    SegmentSentence,
    join_sentences,
    split_segment,
)

SUBJECT_SHARE = 0.5  # of an open item's words that the report of its end has
MIN_SHARED = 2  # of them, unless one of the two has fewer

# "Must" and "has to" alone may be a rule, which the end of one task does not end.
_OPEN = re.compile(
    r"\b(?:next steps?|to[- ]?dos?|to be (?:done|sent|paid|written)|tasks?|pending|outstanding"
    r"|still (?:open|to|needs?|ha(?:s|ve) to|must)|remains? to|remaining|not yet|open (?:items?"
    r"|points?|questions?)|plans? to|nächste[nr]? schritte?|noch|offen\w*|prochaines? étapes?"
    r"|à faire|reste à|doit encore|próximos? pasos?|pendientes?|por hacer)\b"
)
_DONE = re.compile(
    r"\b(?:done|finished|complet(?:e|ed)|solved|resolved|fixed|sent|paid|booked|signed|shipped"
    r"|merged|delivered|written|renewed|repaired|deployed|settled|submitted|closed|installed|replaced"
    r"|released|published|handed in|cancel(?:l)?ed|called off|dropped|abandoned|no longer (?:needed"
    r"|necessary|to be)|erledigt|fertig|abgeschlossen|gelöst|abgesagt|storniert|bezahlt|gebucht"
    r"|verlängert|unterschrieben|repariert|überwiesen|eingereicht|verschickt"
    r"|terminée?s?|faite?s?|finie?s?|envoyée?s?|annulée?s?|hech[oa]s?|terminad[oa]s?"
    r"|resuelt[oa]s?|enviad[oa]s?|cancelad[oa]s?)\b"
)
_NOT = re.compile(r"\b(?:not|never|nicht|pas|no|nunca)\b(?! longer)|n't\b|\?$")


def leave_out_done(segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """Return the segments, the oldest first, without open items whose end a newer one reports.

    A segment of which nothing is left goes. All others keep their text as it is.
    """
    reports: list[frozenset[str]] = []
    kept_segments: list[Segment] = []
    for segment in reversed(segments):
        sentences = split_segment(segment.text)
        kept = [each for each in sentences if not (reports and _is_done(each, reports))]
        if len(kept) < len(sentences):
            segment = replace(segment, text=join_sentences(kept))
        if kept or not sentences:
            kept_segments.append(segment)
        reports += [_list_item(each) for each in sentences if _reports_end(each)]
    return tuple(reversed(kept_segments))


def _is_done(sentence: SegmentSentence, reports: Sequence[frozenset[str]]) -> bool:
    if not _OPEN.search(_read(sentence)) or _reports_end(sentence):
        return False
    item = _list_item(sentence)
    return any(
        len(item & report)
        >= max(len(item) * SUBJECT_SHARE, min(MIN_SHARED, len(item), len(report)))
        for report in reports
        if item and report
    )


def _reports_end(sentence: SegmentSentence) -> bool:
    text = sentence.text.lower()
    has_end = _DONE.search(text) or _DONE.search(sentence.heading.lower())
    return bool(has_end) and not _OPEN.search(text) and not _NOT.search(text)


def _read(sentence: SegmentSentence) -> str:
    return f"{sentence.heading} {sentence.text}".lower()


def _list_item(sentence: SegmentSentence) -> frozenset[str]:
    """Return what a sentence is about, without the words that say how far it is."""
    text = sentence.text
    for pattern in (_OPEN, _DONE):
        text = re.sub(pattern.pattern, " ", text, flags=re.IGNORECASE)
    return list_subject(text)
