"""Choose what to bring back from before the boundary about the newest user message.

Of each message only the sentences that bear on the question.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, tzinfo
from uuid import UUID

from django.utils import timezone

from chatcore.base.token_estimate import CHARS_PER_TOKEN_ESTIMATE
from chatcore.context.recalled import ENVELOPE, SEPARATOR, RecalledPassage, render_passage
from chatcore.models import Message, Session, UserPreferences
from chatcore.providers.base import ChatMessage, Request
from chatcore.search.matching import Matcher
from chatcore.search.passages import Passage, find_passages
from chatcore.search.question import read_question
from compaction.core.knobs import RecallKnobs
from compaction.memory.forgotten import load_removal
from compaction.sessions.source_messages import find_time_zone
from textkit.calendar import describe_day
from textkit.relative_days import speaks_of_near_day
from textkit.stop_words import FEEDBACK_WORDS, STOP_WORDS

# It begins with the marks and not with what precedes them, which is ten times faster.
_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]++\s++|[。！？]|\n+")

MAX_CANDIDATES = 16  # passages that are looked at; no more would find room
EXCERPT_CHARS = 160  # of one message: many short excerpts hold an answer more often than a few
# An answer stands within so many messages after its question: calls of tools may lie between.
ANSWER_SPAN = 4
SHORT_CHARS = 60  # a shorter passage says little without the question before it
COVERED_SHARE = 0.8  # of a sentence's words that one line of the summary holds
_WORD = re.compile(r"\w+")
_INFORMATIVE = re.compile(r"\w*\d\w*|\w{4,}")
_QUESTION_MARK = re.compile(r"[?？]")


@dataclass(frozen=True, kw_only=True)
class Excerpt:
    """A part of a message, the sentence in it that matches best, and how well that one does."""

    text: str
    best_sentence: str
    rating: float


class QuestionWords:
    """The words of a question, weighted by how few of the sentences that were found have them.

    `is_empty` is True if it has only such words as stand in every text, as "And what about that?",
    or speak of an answer and not of a subject, as "Shorter, please".
    """

    def __init__(self, question: str, texts: Sequence[str]) -> None:
        terms = read_question(question, timezone.now()).terms
        self.is_empty = all(term.text in STOP_WORDS | FEEDBACK_WORDS for term in terms)
        self._matcher = Matcher(terms, [1.0] * len(terms))
        self._terms_by_sentence: dict[str, Collection[int]] = {}
        sentences = [sentence for text in texts for sentence in split_sentences(text)]
        counts = Counter(index for sentence in sentences for index in self._find_terms(sentence))
        self._weights = {
            index: math.log(1 + len(sentences) / count) for index, count in counts.items()
        }

    def rate(self, sentence: str) -> float:
        """Return the weight of the words of the question that a sentence has; 0 without any."""
        return sum(self._weights.get(index, 0.0) for index in self._find_terms(sentence))

    def _find_terms(self, sentence: str) -> Collection[int]:
        if sentence not in self._terms_by_sentence:
            self._terms_by_sentence[sentence] = self._matcher.match_text(sentence).strengths
        return self._terms_by_sentence[sentence]


def split_sentences(text: str) -> list[str]:
    """Return the sentences and lines of a text, without the space around them."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    starts = [0, *ends]
    parts = [text[start:end].strip() for start, end in zip(starts, [*ends, None], strict=True)]
    return [part for part in parts if part]


def cut_excerpt(sentences: Sequence[str], words: QuestionWords, max_chars: int) -> Excerpt:
    """Return the best sentence with those after and before it, as many as find room.

    A long sentence may take twice the room, because half of one says little.
    """
    ratings = [words.rate(sentence) for sentence in sentences]
    best = first = last = ratings.index(max(ratings))
    chars = len(sentences[best])
    has_space = True
    while has_space:
        has_space = False
        # What follows explains a word more often than what comes before it.
        if last + 1 < len(sentences) and chars + len(sentences[last + 1]) < max_chars:
            last += 1
            chars += len(sentences[last]) + 1
            has_space = True
        if first > 0 and chars + len(sentences[first - 1]) < max_chars:
            first -= 1
            chars += len(sentences[first]) + 1
            has_space = True
    text = " ".join(sentences[first : last + 1])[: 2 * max_chars]
    return Excerpt(text=text, best_sentence=sentences[best], rating=ratings[best])


def choose_passages(
    session: Session, question: ChatMessage, request: Request, knobs: RecallKnobs
) -> list[RecalledPassage]:
    """Return what was said about the question before the boundary, in the order of the messages.

    What the request holds already is left out. The answer to a question comes with it. The best
    passages come first to the room that the policy gives.
    """
    text = _get_own_words(question)
    boundary_seq = session.compact_boundary_seq or 0
    candidates = find_passages(session.pk, text, limit=MAX_CANDIDATES, up_to_seq=boundary_seq)
    passages = [passage for passage in candidates if passage.score >= knobs.threshold]
    if not passages:
        return []
    removal = load_removal(session.pk)
    words = QuestionWords(text, [passage.text for passage in passages])
    if words.is_empty:
        return []
    context = _RequestTexts(request)
    zone = _load_time_zone(session.owner_id)
    chosen_passages: dict[int, RecalledPassage] = {}
    space = knobs.tokens * CHARS_PER_TOKEN_ESTIMATE - len(ENVELOPE)
    for passage in _iterate_with_neighbors(session.pk, passages, words, boundary_seq, zone):
        text = removal.clean(passage.text, seq=passage.seq, role=passage.role)
        if not text:
            continue
        passage = replace(passage, text=text)
        chars = len(render_passage(passage)) + len(SEPARATOR)
        if chars <= space and passage.seq not in chosen_passages and not context.covers(passage):
            chosen_passages[passage.seq] = passage
            space -= chars
    return [chosen_passages[seq] for seq in sorted(chosen_passages)]


