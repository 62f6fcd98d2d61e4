"""Find passages in the files of a project by a question in ordinary words, and where they stand.

The texts are rated as those of messages are (`search/matching.py`), piece by piece. No index holds
them: a project has twenty files at most, and they are read one at a time. A search works in a
thread of the web process, so it is bounded: one at a time for a person, a few seconds long, and it
rests as long as it works, so that requests run beside it. What it did not reach, it tells.
"""

import heapq
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Left
from django.utils import timezone

from chatcore.base.slots import PersonLocks
from chatcore.base.threads import give_back_connection
from chatcore.models import ProjectFile
from chatcore.search.matching import Matcher
from chatcore.search.question import Question, read_question
from textkit.stems import fold_case

PIECE_CHARS = 1_200  # a passage, at whose end a line or a sentence ends where that is possible
MIN_PIECE_CHARS = 600
MIN_PART_CHARS = 4  # words that are also looked for inside other words
MAX_CANDIDATES = 500  # pieces whose texts are kept while the others are read
MAX_FILE_CHARS = 2_000_000  # of one file in one search
SEARCH_SECONDS = 5.0
WAIT_SECONDS = 10.0  # for the searches before this one
SLICE_SECONDS = 0.01  # of work, until a search rests
PAGE_END = "\f"

_owner_locks = PersonLocks()
_places = threading.BoundedSemaphore(2)


class SearchesBusy(Exception):
    """Searches that began earlier did not end within WAIT_SECONDS."""


@dataclass(frozen=True, kw_only=True)
class FilePassage:
    """A part of a file. `offset` is its first character, `page` and `line` are from 1.

    `page` is None where the file has no pages.
    """

    file: str
    text: str
    offset: int
    line: int
    page: int | None


@dataclass(kw_only=True)
class FoundPassages:
    """What a search found, the best first.

    `unread` names the files that were not searched to their end, each with the first character that
    was not.
    """

    passages: list[FilePassage] = field(default_factory=list)
    unread: dict[str, int] = field(default_factory=dict)


@contextmanager
def take_turn(owner_id: object) -> Iterator[None]:
    """Wait until no other search of the person goes on. Raises SearchesBusy."""
    give_back_connection()
    end = time.monotonic() + WAIT_SECONDS
    lock = _owner_locks.get(owner_id)
    if not lock.acquire(timeout=WAIT_SECONDS):
        raise SearchesBusy
    try:
        if not _places.acquire(timeout=max(0.0, end - time.monotonic())):
            raise SearchesBusy
        try:
            yield
        finally:
            _places.release()
    finally:
        lock.release()


def find_passages(
    project_id: UUID,
    question_text: str,
    *,
    file_name: str = "",
    offset: int = 0,
    limit: int,
    is_wanted: Callable[[], bool],
) -> FoundPassages:
    """Return the passages that answer best; of one file alone, from an offset on, if it is named.

    It is called in a `take_turn`. It ends after SEARCH_SECONDS, and at the next file when
    `is_wanted` returns False.
    """
    question = read_question(question_text, timezone.now())
    terms = question.terms
    parts = [index for index, term in enumerate(terms) if len(term.text) >= MIN_PART_CHARS]
    counter = Matcher(terms, [1.0] * len(terms), parts)
    counts = [0] * len(terms)
    total = 0
    candidates: list[tuple[float, int, FilePassage]] = []
    found = FoundPassages()
    pace = _Pace()
    pieces = _list_pieces(project_id, file_name, offset, found, pace, is_wanted)
    for total, passage in enumerate(pieces, 1):
        if not _holds_phrases(question, passage.text):
            continue
        match = counter.match_text(passage.text)
        for index in match.strengths:
            counts[index] += 1
        if match.rating or question.phrases:
            _keep(candidates, (match.rating, -total, passage))
    weights = [math.log(1 + (total - count + 0.5) / (count + 0.5)) for count in counts]
    matcher = Matcher(terms, weights, parts, question.answer)

    def rate(candidate: tuple[float, int, FilePassage]) -> tuple[float, int]:
        pace.rest()
        match = matcher.match_text(candidate[2].text)
        return match.rating + match.answer_rating, candidate[1]

    found.passages = [passage for *_, passage in heapq.nlargest(limit, candidates, key=rate)]
    return found


