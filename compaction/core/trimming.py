"""The fallback: make a request fit by leaving out its oldest messages, without storing anything."""

from collections.abc import Sequence
from itertools import accumulate

from compaction.core.budget import share_evenly
from compaction.core.tool_pairs import split_entries
from compaction.core.transcript import TranscriptEntry, change_entry

MIN_REST_OF_TURN = 0.125  # of the room, for which the question of a turn stays without its middle
MIN_RESULT_CHARS = 400  # of a result that is shortened: less is of no use to the model
MARKER_CHARS = 100  # of them, for the marker in the middle
RESULT_MARKER = (
    "\n\n[... {omitted} characters are left out here: there is no room for them ...]\n\n"
)


def drop_oldest_to_fit(
    entries: Sequence[TranscriptEntry],
    *,
    limit_tokens: int,
    overhead_tokens: int = 0,
    token_ratio: float = 1.0,
) -> tuple[TranscriptEntry, ...]:
    """Return the entries without the oldest, so that the overhead and the rest fit in the limit.

    `limit_tokens` and `overhead_tokens`, which includes the summary, are real tokens; `token_ratio`
    is how many of them one estimated token of an entry stands for.

    Calls go with their results. The newest user message always stays, and so does the newest
    message with its pair; if these alone are over the limit they are returned all the same, and the
    caller decides. Pinned messages stay beside them, the newest first, while there is room. If the
    rest begins inside a turn, the question of that turn stays before it, if there is room.

    The cut moves in steps of up to half of the room, at places that depend only on what stands
    before them. So it stays where it is for many turns, and a provider's prompt cache holds.
    """
    total = sum(entry.tokens for entry in entries) * token_ratio + overhead_tokens
    if total <= limit_tokens or not entries:
        return tuple(entries)
    pieces = split_entries(entries)
    questions = _find_questions(pieces)
    available_tokens = (limit_tokens - overhead_tokens) / token_ratio
    sizes = [sum(entry.tokens for entry in piece) for piece in pieces]
    lasting_indices = _find_lasting_pieces(pieces, sizes, questions[-1], available_tokens)
    lasting_sizes = [size if index in lasting_indices else 0 for index, size in enumerate(sizes)]
    starts = [0, *accumulate(sizes)]
    lasting_starts = [0, *accumulate(lasting_sizes)]
    cut = _find_fitting_cut(starts, lasting_starts, available_tokens)
    cut = _find_steady_cut(starts, cut, available_tokens)
    question = questions[cut]
    if question is not None and question < cut and question not in lasting_indices:
        free_tokens = available_tokens - sizes[question]
        rests = [
            starts[-1] - start + kept for start, kept in zip(starts, lasting_starts, strict=True)
        ]
        cut = _find_cut_in_turn(starts, rests, questions, cut, free_tokens)
        if questions[cut] == question:
            lasting_indices.add(question)
    return tuple(
        entry
        for index, piece in enumerate(pieces)
        if index >= cut or index in lasting_indices
        for entry in piece
    )


def _find_questions(pieces: Sequence[Sequence[TranscriptEntry]]) -> list[int | None]:
    """Return for each piece the index of the newest question up to it; None before the first."""
    questions: list[int | None] = []
    question = None
    for index, piece in enumerate(pieces):
        if any(entry.role == "user" for entry in piece):
            question = index
        questions.append(question)
    return questions


def _find_lasting_pieces(
    pieces: Sequence[Sequence[TranscriptEntry]],
    sizes: Sequence[int],
    newest_question: int | None,
    available_tokens: float,
) -> set[int]:
    """Return the indices of the pieces that stay wherever the cut is: question and pinned ones."""
    newest_index = len(pieces) - 1
    lasting_indices = {newest_index}
    if newest_question is not None:
        lasting_indices.add(newest_question)
    free_tokens = available_tokens - sum(sizes[index] for index in lasting_indices)
    for index in reversed(range(newest_index)):
        is_pinned = any(entry.pinned for entry in pieces[index])
        if is_pinned and index not in lasting_indices and sizes[index] <= free_tokens:
            lasting_indices.add(index)
            free_tokens -= sizes[index]
    return lasting_indices


