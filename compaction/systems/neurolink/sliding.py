"""How far a window slides over a conversation: a share of the oldest messages at a time.

For example, 20 messages may go and `fraction` is 0.5: the first step leaves out 10, the next one 4
(half of the remaining 10 is 5, rounded down to an even number), until the rest fits.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

from compaction.core.policy import Policy
from compaction.core.systems import register_trimmer
from compaction.core.tool_pairs import find_safe_cuts, split_entries
from compaction.core.transcript import TranscriptEntry
from compaction.systems.kit.settings import TailKnobs
from compaction.systems.neurolink.settings import SlideKnobs

MIN_MESSAGES = 5  # nothing is left out of a shorter conversation


def find_slide_index(
    cuts: Sequence[int],
    *,
    start: int,
    stop: int,
    length: int,
    fraction: float,
    fits: Callable[[int], bool],
) -> int:
    """Return the index of the first message that stays; `start` if none is left out.

    Of `length` messages those from `start` up to `stop` may go. Each step leaves out `fraction` of
    the rest, at least 2 and an even number, so that questions and answers go on alternating, until
    `fits` accepts what stays from an index on. Only `cuts` are used, which separate no pair; if
    none of them gives an even number, complete pairs come before even numbers.
    (NeuroLink, Stage 4: Sliding Window Truncation)
    """
    valid_cuts = [cut for cut in cuts if start < cut <= stop]
    if length < MIN_MESSAGES or not valid_cuts:
        return start
    index = start
    while index < valid_cuts[-1] and not fits(index):
        step = max(2, int((length - index) * fraction) // 2 * 2)
        index = _find_next_cut(valid_cuts, index, index + step)
    return index


def _find_next_cut(valid_cuts: Sequence[int], index: int, limit: int) -> int:
    """Return the last cut up to `limit` at an even distance, or the nearest other one.

    The others are the first cut after the limit if its distance is even, else the last cut of any
    distance.
    """
    begin = bisect_right(valid_cuts, index)
    end = bisect_right(valid_cuts, limit)
    choices = [*reversed(valid_cuts[begin:end]), *valid_cuts[end : end + 1]]
    return next((cut for cut in choices if (cut - index) % 2 == 0), choices[0])


def slide_to_fit(
    entries: Sequence[TranscriptEntry],
    *,
    limit_tokens: int,
    first_count: int,
    fraction: float,
    overhead_tokens: int = 0,
    token_ratio: float = 1.0,
) -> tuple[TranscriptEntry, ...]:
    """Return the entries without shares of the oldest after the first ones, until the rest fits.

    The numbers mean the same as in `drop_oldest_to_fit`. Calls go with their results; pinned
    messages, the newest user message and the newest message stay. If the rest begins inside a turn,
    the question of that turn stays before it, if there is room. What cannot be made to fit is
    returned as small as it gets, and the caller decides.
    (NeuroLink, Stage 4: Sliding Window Truncation)
    """
    cuts = find_safe_cuts(entries)
    protected_seqs = _find_protected_seqs(entries, first_count)
    removable_tokens = [0 if entry.seq in protected_seqs else entry.tokens for entry in entries]
    savings = list(accumulate(removable_tokens, initial=0))
    total = sum(entry.tokens for entry in entries)
    removable_indices = (
        index for index, entry in enumerate(entries) if entry.seq not in protected_seqs
    )
    questions = _find_cut_questions(entries)

    def fits(index: int) -> bool:
        question = questions[index]
        question_tokens = 0 if question is None else removable_tokens[question]
        sent_tokens = total - savings[index] + question_tokens
        return sent_tokens * token_ratio + overhead_tokens <= limit_tokens

    start_index = find_slide_index(
        cuts,
        start=next(removable_indices, len(entries)),
        stop=cuts[-1] if cuts else 0,
        length=len(entries),
        fraction=fraction,
        fits=fits,
    )
    question = questions[start_index]
    if question is not None and fits(start_index):
        protected_seqs |= {entries[question].seq}
    return tuple(
        entry
        for index, entry in enumerate(entries)
        if index >= start_index or entry.seq in protected_seqs
    )


def _find_cut_questions(entries: Sequence[TranscriptEntry]) -> list[int | None]:
    """Return for each index the index of the user message whose turn a cut there divides.

    It is None before a user message, before the first one and at the end, where no turn is divided.
    """
    questions: list[int | None] = []
    newest_question = None
    for index, entry in enumerate(entries):
        if entry.role == "user":
            newest_question = index
        questions.append(None if newest_question == index else newest_question)
    return [*questions, None]


def _find_protected_seqs(entries: Sequence[TranscriptEntry], first_count: int) -> frozenset[int]:
    """Return the seqs of the first messages, the pinned ones and the newest user message.

    Each comes with the calls or results that it pairs with.
    """
    seqs: set[int] = set()
    message_count = 0
    newest_user_seq = max((entry.seq for entry in entries if entry.role == "user"), default=None)
    for piece in split_entries(entries):
        is_first = message_count < first_count
        if is_first or any(entry.pinned or entry.seq == newest_user_seq for entry in piece):
            seqs |= {entry.seq for entry in piece}
        message_count += len(piece)
    return frozenset(seqs)


def _trim(
    entries: Sequence[TranscriptEntry],
    policy: Policy,
    *,
    limit_tokens: int,
    overhead_tokens: int,
    token_ratio: float,
) -> tuple[TranscriptEntry, ...]:
    return slide_to_fit(
        entries,
        limit_tokens=limit_tokens,
        first_count=policy.get(TailKnobs).first,
        fraction=policy.get(SlideKnobs).fraction,
        overhead_tokens=overhead_tokens,
        token_ratio=token_ratio,
    )


def _get_notice(policy: Policy) -> str:
    return policy.get(SlideKnobs).marker


register_trimmer("slide_window", _trim, _get_notice)
