"""Check that the answer of a summary call is a summary, and not something else that models write.

A bad summary would replace good messages, so an answer that looks wrong counts as a failed call
(docs/origins.md, "A bad summary is a failure").
"""

import json
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping

from compaction.core.summary import SummaryFailed
from compaction.summaries.call_log import Declined
from compaction.summaries.model_calls import CallResult
from compaction.summaries.prompt import SYSTEM_PROMPT, TAG_NAMES
from textkit.stop_words import STOP_WORDS

_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.IGNORECASE | re.DOTALL)
_END_OF_THOUGHT = re.compile(r"\A.*</(think|thinking|reasoning)>", re.IGNORECASE | re.DOTALL)
_PROMPT_TAG = re.compile(rf"</?\s*({'|'.join(TAG_NAMES)}|conversation_summary)\s*>", re.IGNORECASE)
_SPECIAL_TOKEN = re.compile(r"<\|[\w ]{1,40}\|>|</?s>|\[/?INST\]")
_FENCE = re.compile(r"\A(`{3,}+|~{3,}+)[^\n`]*\n(.*?)\n?\1\Z", re.DOTALL)
_WRAPPER_TAG = re.compile(
    r"\A<(summary|output|answer|result)>(.*)</\1>\Z", re.IGNORECASE | re.DOTALL
)
_ANNOUNCEMENT = re.compile(
    r"\A(?:(?:sure|certainly|of course|okay|ok)\b[^\n]{0,40}?[,.!:]\s*)?"
    r"(?:here(?: is|['’]s)|below is)\b[^\n]{0,60}:\s*\n",
    re.IGNORECASE,
)
REFUSED = "The model refused to write a summary."
EMPTY = "The summary is empty."
_SUMMARY_KEYS = ("summary", "text", "content", "result", "output", "answer")
MAX_LAYERS = 4

# A shorter text needs no summary, so anything may be one.
MIN_SOURCE_BYTES = 2_000
MIN_BYTES = 40
# What repeats itself says less than this.
MIN_TOLD_BYTES = 500
# Of what the source says without its repetitions.
LEAST_SHARE = 0.01
MAX_LEAST_BYTES = 1_000
# Of an earlier summary that the new one continues.
KEPT_SHARE = 0.5
MIN_EARLIER_BYTES = 200
# Words that a summary has in common with its source, at least, where the source has many.
COMMON_WORDS = 3
SOURCE_WORDS_FOR_ONE = 10
MIN_FACTS = 4
KEPT_FACTS = 0.2
# A summary in another language than its source has no words in common with it; an apology in
# another language has not, either, but is shorter.
MIN_FOREIGN_CHARS = 400
FOREIGN_SOURCE_SHARE = 0.1  # of a short source
CHARS_OF_A_SIGN = 3  # of an alphabet, that a sign of Chinese or a syllable of Korean stands for
FOREIGN_SHARE = 0.5  # of its short words, that the source has too
SCRIPT_SHARE = 0.02  # of a source, that a name in another script may have
ALIKE_SHARE = 0.5  # of the words of the shorter of two refusals
_SAMPLE_CHARS = 200_000

_WORD = re.compile(r"[^\W\d_]{4,}")
_SHORT_WORD = re.compile(r"\b[^\W\d_]{1,3}\b")
# Languages that write no spaces: pairs of their signs.
_SIGNS = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
_SIGN = re.compile(_SIGNS)
_PAIRS = re.compile(rf"(?=({_SIGNS}{{2}}))")
STEM_CHARS = 5
MAX_DIGITS = 40
_NUMBER = re.compile(r"\d[\d.,:/-]*\d")
# Words that a refusal has in common with any conversation: of no subject, or of the task itself.
_ROLES = ("user", "assistant", "transcript", "message")
_NAME = re.compile(r"(?<=[^\s.!?:#*>-] )[^\W\d_a-z]\w{2,}")