def _find_fitting_cut(
    starts: Sequence[int], lasting_starts: Sequence[int], available_tokens: float
) -> int:
    """Return the index of the oldest piece from which everything fits, or of the newest one.

    `starts` are the tokens before each piece, and at its end those of all pieces;
    `lasting_starts` are the same of the pieces that stay even if they stand before the cut.
    """
    newest_index = len(starts) - 2
    for cut in range(newest_index):
        if starts[-1] - starts[cut] + lasting_starts[cut] <= available_tokens:
            return cut
    return newest_index


def _find_steady_cut(starts: Sequence[int], cut: int, available_tokens: float) -> int:
    """Return the first piece from a cut on that is the first one in its step of tokens.

    If there is none, the steps are halved. They are powers of two, or one and a half times one, so
    that a slightly different room does not move them.
    """
    step = _round_to_step(available_tokens / 2)
    while step:
        for steady_cut in range(cut, len(starts) - 1):
            if not steady_cut or starts[steady_cut] // step > starts[steady_cut - 1] // step:
                return steady_cut
        step //= 2
    return cut


def _find_cut_in_turn(
    starts: Sequence[int],
    rests: Sequence[int],
    questions: Sequence[int | None],
    cut: int,
    free_tokens: float,
) -> int:
    """Return the first piece of a turn from which everything fits beside the turn's question.

    `rests` are the tokens of what is sent with the cut before each piece. Where little of the turn
    would be left, it goes completely, up to the next question.
    """
    turn_end = next(index for index in range(cut, len(questions)) if questions[index] == index)
    while cut < turn_end and rests[cut] > free_tokens:
        cut = _find_steady_cut(starts, cut + 1, free_tokens)
    is_little_left = starts[turn_end] - starts[cut] < free_tokens * MIN_REST_OF_TURN
    return turn_end if is_little_left else cut


def _round_to_step(tokens: float) -> int:
    """Return the largest of 1, 2, 3, 4, 6, 8, 12, 16 … that is not above a number; 0 below 1."""
    if tokens < 1:
        return 0
    power: int = 1 << (int(tokens).bit_length() - 1)
    return power * 3 // 2 if power > 1 and power * 3 // 2 <= tokens else power


def shorten_results_to_fit(
    entries: Sequence[TranscriptEntry],
    *,
    limit_tokens: int,
    overhead_tokens: int = 0,
    token_ratio: float = 1.0,
) -> tuple[TranscriptEntry, ...]:
    """Return the entries with shorter tool results, if they do not fit in the limit.

    The numbers mean the same as in `drop_oldest_to_fit`. The longest results are shortened first,
    each to its beginning and its end; what cannot be made to fit is returned as small as it gets.
    """
    excess_tokens = sum(entry.tokens for entry in entries) - (
        (limit_tokens - overhead_tokens) / token_ratio
    )
    results = [entry for entry in entries if entry.role == "tool"]
    if excess_tokens <= 0 or not results:
        return tuple(entries)
    demands = [entry.tokens for entry in results]
    grants = share_evenly(demands, int(sum(demands) - excess_tokens))
    shorter_results = {
        entry.seq: _shorten_result(entry, grant)
        for entry, grant in zip(results, grants, strict=True)
        if grant < entry.tokens
    }
    return tuple(shorter_results.get(entry.seq, entry) for entry in entries)


def _shorten_result(entry: TranscriptEntry, tokens: int) -> TranscriptEntry:
    text = entry.content
    chars = max(MIN_RESULT_CHARS, len(text) * tokens // entry.tokens)
    half = (chars - MARKER_CHARS) // 2
    if len(text) <= chars:
        return entry
    marker = RESULT_MARKER.format(omitted=len(text) - 2 * half)
    shorter_text = text[:half] + marker + text[-half:]
    if len(shorter_text) >= len(text):
        return entry
    shorter_tokens = -(-entry.tokens * len(shorter_text) // len(text))
    return change_entry(entry, content=shorter_text, tokens=shorter_tokens)
