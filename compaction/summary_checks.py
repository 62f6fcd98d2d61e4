"""What came back from a summary call: a summary, or one of the many things models say instead."""

import re
import zlib
from collections import Counter

from compaction.backends.base import Answer
from compaction.core.pipeline import SummaryFailed

LOOP_CHARS = 400  # shorter texts do not repeat themselves enough to tell
LOOP_RATIO = 0.12  # prose compresses to a third or more of its size; a loop to a few hundredths
LOOP_LINES = 4
REFUSAL_CHARS = 400

_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.IGNORECASE | re.DOTALL)
_END_OF_THOUGHT = re.compile(r"\A.*</(think|thinking|reasoning)>", re.IGNORECASE | re.DOTALL)
_FENCE = re.compile(r"</?\s*transcript\s*>", re.IGNORECASE)
_SPEAKER = re.compile(r"^\s*[\[*#]*\s*(user|assistant|human|ai)\b\s*[\]*]*\s*(:|\]|$)", re.IGNORECASE | re.MULTILINE)
_REFUSAL = re.compile(
    r"\A\W*(i['’]?m sorry|i am sorry|sorry,|i apologi[sz]e|i can(no|['’])t|i am (unable|not able)|i['’]m (unable|not able)|as an ai\b)",
    re.IGNORECASE,
)


def usable(answer: Answer) -> str:
    """The summary in an answer, without the model's thoughts. Raises SummaryFailed with what is wrong."""
    summary = _FENCE.sub("", without_thoughts(answer.text)).strip()
    complaint = _complaint(answer, summary)
    if complaint:
        raise SummaryFailed(complaint)
    return summary


def without_thoughts(words: str) -> str:
    """The text without reasoning blocks, closed or not, and without the end of one whose beginning the template swallowed."""
    return _END_OF_THOUGHT.sub("", _THOUGHT.sub("", words)).strip()


def _complaint(answer: Answer, summary: str) -> str | None:
    if answer.finish == "tool_calls":
        return "The model called a tool instead of writing a summary."
    if answer.finish == "refusal":
        return "The model refused to write a summary."
    if answer.finish == "length":
        return "The summary was cut off at its length limit."
    if not summary:
        return "The model only reasoned and wrote no summary." if answer.text.strip() else "The summary is empty."
    if len(summary) < REFUSAL_CHARS and _REFUSAL.match(summary):
        return "The model refused to write a summary."
    if len(_SPEAKER.findall(summary)) >= 2 or _SPEAKER.match(summary):
        return "The model continued the conversation instead of summarizing it."
    return "The model repeats itself." if loops(summary) else None


def loops(words: str) -> bool:
    """Whether a text says the same again and again."""
    lines = Counter(line for raw in words.splitlines() if len(line := raw.strip()) > 20)
    if max(lines.values(), default=0) >= LOOP_LINES:
        return True
    encoded = words.encode()
    return len(words) >= LOOP_CHARS and len(zlib.compress(encoded)) < LOOP_RATIO * len(encoded)