LOOP_CHARS = 400  # in a shorter text repetition cannot be told from chance
LOOP_RATIO = 0.12  # prose compresses to a third or more of its size; a loop to a few hundredths
LOOP_LINES = 4
MIN_LOOP_LINE_CHARS = 20  # shorter lines may be equal by chance
LOOP_WORDS = 24
LOOP_SHARE = 0.2
REFUSAL_CHARS = 400
# In a row. Fewer words of an instruction, such as its headings, may be in a summary by chance.
ECHO_WORDS = 6
OPENING_WORDS = 10  # at the beginning, which no summary shares with its instruction
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
    r"\A\W*((i['’]?m|i am|we['’]re) (very |so |really )?sorry|sorry,|i apologi[sz]e|apologies\b"
    r"|(i|we) can(no|['’])t|(i|we)( am|['’]m| are|['’]re)? (unable|not able)|as an ai\b"
    r"|i (won['’]t|will not|must decline|have to decline|do not feel|don['’]t feel)"
    r"|(this|the|your) (request|content|prompt) (violates|(was|is|has been) (blocked|flagged"
    r"|refused|filtered))\b|(es )?tut mir leid|leider kann ich|das kann ich nicht|je suis désolé"
    r"|désolé|je ne peux pas|lo siento|no puedo|mi dispiace|non posso|desculpe|lamento|não posso"
    r"|het spijt me|抱歉|很抱歉|对不起|我无法|申し訳|すみません|죄송)",
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
# Also where its end is missing.
_DATA = re.compile(
    r"\A(?:[\[{]\s*)+\"[^\"\n]{0,80}\"\s*[:,\]}]|\A[{\[][^\"]*+\".*(?<=[}\]])\Z", re.DOTALL
)
_WEB_PAGE = re.compile(r"\A\s*<(!doctype|html|head|body|\?xml)\b", re.IGNORECASE)
_HEADING = re.compile(
    r"^[^\S\n]*+(#{1,6}\s.*|[*_]{2}[^*_\n]+[*_]{2}:?|[^:\n]{1,60}:)[^\S\n]*$"
    r"|^[^\w\n]*+[A-Z][A-Z &/]{2,40}:",
    re.MULTILINE,
)


def unwrap_summary(text: str) -> str:
    """Return the summary without anything around it."""
    summary = _PROMPT_TAG.sub("", _SPECIAL_TOKEN.sub("", strip_thoughts(text))).strip()
    for _ in range(MAX_LAYERS):
        inner = _strip_layer(summary).strip()
        if inner == summary:
            break
        summary = inner
    return summary


def strip_thoughts(text: str) -> str:
    """Return the text without the model's reasoning.

    A block may be left open at the end. Its beginning may be missing too, because some models'
    chat templates put it into the prompt.
    """
    return _END_OF_THOUGHT.sub("", _THOUGHT.sub("", text)).strip()


def _strip_layer(text: str) -> str:
    if match := _FENCE.match(text):
        return match[2]
    if match := _WRAPPER_TAG.match(text):
        return match[2]
    if text.startswith(("{", "[", '"')):
        return _unwrap_json(text)
    return _ANNOUNCEMENT.sub("", text, count=1)


def _unwrap_json(text: str) -> str:
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, Mapping) and "error" not in value:
        summary_value = next((value[name] for name in _SUMMARY_KEYS if name in value), None)
        if summary_value is None:
            content = _format_sections(value)
        else:
            content = _format_value(summary_value)
    else:
        content = _format_value(value)
    return text if content is None else content


def _format_sections(value: Mapping[str, object]) -> str | None:
    """Return an object whose keys are headings as text; None if a value of it has no text."""
    sections: list[str] = []
    for name, content in value.items():
        section_text = _format_value(content)
        if section_text is None:
            return None
        sections.append(f"{name}:\n{section_text}")
    return "\n".join(sections)


def _format_value(value: object) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return "\n".join(f"- {item}" for item in value)
    if isinstance(value, Mapping) and value:
        return _format_sections(value)
    return None


