"""What a pass may not change, and where it may split a context into an old and a new part.

The protected tail of a policy may be larger than what the window can hold. In a context that is
over its threshold the tail is therefore limited to the room that is left when the system prompt,
the tool definitions and a summary have theirs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from compaction.core.boundary import find_start_within, limit_start
from compaction.core.budget import Budget, take_share
from compaction.core.estimate import build_counter
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
class SplitPoint:
    """One way to split a context: messages before the boundary may go, except the exempt ones."""

    boundary: int
    exempt_seqs: frozenset[int]

    def is_old(self, entry: TranscriptEntry) -> bool:
        """Return whether a message may go."""
        return entry.seq < self.boundary and entry.seq not in self.exempt_seqs


def find_protected(transcript: Transcript, limits: PassLimits) -> frozenset[int]:
    """Return the seqs of the tail, of pinned messages and of the question of an open turn."""
    context = BoundedContext(transcript, limits)
    tail = context.entries[context.find_tail() :]
    return context.lasting_seqs | {entry.seq for entry in tail}


def find_splits(transcript: Transcript, limits: PassLimits) -> Iterator[SplitPoint]:
    """Yield the ways to split a context, the best one first.

    The later ones protect less: first a shorter tail, then only the newest message with its pair.
    Only in a context that is over its threshold may less stay than the policy protects. Pinned
    messages and the question of an open turn always stay.
    """
    context = BoundedContext(transcript, limits)
    tail_start = context.find_tail()
    # The model goes on with a turn whose tools have just answered, and needs its question.
    starts = [min(tail_start, context.find_turn_start())]
    if limits.is_over_threshold and context.cuts:
        starts += [tail_start, context.cuts[-1]]
    yield from list_splits(context, ((start, context.lasting_seqs) for start in starts))


def list_splits(
    context: "BoundedContext", candidates: Iterator[tuple[int, frozenset[int]]]
) -> Iterator[SplitPoint]:
    """Yield a split for each index where the new part may begin, with what is exempt before it."""
    for start, exempt_seqs in candidates:
        index = limit_start(context.entries, context.cuts, start, context.limits.up_to_seq)
        if index:
            yield _build_split(context.transcript, index, exempt_seqs)


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


class BoundedContext:
    """A context with its limits, and what is computed from both once."""

    # The messages at its beginning that stay, and their estimated tokens.
    first_seqs: frozenset[int] = frozenset()
    first_tokens = 0

    def __init__(self, transcript: Transcript, limits: PassLimits) -> None:
        self.transcript = transcript
        self.entries = transcript.entries
        self.limits = limits
        self.cuts = find_safe_cuts(self.entries)
        token_counter = build_counter(limits.policy, transcript.family)
        self.overhead_tokens = self.to_real_tokens(token_counter.count_overhead(transcript))
        self._turn = self._find_open_turn()
        self._question = self.find_piece(len(self.entries) - len(self._turn)) if self._turn else ()
        # What stays in any case: the model goes on with a question that it must be able to read.
        self.lasting_seqs = self._find_pinned() | {entry.seq for entry in self._question}

    def find_tail(self) -> int:
        """Return the index where the tail begins: the policy's, or after the caller's message.

        In a context that is over its threshold the tail takes no more than there is room for.
        """
        if self.limits.up_to_seq is not None:
            return self.find_start(0)
        start = self.find_start(self.limits.budget.protected_tokens)
        if not start and self.limits.is_asked_for:
            return self._find_share_of_small_talk()
        if not self.limits.is_over_threshold:
            return start
        return max(start, self.find_start(self.compute_tail_space(self.max_tokens)))

    def _find_share_of_small_talk(self) -> int:
        """Return where the policy's share of what is there begins.

        A conversation that is smaller than the policy's tail can be compacted by hand so, but only
        once: what a summary has left is not compacted further and further.
        """
        total = self.to_real_tokens(sum(entry.tokens for entry in self.entries))
        if self.transcript.summary is not None or total < MIN_WORTHWHILE_TOKENS:
            return 0
        return self.find_start(take_share(self.limits.policy.protect.ratio, total))

    def find_turn_start(self, policy_seqs: frozenset[int] = frozenset()) -> int:
        """Return the index where a turn begins whose tools have just answered.

        Returns the newest cut if no such turn is open, or if there is no room for it beside a
        summary and the messages that the policy protects elsewhere.
        """
        newest_cut = self.find_start(0)
        turn = self._turn
        if not turn:
            return newest_cut
        # One more than the turn takes, because the ratio of real tokens is rounded down.
        turn_tokens = self.to_real_tokens(sum(entry.tokens for entry in turn)) + 1
        turn_seqs = {entry.seq for entry in turn}
        elsewhere_tokens = self.to_real_tokens(
            sum(
                entry.tokens
                for entry in self.entries
                if entry.seq in policy_seqs and entry.seq not in turn_seqs
            )
        )
        needed_tokens = turn_tokens + elsewhere_tokens + self.limits.budget.summary_tokens
        if needed_tokens > self.compute_free_tokens(self.max_tokens):
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
        fixed_tokens = self.to_real_tokens(self.first_tokens + question_tokens)
        free_tokens = max(0, self.compute_free_tokens(max_tokens) - fixed_tokens)
        return max(free_tokens - self.limits.budget.summary_tokens, free_tokens // 2)

    def _find_pinned(self) -> frozenset[int]:
        """Return the seqs of the pinned messages, each with the calls or results it pairs with."""
        pinned_indices = [index for index, entry in enumerate(self.entries) if entry.pinned]
        return frozenset(entry.seq for index in pinned_indices for entry in self.find_piece(index))

    def _find_open_turn(self) -> Sequence[TranscriptEntry]:
        """Return the messages of the newest turn if it ends with a tool result or a tool call."""
        if not self.entries or not (self.entries[-1].role == "tool" or self.entries[-1].calls):
            return ()
        for index in range(len(self.entries) - 1, -1, -1):
            if self.entries[index].role == "user":
                return self.entries[index:]
        return ()

    def find_piece(self, index: int) -> Sequence[TranscriptEntry]:
        """Return a message with those that it cannot be separated from."""
        return find_piece(self.entries, self.cuts, index)

    @property
    def max_tokens(self) -> int:
        """The most tokens that are not too many."""
        return self.limits.budget.trigger_tokens - 1

    def compute_free_tokens(self, max_tokens: int) -> int:
        """Return what the overhead leaves of so many real tokens."""
        return max(0, max_tokens - self.overhead_tokens)

    def to_real_tokens(self, estimate: int) -> int:
        """Convert estimated tokens to real ones, rounded down."""
        return int(estimate * self.limits.token_ratio)