class _RequestTexts:
    """What a request holds without a recall: live messages, and the summary in its places."""

    def __init__(self, request: Request) -> None:
        messages = request.messages
        self._live_seqs = {message.seq for message in messages}
        self._live_texts = [message.content for message in messages if not message.aside]
        aside_texts = [message.content for message in messages if message.aside]
        self._summary = "\n".join((request.system, request.preface, *aside_texts))
        self._summary_lines: list[set[str]] | None = None

    def covers(self, passage: RecalledPassage) -> bool:
        """Return True if the words of a passage stand in a live message or in the summary."""
        if passage.seq in self._live_seqs:
            return True
        sentences = split_sentences(passage.text)
        if not sentences:
            return True
        # One sentence is looked for in all live messages, the others only where it stands: to
        # search a long context for each would take longer than to build the request.
        longest_sentence = max(sentences, key=len)
        texts = [text for text in self._live_texts if longest_sentence in text]
        if any(all(sentence in text for sentence in sentences) for text in texts):
            return True
        return all(self._stands_in_summary(sentence, passage.day) for sentence in sentences)

    def _stands_in_summary(self, sentence: str, day: date) -> bool:
        """Return whether a line says what a sentence of this day says, and of when it speaks.

        "The demo is tomorrow" says nothing in a line that does not name the day of the message.
        """
        words = set(_INFORMATIVE.findall(sentence.casefold())) or _list_words(sentence)
        numbers = {word for word in words if any(map(str.isdigit, word))}
        if self._summary_lines is None:
            lines = split_sentences(self._summary)
            self._summary_lines = [_list_words(line) for line in lines]
        day_words = _list_words(describe_day(day)) if speaks_of_near_day(sentence) else set()
        return any(
            numbers | day_words <= line and len(words & line) >= COVERED_SHARE * len(words)
            for line in self._summary_lines
        )


def _get_own_words(question: ChatMessage) -> str:
    """Return the user's own words, without the files that are sent with them."""
    text = question.content
    return text.split("\n\n<attached_file ", 1)[0] if question.files else text


def _list_words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _iterate_with_neighbors(
    session_id: UUID,
    passages: Sequence[Passage],
    words: QuestionWords,
    boundary_seq: int,
    zone: tzinfo,
) -> Iterator[RecalledPassage]:
    """Yield each passage, and then the message that it needs: its answer, or the question before.

    Some passages have no word of the question and were found for the messages near them. Of these,
    only long ones right beside a message with its words may say something about it.
    """
    excerpts = [
        (passage, cut_excerpt(split_sentences(passage.text), words, EXCERPT_CHARS))
        for passage in passages
    ]
    matching_seqs = {passage.seq for passage, excerpt in excerpts if excerpt.rating}
    seqs = {seq for passage, excerpt in excerpts for seq in _list_needed_seqs(passage, excerpt)}
    messages = _load_messages(session_id, [seq for seq in seqs if 0 < seq < boundary_seq])
    for passage, excerpt in excerpts:
        is_beside = bool({passage.seq - 1, passage.seq + 1} & matching_seqs)
        if not excerpt.rating and not (is_beside and len(excerpt.text) >= SHORT_CHARS):
            continue
        neighbor = _find_neighbor(passage, excerpt, messages)
        place = (passage.message_id, passage.seq, passage.role, passage.created_at)
        yield _build_passage(*place, excerpt, zone)
        if neighbor:
            place = (neighbor.pk, neighbor.seq, neighbor.role, neighbor.created_at)
            sentences = split_sentences(neighbor.content)
            yield _build_passage(*place, cut_excerpt(sentences, words, EXCERPT_CHARS), zone)


def _list_needed_seqs(passage: Passage, excerpt: Excerpt) -> Iterable[int]:
    """Return the numbers of the messages that may be needed to understand a passage."""
    if _asks(excerpt):
        return range(passage.seq + 1, passage.seq + ANSWER_SPAN + 1)
    return [passage.seq - 1] if len(passage.text) < SHORT_CHARS else []


def _find_neighbor(
    passage: Passage, excerpt: Excerpt, messages: Sequence[Message]
) -> Message | None:
    """Return the answer to a passage that asks, or the question that a short passage answers."""
    seqs = _list_needed_seqs(passage, excerpt)
    for message in messages:
        is_spoken = message.role in (Message.Role.USER, Message.Role.ASSISTANT)
        if message.seq not in seqs or not is_spoken or not message.content.strip():
            continue
        if message.role == passage.role:
            return None
        is_needed = _asks(excerpt) or _QUESTION_MARK.search(message.content)
        return message if is_needed else None
    return None


def _asks(excerpt: Excerpt) -> bool:
    """Return True if the sentence that was found is a question."""
    return excerpt.best_sentence.endswith(("?", "？"))


def _load_messages(session_id: UUID, seqs: Collection[int]) -> list[Message]:
    if not seqs:
        return []
    messages = Message.objects.filter(session=session_id, seq__in=seqs).exclude_superseded()
    columns = ("id", "seq", "role", "content", "created_at")
    return list(messages.only(*columns).order_by("seq"))


def _build_passage(
    pk: int, seq: int, role: str, created_at: datetime, excerpt: Excerpt, zone: tzinfo
) -> RecalledPassage:
    day = timezone.localdate(created_at, zone).isoformat()
    return RecalledPassage(message=pk, seq=seq, role=role, date=day, text=excerpt.text)


def _load_time_zone(owner_pk: int | None) -> tzinfo:
    """Return the time zone of a user."""
    names = UserPreferences.objects.filter(pk=owner_pk).values_list("time_zone", flat=True)
    return find_time_zone(names.first())