def find_thinness(
    summary: str, *, previous: str | None, source: str, may_shrink: bool
) -> str | None:
    """Return why a text is no summary of the source and the earlier summary; None if it is one.

    It recognizes texts that are no summary: "(no changes)", an apology, headings without
    contents. No list of such words is needed, which would be of one language: a summary has a
    least size beside what it replaces, speaks of the same things, and loses few names and numbers.

    With `may_shrink` the model was told to shorten the earlier summary.
    """
    size = len(summary.encode())
    source_bytes = len(source.encode()) + len((previous or "").encode())
    if source_bytes < MIN_SOURCE_BYTES:
        return None
    told = zlib.compress(f"{previous or ''}{source}"[:_SAMPLE_CHARS].encode())
    least = min(MAX_LEAST_BYTES, LEAST_SHARE * len(told))
    if len(told) >= MIN_TOLD_BYTES:
        least = max(least, MIN_BYTES)
    if size < least:
        return "The summary says next to nothing of what it replaces."
    earlier_size = 0 if may_shrink else len((previous or "").encode())
    if earlier_size >= MIN_EARLIER_BYTES and size < KEPT_SHARE * earlier_size:
        return "The summary is much shorter than the earlier one, which it has to continue."
    if previous and _loses_facts(summary, previous):
        return "The names and numbers of the earlier summary are gone."
    if _speaks_of_other_things(summary, f"{previous or ''}\n{source}"):
        return "The summary does not speak of what it replaces."
    return None


def _loses_facts(summary: str, previous: str) -> bool:
    facts = {*_NUMBER.findall(previous), *_NAME.findall(previous)}
    if len(facts) < MIN_FACTS:
        return False
    text = summary.casefold()
    return sum(fact.casefold() in text for fact in facts) < KEPT_FACTS * len(facts)