def read_from(project_id: UUID, file_name: str, offset: int, limit: int) -> FilePassage | None:
    """Return `limit` characters of a file from an offset on; None if there is no such file."""
    text = _load_text(_select_files(project_id, file_name), offset + limit)
    return None if text is None else _describe_place(file_name, text, offset, len(text))


def list_names(project_id: UUID) -> list[str]:
    """Return the names of the project's files."""
    return list(_select_files(project_id).values_list("name", flat=True))


class _Pace:
    """The time that a search has, of which it works one half."""

    def __init__(self) -> None:
        self._end = time.monotonic() + SEARCH_SECONDS
        self._worked = time.thread_time()

    def is_over(self) -> bool:
        return time.monotonic() >= self._end

    def rest(self) -> None:
        """Leave the interpreter to other threads for as long as was worked since the last rest."""
        seconds = time.thread_time() - self._worked
        if seconds >= SLICE_SECONDS:
            time.sleep(seconds)
            self._worked = time.thread_time()


def _select_files(project_id: UUID, file_name: str = "") -> QuerySet[ProjectFile]:
    files = ProjectFile.objects.filter(project=project_id)
    return files.filter(name=file_name) if file_name else files


def _load_text(files: QuerySet[ProjectFile], char_count: int) -> str | None:
    """Return the first characters of a file; None if it is gone."""
    text = files.values_list(Left("text", char_count), flat=True).first()
    give_back_connection()  # what comes next takes time, and needs none
    return text


def _list_pieces(
    project_id: UUID,
    file_name: str,
    offset: int,
    found: FoundPassages,
    pace: _Pace,
    is_wanted: Callable[[], bool],
) -> Iterator[FilePassage]:
    """Yield the texts of the files in pieces, one after another, and note what is not read."""
    for pk, name in list(_select_files(project_id, file_name).values_list("pk", "name")):
        if pace.is_over() or not is_wanted():
            found.unread[name] = offset
            continue
        end = offset + MAX_FILE_CHARS
        text = _load_text(ProjectFile.objects.filter(pk=pk), end + 1) or ""
        if len(text) > end:
            found.unread[name] = end
        for passage in _divide(name, text, offset, end):
            if pace.is_over():
                found.unread[name] = passage.offset
                break
            yield passage
            pace.rest()


def _divide(name: str, text: str, start: int, last: int) -> Iterator[FilePassage]:
    """Yield the pieces of a text from `start` on, up to `last`."""
    has_pages = PAGE_END in text
    line = text.count("\n", 0, start) + 1
    page = text.count(PAGE_END, 0, start) + 1
    while start < min(len(text), last):
        end = min(_find_piece_end(text, start), last)
        piece = text[start:end]
        if piece.strip():
            yield FilePassage(
                file=name, text=piece, offset=start, line=line, page=page if has_pages else None
            )
        line += piece.count("\n")
        page += piece.count(PAGE_END)
        start = end


def _find_piece_end(text: str, start: int) -> int:
    """Return where a piece ends: at a page, else at the last good place before it is too long."""
    longest = start + PIECE_CHARS
    page_end = text.find(PAGE_END, start, longest)
    if page_end >= 0:
        return page_end + 1
    if longest >= len(text):
        return len(text)
    for pattern in ("\n\n", "\n", ". ", " "):
        place = text.rfind(pattern, start + MIN_PIECE_CHARS, longest)
        if place >= 0:
            return place + len(pattern)
    return longest


def _describe_place(name: str, text: str, start: int, end: int) -> FilePassage:
    before = text[:start]
    return FilePassage(
        file=name,
        text=text[start:end],
        offset=start,
        line=before.count("\n") + 1,
        page=before.count(PAGE_END) + 1 if PAGE_END in text else None,
    )


def _holds_phrases(question: Question, text: str) -> bool:
    if not question.phrases:
        return True
    folded_text = " ".join(fold_case(text).split())
    return all(fold_case(phrase) in folded_text for phrase in question.phrases)


def _keep(
    candidates: list[tuple[float, int, FilePassage]], candidate: tuple[float, int, FilePassage]
) -> None:
    """Add a candidate, and drop the weakest one when there are too many."""
    if len(candidates) < MAX_CANDIDATES:
        heapq.heappush(candidates, candidate)
    else:
        heapq.heappushpop(candidates, candidate)
