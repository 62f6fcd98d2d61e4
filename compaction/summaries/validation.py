"""Check that the answer of a summary call is a summary, and not something else that models write.

A bad summary would replace good messages, so an answer that looks wrong counts as a failed call
(docs/origins.md, "A bad summary is a failure").
"""

import re
import zlib
from collections import Counter
from collections.abc import Iterable

from compaction.core.stages.base import SummaryFailed
from compaction.summaries.model_calls import CallResult
from compaction.summaries.unwrapping import unwrap_summary

LOOP_CHARS = 400  # in a shorter text repetition cannot be told from chance
LOOP_RATIO = 0.12  # prose compresses to a third or more of its size; a loop to a few hundredths
LOOP_LINES = 4
MIN_LOOP_LINE_CHARS = 20  # shorter lines may be equal by chance
LOOP_WORDS = 24
LOOP_SHARE = 0.2
REFUSAL_CHARS = 400
# In a row. Fewer words of an instruction, such as its headings, may be in a summary by chance.
ECHO_WORDS = 6
ECHO_SHARE = 0.3
COPY_CHARS = 200
COPY_LINE_CHARS = 50  # shorter lines may be the same by chance
COPY_SHARE = 0.9
PASSAGE_SHARE = 0.5  # of the transcript; an extract is shorter
PASSAGE_GAP_CHARS = 30  # between two messages stand only their marks
LETTERS_SHARE = 0.2
WORD_CHARS = 200  # longer ones are data, not words