def _speaks_of_other_things(summary: str, source: str) -> bool:
    source = source[:_SAMPLE_CHARS]
    source_words = _collect_words(source)
    is_other_script = _is_other_script(summary, source)
    needed = 1 if is_other_script else min(COMMON_WORDS, len(source_words) // SOURCE_WORDS_FOR_ONE)
    common_words = _collect_words(summary) & source_words
    common_numbers = _collect_numbers(summary) & _collect_numbers(source)
    if len(common_words) + len(common_numbers) >= needed:
        return False
    least = min(MIN_FOREIGN_CHARS, FOREIGN_SOURCE_SHARE * _measure_length(source))
    is_foreign = is_other_script or _is_foreign(summary, source)
    return _measure_length(summary) < least or not is_foreign


def _is_foreign(summary: str, source: str) -> bool:
    """Return whether a summary is written in another language than its source.

    Its articles, pronouns and the like are other ones then.
    """
    known_words = set(_SHORT_WORD.findall(source.casefold()))
    words = _SHORT_WORD.findall(summary.casefold())
    return sum(word in known_words for word in words) < FOREIGN_SHARE * len(words)


def _is_other_script(summary: str, source: str) -> bool:
    """Return whether most of a summary is in letters that the source hardly has."""
    scripts = _count_scripts(summary).most_common(1)
    source_scripts = _count_scripts(source)
    least = SCRIPT_SHARE * source_scripts.total()
    return any(source_scripts[script] < least for script, _ in scripts)


def _count_scripts(text: str) -> Counter[str]:
    """Return how many letters of each script a text has. Chinese and Japanese count as one."""
    scripts: Counter[str] = Counter()
    for char, count in Counter(filter(str.isalpha, text)).items():
        name = unicodedata.name(char, "").partition(" ")[0]
        scripts["CJK" if name in ("HIRAGANA", "KATAKANA") else name] += count
    return scripts


def _measure_length(text: str) -> int:
    """Return the characters of a text, as if it were written in an alphabet."""
    return len(text) + (CHARS_OF_A_SIGN - 1) * len(_SIGN.findall(text))


def _collect_words(text: str) -> set[str]:
    """Return the words of a text that may be of its subject, cut where endings begin."""
    words = {word for word in _WORD.findall(text.casefold()) if word not in STOP_WORDS}
    stems = {word[:STEM_CHARS] for word in words} | set(_PAIRS.findall(text))
    return stems - _WORDS_OF_THE_TASK


def _collect_numbers(text: str) -> set[int]:
    """Return the numbers of a text, in any digits and with any separators."""
    return {int(re.sub(r"\D", "", number[:MAX_DIGITS])) for number in _NUMBER.findall(text)}


_WORDS_OF_THE_TASK = frozenset(
    word[:STEM_CHARS] for word in (*_WORD.findall(SYSTEM_PROMPT.casefold()), *_ROLES)
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
        if objection in (REFUSED, EMPTY):
            raise Declined(objection, has_begun=bool(summary))
        raise SummaryFailed(objection)
    return summary


def add_quotation(reason: str, answer: str) -> str:
    """Return the reason with what the model wrote, if that is short enough to be a refusal.

    So the reason is right in languages whose refusals are not recognized.
    """
    text = " ".join(strip_thoughts(answer).split())
    if not text or len(text) >= REFUSAL_CHARS:
        return reason
    return f"{reason} The model wrote: “{text}”"


def is_declined(answer: CallResult, *, refusal: str = "") -> bool:
    """Return whether a model wrote nothing at all, or began to say that it does not want to.

    `refusal` is what it wrote where it did not want to: in any language, it writes that again.
    """
    text = strip_thoughts(answer.text)
    if not text:
        return answer.finish != "length" and not answer.thought_tokens
    if answer.finish == "refusal":
        return True
    return is_short(text) and (bool(_REFUSAL.match(text)) or _is_alike(text, refusal))


def is_short(text: str) -> bool:
    """Return whether a text may be no more than a refusal."""
    return _measure_length(text) < REFUSAL_CHARS


def _is_alike(text: str, other: str) -> bool:
    """Return whether two short texts have most of their words in common."""
    sets = [{*_split_words(each), *_PAIRS.findall(each)} for each in (text, other)]
    return len(sets[0] & sets[1]) > ALIKE_SHARE * min(map(len, sets))


def _check_finish(answer: CallResult, summary: str) -> str | None:
    if answer.finish == "tool_calls":
        return "The model called a tool instead of writing a summary."
    if answer.finish == "refusal":
        return REFUSED
    if answer.finish == "length":
        return "The summary was cut off at its length limit."
    if answer.finish != "stop":
        return "The summary ended for a reason that nobody knows, so it may be a part of one."
    if summary:
        return None
    if answer.text.strip():
        return "The model only reasoned and wrote no summary."
    return EMPTY


def _check_words(summary: str, headings: Iterable[str]) -> str | None:
    if _WRITTEN_CALL.search(summary[:200]):
        return "The model called a tool instead of writing a summary."
    if _WEB_PAGE.match(summary):
        return "The model answered with a web page."
    if _DATA.match(summary):
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
    if is_short(summary) and _REFUSAL.match(summary):
        return REFUSED
    if is_short(summary) and _COUNTER_QUESTION.match(summary):
        return "The model asked back instead of writing a summary."
    if len(_SPEAKER.findall(summary)) >= 2 or _SPEAKER.match(summary):
        return "The model continued the conversation instead of summarizing it."
    if is_repetitive(summary):
        return "The model repeats itself."
    return None


def _check_copying(summary: str, instruction: str, transcript: str) -> str | None:
    if _begins_as(summary, instruction) or _measure_echo(summary, instruction) > ECHO_SHARE:
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


def _begins_as(summary: str, instruction: str) -> bool:
    """Return True if a summary begins with a row of words of its instruction."""
    opening = " ".join(_split_words(summary)[:OPENING_WORDS])
    return opening.count(" ") == OPENING_WORDS - 1 and opening in " ".join(
        _split_words(instruction)
    )


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
