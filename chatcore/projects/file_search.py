"""Find passages in the files of a project by a question in ordinary words, and where they stand.

The texts are rated as those of messages are (`search/matching.py`), piece by piece. No index holds
them: a project has twenty files at most, and they are read one at a time.
"""

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone

from chatcore.models import ProjectFile
from chatcore.search.matching import Matcher
from chatcore.search.question import Question, read_question
from chatcore.search.stems import fold_case

PIECE_CHARS = 1_200  # a passage, at whose end a line or a sentence ends where that is possible
MIN_PIECE_CHARS = 600
MIN_PART_CHARS = 4  # words that are also looked for inside other words
MAX_CANDIDATES = 2_000  # pieces whose texts are kept while the others are read
PAGE_END = "\f"


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


def find_passages(
    project_id: UUID, question_text: str, *, file_name: str = "", limit: int
) -> list[FilePassage]:
    """Return the passages that answer best, the best first; of one file alone if it is named."""
    question = read_question(question_text, timezone.now())
    terms = question.terms
    parts = [index for index, term in enumerate(terms) if len(term.text) >= MIN_PART_CHARS]
    counter = Matcher(terms, [1.0] * len(terms), parts)
    counts = [0] * len(terms)
    total = 0
    candidates: list[tuple[float, int, FilePassage]] = []
    for total, passage in enumerate(_list_pieces(project_id, file_name), 1):
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
        match = matcher.match_text(candidate[2].text)
        return match.rating + match.answer_rating, candidate[1]

    return [passage for *_, passage in heapq.nlargest(limit, candidates, key=rate)]


def read_from(project_id: UUID, file_name: str, offset: int, limit: int) -> FilePassage | None:
    """Return `limit` characters of a file from an offset on; None if there is no such file."""
    row = _select_files(project_id, file_name).values_list("name", "text").first()
    return (
        _describe_place(row[0], row[1], offset, min(len(row[1]), offset + limit)) if row else None
    )


def list_names(project_id: UUID) -> list[str]:
    """Return the names of the project's files."""
    return list(_select_files(project_id).values_list("name", flat=True))


def _select_files(project_id: UUID, file_name: str = "") -> QuerySet[ProjectFile]:
    files = ProjectFile.objects.filter(project=project_id)
    return files.filter(name=file_name) if file_name else files


def _list_pieces(project_id: UUID, file_name: str) -> Iterator[FilePassage]:
    """Yield the texts of the files in pieces, one after another."""
    for name, text in (
        _select_files(project_id, file_name).values_list("name", "text").iterator(chunk_size=1)
    ):
        start, line, page = 0, 1, 1
        has_pages = PAGE_END in text
        while start < len(text):
            end = _find_piece_end(text, start)
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
