"""What a pass may not change, and where it may split a context into an old and a new part.

The protected tail of a policy may be larger than what the window can hold, for example "the last
six messages" when each has 3,000 tokens and the window 8,192. In a context that is over its
threshold the tail is therefore limited to the room that is left when the system prompt, the tool
definitions, the first messages and a summary have theirs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from compaction.core.boundary import (
    find_newest_indices,
    find_start_within,
    find_tail_start,
    limit_start,
)
from compaction.core.budget import Budget, take_share
from compaction.core.estimate import build_counter
from compaction.core.knobs import ProtectKnobs
from compaction.core.policy import Policy
from compaction.core.tool_pairs import find_piece, find_safe_cuts
from compaction.core.transcript import Transcript, TranscriptEntry

MIN_WORTHWHILE_TOKENS = 500  # of messages; a summary of less would hardly be shorter


@dataclass(frozen=True, kw_only=True, slots=True)
class PassLimits:
    """How much a pass may keep."""

    policy: Policy
    budget: Budget
    token_ratio: float = 1.0
    """Real tokens that one estimated token stands for."""
    is_over_threshold: bool = False
    """Whether room must be made, even by less than the policy's protection."""
    is_asked_for: bool = False
    """Whether room is made although the context is not over its threshold."""
    up_to_seq: int | None = None
    """The protected tail begins after this message, if the caller says so."""
    is_rewrite: bool = False
    """Whether a summary takes the place of the one in force, which saves what that one did."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Protection:
    """What no stage may change in place. It is fixed before the first stage runs."""

    seqs: frozenset[int]
    """The tail, the first messages, the pinned ones and the question of an open turn."""
    knobs: ProtectKnobs
    up_to_seq: int | None = None

    def covers(self, entry: TranscriptEntry, *, include_small: bool = True) -> bool:
        """Return whether a stage must leave a message as it is.

        `include_small` also covers messages with few characters, which the policy may protect.
        """
        is_too_new = self.up_to_seq is not None and entry.seq > self.up_to_seq
        if is_too_new or entry.seq in self.seqs:
            return True
        if entry.role == "tool":
            is_protected_error = self.knobs.errors and entry.is_error
            if is_protected_error or entry.tool_name in self.knobs.tools:
                return True
        return include_small and len(entry.content) <= self.knobs.min_chars


@dataclass(frozen=True, kw_only=True, slots=True)
class SplitPoint:
    """One way to split a context: messages before the boundary may go, except the exempt ones."""

    boundary: int
    exempt_seqs: frozenset[int]


def build_protection(transcript: Transcript, limits: PassLimits) -> Protection:
    """Return what a pass must not change."""
    context = _BoundedContext(transcript, limits)
    if limits.policy.protect.kind == "per_role":
        indices: Sequence[int] = context.find_role_indices()
    else:
        indices = range(context.find_tail(), len(context.entries))
    tail_seqs = frozenset(context.entries[index].seq for index in indices)
    return Protection(
        seqs=tail_seqs | context.lasting_seqs | context.first_seqs,
        knobs=limits.policy.protect,
        up_to_seq=limits.up_to_seq,
    )


def find_splits(transcript: Transcript, limits: PassLimits) -> Iterator[SplitPoint]:
    """Yield the ways to split a context, the best one first.

    Only in a context that is over its threshold may less stay than the policy protects.
    """
    context = _BoundedContext(transcript, limits)
    for start, exempt_seqs in _list_split_candidates(context, limits):
        index = limit_start(context.entries, context.cuts, start, limits.up_to_seq)
        if index:
            yield _build_split(transcript, index, exempt_seqs)


def _list_split_candidates(
    context: "_BoundedContext", limits: PassLimits
) -> Iterator[tuple[int, frozenset[int]]]:
    """Yield pairs of the index where the new part begins, and the exempt messages before it.

    The later ones protect less: first a shorter tail, then only the newest message with its pair,
    then fewer exempt messages. Pinned messages and the question of an open turn always stay.
    """
    role_seqs = context.select_whole_pieces(context.find_role_indices())
    policy_seqs = context.first_seqs | role_seqs
    exempt_seqs = policy_seqs | context.lasting_seqs
    tail_start = context.find_tail()
    # The model goes on with a turn whose tools have just answered, and needs its question.
    yield min(tail_start, context.find_turn_start(policy_seqs)), exempt_seqs
    if not limits.is_over_threshold or not context.cuts:
        return
    yield tail_start, exempt_seqs
    if limits.policy.protect.kind != "token_ratio":
        target_start = context.find_start(context.compute_tail_space(limits.budget.target))
        yield max(tail_start, target_start), exempt_seqs
    newest_cut = context.cuts[-1]
    yield newest_cut, exempt_seqs
    yield newest_cut, context.first_seqs | context.lasting_seqs
    yield newest_cut, context.lasting_seqs


def _build_split(transcript: Transcript, index: int, exempt_seqs: frozenset[int]) -> SplitPoint:
    """Split before an index, but never move the boundary back.

    If the index is among messages that an earlier pass exempted, the boundary stays where it is,
    and the exempted messages from the index on stay exempt.
    """
    start_seq = transcript.entries[index].seq
    boundary = max(start_seq, transcript.boundary_seq or 0)
    newer_entries = takewhile(lambda entry: entry.seq < boundary, transcript.entries[index:])
    still_exempt = {entry.seq for entry in newer_entries}
    return SplitPoint(boundary=boundary, exempt_seqs=exempt_seqs | still_exempt)


class _BoundedContext:
    """A context with its limits, and what is computed from both once."""

    def __init__(self, transcript: Transcript, limits: PassLimits) -> None:
        self.entries = transcript.entries
        self._has_summary = transcript.summary is not None
        self.limits = limits
        self.cuts = find_safe_cuts(self.entries)
        token_counter = build_counter(limits.policy, transcript.family)
        self.overhead_tokens = self._to_real_tokens(token_counter.count_overhead(transcript))
        self._turn = self._find_open_turn()
        self._question = self._find_piece(len(self.entries) - len(self._turn)) if self._turn else ()
        # What stays in any case: the model goes on with a question that it must be able to read.
        self.lasting_seqs = self._find_pinned() | {entry.seq for entry in self._question}
        self.first_seqs, self._first_tokens = self._select_first()

    def find_tail(self) -> int:
        """Return the index where the tail begins: the policy's, or after the caller's message.

        In a context that is over its threshold the tail takes no more than there is room for. A
        tail by number that does not fit is reduced to half of the room: one that only just fits
        would be over the threshold again with the next message.
        """
        knobs = self.limits.policy.protect
        budget = self.limits.budget
        if self.limits.up_to_seq is not None:
            return self.find_start(0)
        start = find_tail_start(
            self.entries,
            self.cuts,
            knobs,
            protected_tokens=budget.protected_tokens,
            token_ratio=self.limits.token_ratio,
        )
        if not start and self.limits.is_asked_for and knobs.kind == "token_ratio":
            return self._find_share_of_small_talk()
        if not self.limits.is_over_threshold:
            return start
        if knobs.kind == "per_role":
            # The newest of each role may be far apart. A tail that held them all would hold
            # everything between them too, so the room is what the target leaves.
            return max(start, self.find_start(self.compute_tail_space(budget.target)))
        space = self.compute_tail_space(self._max_tokens)
        earliest = self.find_start(space)
        if earliest <= start or knobs.kind == "token_ratio":
            return max(start, earliest)
        return self.find_start(space // 2)

    def _find_share_of_small_talk(self) -> int:
        """Return where the policy's share of what is there begins.

        A conversation that is smaller than the policy's tail can be compacted by hand so, but only
        once: what a summary has left is not compacted further and further.
        """
        total = self._to_real_tokens(sum(entry.tokens for entry in self.entries))
        if self._has_summary or total < MIN_WORTHWHILE_TOKENS:
            return 0
        return self.find_start(take_share(self.limits.policy.protect.ratio, total))

    def find_turn_start(self, policy_seqs: frozenset[int]) -> int:
        """Return the index where a turn begins whose tools have just answered.

        Returns the newest cut if no such turn is open, or if there is no room for it beside a
        summary and the messages that the policy protects elsewhere.
        """
        newest_cut = self.find_start(0)
        turn = self._turn
        if not turn:
            return newest_cut
        # One more than the turn takes, because the ratio of real tokens is rounded down.
        turn_tokens = self._to_real_tokens(sum(entry.tokens for entry in turn)) + 1
        turn_seqs = {entry.seq for entry in turn}
        elsewhere_tokens = self._to_real_tokens(
            sum(
                entry.tokens
                for entry in self.entries
                if entry.seq in policy_seqs and entry.seq not in turn_seqs
            )
        )
        needed_tokens = turn_tokens + elsewhere_tokens + self.limits.budget.summary_tokens
        if needed_tokens > self._compute_free_tokens(self._max_tokens):
            return newest_cut
        return self.find_start(turn_tokens)

    def find_start(self, tokens: int) -> int:
        """Return the cut from which everything fits in so many real tokens, or the newest cut."""
        return find_start_within(self.entries, self.cuts, tokens, self.limits.token_ratio)

    def compute_tail_space(self, max_tokens: int) -> int:
        """Return the real tokens for the tail of a context of at most `max_tokens`.

        That is what the overhead, the first messages, the question of an open turn and a summary
        leave; or half of what all but the summary leave, if one of full length would take more than
        the other half.
        """
        question_tokens = sum(
            entry.tokens for entry in self._question if entry.seq not in self.first_seqs
        )
        fixed_tokens = self._to_real_tokens(self._first_tokens + question_tokens)
        free_tokens = max(0, self._compute_free_tokens(max_tokens) - fixed_tokens)
        return max(free_tokens - self.limits.budget.summary_tokens, free_tokens // 2)

    def find_role_indices(self) -> list[int]:
        """Return the indices that a policy protects by role, from the newest back.

        In a context that is over its threshold, only those for which there is room.
        """
        if self.limits.policy.protect.kind != "per_role" or self.limits.up_to_seq is not None:
            return []
        indices = list(find_newest_indices(self.entries, self.limits.policy.protect))
        if not self.limits.is_over_threshold:
            return indices
        space = self.compute_tail_space(self._max_tokens)
        total = 0
        selection: list[int] = []
        for index in indices:
            total += self.entries[index].tokens
            if selection and total * self.limits.token_ratio > space:
                break
            selection.append(index)
        return selection

    def select_whole_pieces(self, indices: Sequence[int]) -> frozenset[int]:
        """Return the seqs of those messages whose calls and results are all among them too."""
        seqs = {self.entries[index].seq for index in indices}
        whole_seqs: set[int] = set()
        for index in indices:
            piece_seqs = {entry.seq for entry in self._find_piece(index)}
            if piece_seqs <= seqs:
                whole_seqs |= piece_seqs
        return frozenset(whole_seqs)

    def _find_pinned(self) -> frozenset[int]:
        """Return the seqs of the pinned messages, each with the calls or results it pairs with."""
        pinned_indices = [index for index, entry in enumerate(self.entries) if entry.pinned]
        return frozenset(entry.seq for index in pinned_indices for entry in self._find_piece(index))

    def _select_first(self) -> tuple[frozenset[int], int]:
        """Return the seqs of the protected first messages, and their estimated tokens.

        In a context that is over its threshold they may take half of the room. If they are larger,
        none of them is protected.
        """
        first_entries: list[TranscriptEntry] = []
        first_count = min(self.limits.policy.protect.first, len(self.entries))
        while len(first_entries) < first_count:
            first_entries += self._find_piece(len(first_entries))
        tokens = sum(entry.tokens for entry in first_entries)
        space = self._compute_free_tokens(self._max_tokens) // 2
        if self.limits.is_over_threshold and tokens * self.limits.token_ratio > space:
            return frozenset(), 0
        return frozenset(entry.seq for entry in first_entries), tokens

    def _find_open_turn(self) -> Sequence[TranscriptEntry]:
        """Return the messages of the newest turn if it ends with a tool result or a tool call."""
        if not self.entries or not (self.entries[-1].role == "tool" or self.entries[-1].calls):
            return ()
        for index in range(len(self.entries) - 1, -1, -1):
            if self.entries[index].role == "user":
                return self.entries[index:]
        return ()

    def _find_piece(self, index: int) -> Sequence[TranscriptEntry]:
        return find_piece(self.entries, self.cuts, index)

    @property
    def _max_tokens(self) -> int:
        """The most tokens that are not too many."""
        return self.limits.budget.trigger_tokens - 1

    def _compute_free_tokens(self, max_tokens: int) -> int:
        return max(0, max_tokens - self.overhead_tokens)

    def _to_real_tokens(self, estimate: int) -> int:
        return int(estimate * self.limits.token_ratio)
