"""Choose what to bring back from before the boundary about the newest user message."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from uuid import UUID

from chatcore.base.token_estimate import CHARS_PER_TOKEN_ESTIMATE
from chatcore.context.compactor import RecallPlan
from chatcore.context.excerpts import Excerpt, QuestionWords, cut_excerpt, split_sentences
from chatcore.context.recalled import ENVELOPE, SEPARATOR, RecalledPassage, render_passage
from chatcore.models import Message
from chatcore.providers.base import ChatMessage, Request
from chatcore.search.passages import Passage, find_passages

MAX_CANDIDATES = 16  # passages that are looked at; no more would find room
EXCERPT_CHARS = 160  # of one message: many short excerpts hold an answer more often than a few
# An answer stands within so many messages after its question: calls of tools may lie between.
ANSWER_SPAN = 4
SHORT_CHARS = 60  # a shorter passage says little without the question before it
COVERED_SHARE = 0.8  # of a sentence's words that one line of the summary holds
_WORD = re.compile(r"\w+")
_INFORMATIVE = re.compile(r"\w*\d\w*|\w{4,}")
_QUESTION_MARK = re.compile(r"[?？]")


def choose_passages(
    session_id: UUID,
    question: ChatMessage,
    request: Request,
    plan: RecallPlan,
    *,
    boundary_seq: int,
) -> list[RecalledPassage]:
    """Return what was said about the question before the boundary, in the order of the messages.

    What the request holds already is left out. The answer to a question comes with it. The best
    passages come first to the room of the plan.
    """
    text = _get_own_words(question)
    candidates = find_passages(session_id, text, limit=MAX_CANDIDATES, up_to_seq=boundary_seq)
    passages = [passage for passage in candidates if passage.score >= plan.threshold]
    if not passages:
        return []
    words = QuestionWords(text, [passage.text for passage in passages])
    if words.is_empty:
        return []
    context = _RequestTexts(request)
    chosen_passages: dict[int, RecalledPassage] = {}
    space = plan.tokens * CHARS_PER_TOKEN_ESTIMATE - len(ENVELOPE)
    for passage in _iterate_with_neighbors(session_id, passages, words, boundary_seq):
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
        return all(map(self._stands_in_summary, sentences))

    def _stands_in_summary(self, sentence: str) -> bool:
        words = set(_INFORMATIVE.findall(sentence.casefold())) or _list_words(sentence)
        numbers = {word for word in words if any(map(str.isdigit, word))}
        if self._summary_lines is None:
            lines = split_sentences(self._summary)
            self._summary_lines = [_list_words(line) for line in lines]
        return any(
            numbers <= line and len(words & line) >= COVERED_SHARE * len(words)
            for line in self._summary_lines
        )


def _get_own_words(question: ChatMessage) -> str:
    """Return the user's own words, without the files that are sent with them."""
    text = question.content
    return text.split("\n\n<attached_file ", 1)[0] if question.files else text


def _list_words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _iterate_with_neighbors(
    session_id: UUID, passages: Sequence[Passage], words: QuestionWords, boundary_seq: int
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
        yield _build_passage(*place, excerpt)
        if neighbor:
            place = (neighbor.pk, neighbor.seq, neighbor.role, neighbor.created_at)
            sentences = split_sentences(neighbor.content)
            yield _build_passage(*place, cut_excerpt(sentences, words, EXCERPT_CHARS))


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
    pk: int, seq: int, role: str, created_at: datetime, excerpt: Excerpt
) -> RecalledPassage:
    date = created_at.date().isoformat()
    return RecalledPassage(message=pk, seq=seq, role=role, date=date, text=excerpt.text)