_SPEAKER = re.compile(
    r"^[^\S\n]*+[\[*#]*[^\S\n]*+(user|assistant|human|ai)\b[^\S\n]*+\**+[^\S\n]*+(:|\]|$)",
    re.IGNORECASE | re.MULTILINE,
)
_REFUSAL = re.compile(
    r"\A\W*(i['’]?m sorry|i am sorry|sorry,|i apologi[sz]e|i can(no|['’])t|i am (unable|not able)|"
    r"i['’]m (unable|not able)|as an ai\b)",
    re.IGNORECASE,
)
_COUNTER_QUESTION = re.compile(
    r"\A\W*(please (provide|share|paste|send|give)|"
    r"(could|can|would) you (please )?(provide|share|paste|tell)|"
    r"what would you like|how (can|may) i (help|assist)|"
    r"(there is|i (do not|don['’]t) see|i see) no (transcript|conversation))",
    re.IGNORECASE,
)
_NO_ANSWER = re.compile(
    r"\A\W*(ok(ay)?|sure|done|yes|no|understood|got it|certainly|of course|will do|noted|hello|hi|"
    r"null|undefined|nan|none|n/a|summary|"
    r"to ?do|tbd|(here|below) is (the|a|your) (\w+ )?summary)\W*\Z",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(
    r"[\[<{(][^\n\]>})]{0,80}"
    r"(insert|your|placeholder|to be (added|filled|written)|goes here|fill in)"
    r"[^\n\]>})]{0,80}[\]>})]|lorem ipsum.*|"
    r"\b(none|n/a|tbd|todo|nil|nothing|unknown|not applicable|not available)\b|\.\.\.|…",
    re.IGNORECASE,
)
_WRITTEN_CALL = re.compile(
    r"<\|?(tool_calls?|function_calls?|function=|invoke\b|tool▁call)|\[TOOL_CALLS\]"
    r"|\A\W*(```(json)?\s*)?\{\s*\"(name|tool|function|arguments)\"",
    re.IGNORECASE,
)
_WEB_PAGE = re.compile(r"\A\s*<(!doctype|html|head|body|\?xml)\b", re.IGNORECASE)
_HEADING = re.compile(
    r"^[^\S\n]*+(#{1,6}\s.*|[*_]{2}[^*_\n]+[*_]{2}:?|[^:\n]{1,60}:)[^\S\n]*$"
    r"|^[^\w\n]*+[A-Z][A-Z &/]{2,40}:",
    re.MULTILINE,
)


def extract_summary(
    answer: CallResult, *, instruction: str = "", transcript: str = "", headings: Iterable[str] = ()
) -> str:
    """Return the summary in an answer. Raises SummaryFailed with what is wrong with it.

    An answer that only repeats the `instruction`, copies the `transcript`, or holds nothing but
    the template's `headings` is no summary.
    """
    summary = unwrap_summary(answer.text)
    objection = (
        _check_finish(answer, summary)
        or _check_words(summary, headings)
        or _check_purpose(summary)
        or _check_copying(summary, instruction, transcript)
    )
    if objection:
        raise SummaryFailed(objection)
    return summary


def _check_finish(answer: CallResult, summary: str) -> str | None:
    if answer.finish == "tool_calls":
        return "The model called a tool instead of writing a summary."
    if answer.finish == "refusal":
        return "The model refused to write a summary."
    if answer.finish == "length":
        return "The summary was cut off at its length limit."
    if answer.finish != "stop":
        return "The summary ended for a reason that nobody knows, so it may be a part of one."
    if summary:
        return None
    if answer.text.strip():
        return "The model only reasoned and wrote no summary."
    return "The summary is empty."


def _check_words(summary: str, headings: Iterable[str]) -> str | None:
    if _WRITTEN_CALL.search(summary[:200]):
        return "The model called a tool instead of writing a summary."
    if _WEB_PAGE.match(summary):
        return "The model answered with a web page."
    if summary[0] in "{[" and summary[-1] in "}]" and '"' in summary:
        return "The model answered with data instead of words."
    if _NO_ANSWER.match(summary) or not _has_content(summary, headings):
        return "The summary holds only headings and placeholders."
    characters = [char for char in summary if not char.isspace()]
    letter_count = sum(map(str.isalnum, characters))
    broken_count = summary.count("\ufffd")
    share = LETTERS_SHARE * len(characters)
    if letter_count < share or broken_count > share:
        return "The summary holds hardly any words."
    # Only ASCII: languages such as Chinese write whole sentences without a space.
    longest_word = max((len(word) for word in summary.split() if word.isascii()), default=0)
    if longest_word > max(WORD_CHARS, len(summary) // 2):
        return "The summary is data, not words."
    return None


def _has_content(summary: str, headings: Iterable[str]) -> bool:
    """Return True if anything remains without headings, placeholders and numbers of lists."""
    content = _HEADING.sub("", summary)
    for heading in headings:
        content = re.sub(
            rf"^\W*(\d+\.)?\W*{re.escape(heading)}\b[^\n:]{{0,40}}(:|$)",
            "",
            content,
            flags=re.IGNORECASE | re.MULTILINE,
        )
    content = _PLACEHOLDER.sub("", content)
    content = re.sub(r"^[^\S\n]*+\d+[.)]", "", content, flags=re.MULTILINE)
    return re.search(r"[^\W_]", content) is not None


def _check_purpose(summary: str) -> str | None:
    is_short = len(summary) < REFUSAL_CHARS
    if is_short and _REFUSAL.match(summary):
        return "The model refused to write a summary."
    if is_short and _COUNTER_QUESTION.match(summary):
        return "The model asked back instead of writing a summary."
    if len(_SPEAKER.findall(summary)) >= 2 or _SPEAKER.match(summary):
        return "The model continued the conversation instead of summarizing it."
    if is_repetitive(summary):
        return "The model repeats itself."
    return None


def _check_copying(summary: str, instruction: str, transcript: str) -> str | None:
    if _measure_echo(summary, instruction) > ECHO_SHARE:
        return "The model repeated its instruction instead of following it."
    if transcript and _is_copy(summary, transcript):
        return "The model copied the conversation instead of summarizing it."
    return None


def _is_copy(summary: str, transcript: str) -> bool:
    """Return True if a summary repeats a passage. Sentences chosen from a talk are an extract."""
    if len(" ".join(summary.split())) < COPY_CHARS:
        return False
    lines = [line.strip() for line in summary.splitlines()]
    long_lines = [line for line in lines if len(line) >= COPY_LINE_CHARS]
    copied_lines = [line for line in long_lines if line in transcript]
    copied_chars = sum(map(len, copied_lines))
    if copied_chars <= COPY_SHARE * sum(map(len, lines)):
        return False
    return copied_chars > PASSAGE_SHARE * len(transcript) or _is_passage(copied_lines, transcript)


def _is_passage(lines: list[str], transcript: str) -> bool:
    """Return True if most of these lines follow each other in the transcript too."""
    positions = [transcript.find(line) for line in lines]
    ends = [position + len(line) for position, line in zip(positions, lines, strict=True)]
    gaps = [start - end for end, start in zip(ends[:-1], positions[1:], strict=True)]
    neighbors = sum(0 <= gap <= PASSAGE_GAP_CHARS for gap in gaps)
    return bool(gaps) and neighbors > COPY_SHARE * len(gaps)


def _measure_echo(summary: str, instruction: str) -> float:
    """Return the share of a summary's words that are a phrase of the instruction.

    Line breaks and punctuation make no difference.
    """
    summary_words = _split_words(summary)
    phrases = set(_list_phrases(_split_words(instruction)))
    echoed_positions: set[int] = set()
    for start, phrase in enumerate(_list_phrases(summary_words)):
        if phrase in phrases:
            echoed_positions.update(range(start, start + ECHO_WORDS))
    return len(echoed_positions) / max(1, len(summary_words))


def _list_phrases(words: list[str]) -> list[tuple[str, ...]]:
    """Return every row of ECHO_WORDS words, in order."""
    starts = range(len(words) - ECHO_WORDS + 1)
    return [tuple(words[start : start + ECHO_WORDS]) for start in starts]


def _split_words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def is_repetitive(text: str) -> bool:
    """Return True if a text says the same thing again and again."""
    lines = [line.strip() for line in text.splitlines()]
    line_counts = Counter(line for line in lines if len(line) > MIN_LOOP_LINE_CHARS)
    if max(line_counts.values(), default=0) >= LOOP_LINES:
        return True
    words = text.split()
    most_words_of_loop = min(LOOP_WORDS, LOOP_SHARE * len(words))
    if len(words) >= LOOP_WORDS and len(set(words)) < most_words_of_loop:
        return True
    # A loop that is longer than a line and has varied words is found by how well it compresses.
    data = text.encode()
    return len(text) >= LOOP_CHARS and len(zlib.compress(data)) < LOOP_RATIO * len(data)
