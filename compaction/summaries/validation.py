"""What came back from a summary call: a summary, or one of the many things models say instead."""

import re
import zlib
from collections import Counter
from collections.abc import Iterable

from compaction.backends.base import CallResult
from compaction.core.stages.base import SummaryFailed
from compaction.summaries.unwrapping import unwrap_summary

LOOP_CHARS = 400  # shorter texts do not repeat themselves enough to tell
LOOP_RATIO = 0.12  # prose compresses to a third or more of its size; a loop to a few hundredths
LOOP_LINES = 4
LOOP_WORDS = 24
LOOP_SHARE = 0.2
REFUSAL_CHARS = 400
ECHO_WORDS = (
    6  # in a row; fewer of an instruction, as its headings have, may stand in a summary by chance
)
ECHO_SHARE = 0.3
COPY_CHARS = 200
COPY_LINE_CHARS = 50  # shorter lines may be the same by chance
COPY_SHARE = 0.9
LETTERS_SHARE = 0.2
WORD_CHARS = 200  # longer ones are data, not words

_SPEAKER = re.compile(
    r"^\s*[\[*#]*\s*(user|assistant|human|ai)\b\s*[\]*]*\s*(:|\]|$)", re.IGNORECASE | re.MULTILINE
)
_REFUSAL = re.compile(
    r"\A\W*(i['’]?m sorry|i am sorry|sorry,|i apologi[sz]e|i can(no|['’])t|i am (unable|not able)|i['’]m (unable|not able)|as an ai\b)",
    re.IGNORECASE,
)
_COUNTER_QUESTION = re.compile(
    r"\A\W*(please (provide|share|paste|send|give)|(could|can|would) you (please )?(provide|share|paste|tell)|"
    r"what would you like|how (can|may) i (help|assist)|(there is|i (do not|don['’]t) see|i see) no (transcript|conversation))",
    re.IGNORECASE,
)
_NO_ANSWER = re.compile(
    r"\A\W*(ok(ay)?|sure|done|yes|no|understood|got it|certainly|of course|will do|noted|hello|hi|null|undefined|nan|none|n/a|summary|"
    r"to ?do|tbd|(here|below) is (the|a|your) (\w+ )?summary)\W*\Z",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(
    r"[\[<{(][^\n\]>})]{0,80}(insert|your|placeholder|to be (added|filled|written)|goes here|fill in)[^\n\]>})]{0,80}[\]>})]|lorem ipsum.*|"
    r"\b(none|n/a|tbd|todo|nil|nothing|unknown|not applicable|not available)\b|\.\.\.|…",
    re.IGNORECASE,
)
_WEB_PAGE = re.compile(r"\A\s*<(!doctype|html|head|body|\?xml)\b", re.IGNORECASE)
_HEADING = re.compile(
    r"^\s*(#{1,6}\s.*|[*_]{2}[^*_\n]+[*_]{2}:?|[^:\n]{1,60}:)\s*$|^\W*[A-Z][A-Z &/]{2,40}:",
    re.MULTILINE,
)


def extract_summary(
    answer: CallResult, *, instruction: str = "", transcript: str = "", headings: Iterable[str] = ()
) -> str:
    """The summary in an answer, out of its wrapping. Raises SummaryFailed with what is wrong.

    `asked`: the instruction, which an answer may only repeat; `told`: the transcript, which it may only copy; `headings`: the template's.
    """
    summary = unwrap_summary(answer.text)
    complaint = (
        _check_finish(answer, summary) or _check_words(summary, headings) or _check_purpose(summary)
    )
    if complaint := complaint or _check_copying(summary, instruction, transcript):
        raise SummaryFailed(complaint)
    return summary


def _check_finish(answer: CallResult, summary: str) -> str | None:
    if answer.finish == "tool_calls":
        return "The model called a tool instead of writing a summary."
    if answer.finish == "refusal":
        return "The model refused to write a summary."
    if answer.finish == "length":
        return "The summary was cut off at its length limit."
    if not summary:
        return (
            "The model only reasoned and wrote no summary."
            if answer.text.strip()
            else "The summary is empty."
        )
    return None


def _check_words(summary: str, headings: Iterable[str]) -> str | None:
    if _WEB_PAGE.match(summary):
        return "The model answered with a web page."
    if summary[0] in "{[" and summary[-1] in "}]" and '"' in summary:
        return "The model answered with data instead of words."
    if _NO_ANSWER.match(summary) or not _has_content(summary, headings):
        return "The summary holds only headings and placeholders."
    characters = [char for char in summary if not char.isspace()]
    if sum(map(str.isalnum, characters)) < LETTERS_SHARE * len(characters) or summary.count(
        "\ufffd"
    ) > LETTERS_SHARE * len(characters):
        return "The summary holds hardly any words."
    longest = max((len(word) for word in summary.split() if word.isascii()), default=0)
    return (
        "The summary is data, not words." if longest > max(WORD_CHARS, len(summary) // 2) else None
    )


def _has_content(summary: str, headings: Iterable[str]) -> bool:
    """Whether anything is left without headings and what stands in for content."""
    content = _HEADING.sub("", summary)
    for heading in headings:
        content = re.sub(
            rf"^\W*(\d+\.)?\W*{re.escape(heading)}\b[^\n:]{{0,40}}(:|$)",
            "",
            content,
            flags=re.IGNORECASE | re.MULTILINE,
        )
    return bool(
        re.search(
            r"\w",
            re.sub(r"^\s*\d+[.)]", "", _PLACEHOLDER.sub("", content), flags=re.MULTILINE).replace(
                "_", ""
            ),
        )
    )


def _check_purpose(summary: str) -> str | None:
    is_short = len(summary) < REFUSAL_CHARS
    if is_short and _REFUSAL.match(summary):
        return "The model refused to write a summary."
    if is_short and _COUNTER_QUESTION.match(summary):
        return "The model asked back instead of writing a summary."
    if len(_SPEAKER.findall(summary)) >= 2 or _SPEAKER.match(summary):
        return "The model continued the conversation instead of summarizing it."
    return "The model repeats itself." if is_repetitive(summary) else None


def _check_copying(summary: str, instruction: str, transcript: str) -> str | None:
    if _measure_echo(summary, instruction) > ECHO_SHARE:
        return "The model repeated its instruction instead of following it."
    if transcript and len(" ".join(summary.split())) >= COPY_CHARS:
        lines = [line for raw in summary.splitlines() if (line := raw.strip())]
        if sum(
            len(line) for line in lines if len(line) >= COPY_LINE_CHARS and line in transcript
        ) > COPY_SHARE * sum(map(len, lines)):
            return "The model copied the conversation instead of summarizing it."
    return None


def _measure_echo(summary: str, instruction_text: str) -> float:
    """The share of a summary's words that stand in a row in the instruction, however they are put on lines or punctuated."""
    summary_words, instruction_words = _split_words(summary), _split_words(instruction_text)
    phrases = {
        tuple(instruction_words[start : start + ECHO_WORDS])
        for start in range(len(instruction_words) - ECHO_WORDS + 1)
    }
    starts = [
        start
        for start in range(len(summary_words) - ECHO_WORDS + 1)
        if tuple(summary_words[start : start + ECHO_WORDS]) in phrases
    ]
    return len({start + offset for start in starts for offset in range(ECHO_WORDS)}) / max(
        1, len(summary_words)
    )


def _split_words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def is_repetitive(text: str) -> bool:
    """Whether a text says the same again and again."""
    lines = Counter(line for raw in text.splitlines() if len(line := raw.strip()) > 20)
    if max(lines.values(), default=0) >= LOOP_LINES:
        return True
    word_list = text.split()
    if len(word_list) >= LOOP_WORDS and len(set(word_list)) < min(
        LOOP_WORDS, LOOP_SHARE * len(word_list)
    ):
        return True
    data = text.encode()
    return len(text) >= LOOP_CHARS and len(zlib.compress(data)) < LOOP_RATIO * len(data)
