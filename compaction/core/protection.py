"""What the stages of a pass leave alone: the newest messages, the first ones, pinned ones, and what the policy names besides."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compaction.core.boundary import (
    find_newest_indices,
    find_start_within,
    find_tail_start,
    limit_start,
)
from compaction.core.budget import Budget
from compaction.core.estimate import estimate_overhead
from compaction.core.groups import stages
from compaction.core.policy import Policy
from compaction.core.tool_pairs import find_safe_cuts, split_at_cuts
from compaction.core.transcript import Transcript, TranscriptEntry


@dataclass(frozen=True, kw_only=True, slots=True)
class PassLimits:
    """How much a pass may keep. `scale`: real tokens an estimated one stands for; `cramped`: the context is over its threshold."""

    policy: Policy
    budget: Budget
    token_ratio: float = 1.0
    is_over_threshold: bool = False
    up_to_seq: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Protection:
    """Fixed before the first stage. `seqs` are the messages that no stage changes in place: the tail, the first, the pinned."""

    seqs: frozenset[int]
    knobs: stages.ProtectKnobs
    up_to_seq: int | None = None

    def covers(self, entry: TranscriptEntry, *, include_small: bool = True) -> bool:
        """Whether a stage must leave a message as it is. `small`: for its few words too, where the policy spares such."""
        if entry.seq in self.seqs or (self.up_to_seq is not None and entry.seq > self.up_to_seq):
            return True
        if entry.role == "tool" and (
            (self.knobs.errors and entry.is_error) or entry.tool_name in self.knobs.tools
        ):
            return True
        return include_small and len(entry.content) <= self.knobs.min_chars


@dataclass(frozen=True, kw_only=True, slots=True)
class SplitPoint:
    """One way to part a context: what is older than `boundary` may go, but for the messages of `kept`."""

    boundary: int
    exempt_seqs: frozenset[int]


def build_protection(transcript: Transcript, limits: PassLimits) -> Protection:
    """What a pass must not change. In a cramped context the tail is at most what there is room for (traps, 11)."""
    pass_view = _BoundedContext(transcript, limits)
    is_by_role = limits.policy.protect.kind == "per_role"
    indices: Sequence[int] = (
        pass_view.find_role_indices()
        if is_by_role
        else range(pass_view.find_tail(), len(pass_view.entries))
    )
    tail_seqs = frozenset(pass_view.entries[index].seq for index in indices)
    return Protection(
        seqs=tail_seqs | pass_view.pinned_seqs | pass_view.first_seqs,
        knobs=limits.policy.protect,
        up_to_seq=limits.up_to_seq,
    )


def find_splits(transcript: Transcript, limits: PassLimits) -> Iterator[SplitPoint]:
    """Where a context may be parted, the best place first. Only a cramped one may come down to less than its policy protects.

    A turn whose tools have just answered stays whole where it can: the model goes on with it, and needs the question.
    """
    pass_view = _BoundedContext(transcript, limits)
    policy_seqs = pass_view.first_seqs | pass_view.select_whole_pieces(
        pass_view.find_role_indices()
    )
    tail_start, base_exempt_seqs = pass_view.find_tail(), policy_seqs | pass_view.pinned_seqs
    candidates = [(min(tail_start, pass_view.find_open_turn(policy_seqs)), base_exempt_seqs)]
    if limits.is_over_threshold and pass_view.cuts:
        last_cut = pass_view.cuts[-1]
        shorter_candidates = (
            []
            if limits.policy.protect.kind == "token_ratio"
            else [
                (
                    max(
                        tail_start,
                        pass_view.find_start(pass_view.compute_tail_room(limits.budget.target)),
                    ),
                    base_exempt_seqs,
                )
            ]
        )
        candidates += [
            (tail_start, base_exempt_seqs),
            *shorter_candidates,
            (last_cut, base_exempt_seqs),
            (last_cut, pass_view.first_seqs | pass_view.pinned_seqs),
            (last_cut, pass_view.pinned_seqs),
        ]
    for start, exempt_seqs in candidates:
        index = limit_start(pass_view.entries, pass_view.cuts, start, limits.up_to_seq)
        if index:
            yield _build_split(transcript, index, exempt_seqs)


def _build_split(transcript: Transcript, index: int, exempt_seqs: frozenset[int]) -> SplitPoint:
    """What is older than a place may go. A place among messages that an earlier pass kept moves no boundary back: they are kept again."""
    start_seq = transcript.entries[index].seq
    boundary = max(start_seq, transcript.boundary_seq or 0)
    return SplitPoint(
        boundary=boundary,
        exempt_seqs=exempt_seqs
        | {entry.seq for entry in transcript.entries if start_seq <= entry.seq < boundary},
    )


class _BoundedContext:
    """A context under its limits, read once."""

    def __init__(self, transcript: Transcript, limits: PassLimits) -> None:
        self.entries, self.limits = transcript.entries, limits
        self.cuts = find_safe_cuts(self.entries)
        self.pieces = split_at_cuts(self.entries, self.cuts)
        self.overhead_tokens = int(
            limits.token_ratio * estimate_overhead(transcript, limits.policy)
        )
        self.pinned_seqs = frozenset(
            entry.seq
            for piece in self.pieces
            if any(member.pinned for member in piece)
            for entry in piece
        )
        self.first_seqs, self._first_tokens = self._select_first()

    def find_tail(self) -> int:
        """The index where the policy's tail begins; in a cramped context no earlier than there is room for.

        A tail by number that does not fit comes down to half of the room: one that only just fits would be over it again at once.
        """
        knobs, budget, token_ratio = (
            self.limits.policy.protect,
            self.limits.budget,
            self.limits.token_ratio,
        )
        start = find_tail_start(
            self.entries,
            self.cuts,
            knobs,
            protected_tokens=budget.protected_tokens,
            token_ratio=token_ratio,
        )
        if not self.limits.is_over_threshold:
            return start
        if (
            knobs.kind == "per_role"
        ):  # they may stand far apart: a tail that held them all would hold everything between them too
            return max(start, self.find_start(self.compute_tail_room(budget.target)))
        room = self.compute_tail_room(self._compute_max_tokens())
        if self.find_start(room) <= start or knobs.kind == "token_ratio":
            return max(start, self.find_start(room))
        return self.find_start(room // 2)

    def find_open_turn(self, policy_seqs: frozenset[int]) -> int:
        """The index where a turn begins whose tools have just answered; the newest safe place where none is open or there is no room."""
        total, policy_tokens = (
            0,
            sum(entry.tokens for entry in self.entries if entry.seq in policy_seqs),
        )
        for entry in reversed(
            self.entries if self.entries and self.entries[-1].role == "tool" else ()
        ):
            total += entry.tokens
            policy_tokens -= entry.tokens if entry.seq in policy_seqs else 0
            if entry.role == "user":
                turn_tokens = int(total * self.limits.token_ratio) + 1
                fits = turn_tokens + int(
                    policy_tokens * self.limits.token_ratio
                ) + self.limits.budget.summary_tokens <= self._compute_free_tokens(
                    self._compute_max_tokens()
                )
                return self.find_start(turn_tokens if fits else 0)
        return self.find_start(0)

    def find_start(self, tokens: int) -> int:
        """The index from which all fits in so many real tokens."""
        return find_start_within(self.entries, self.cuts, tokens, self.limits.token_ratio)

    def compute_tail_room(self, max_tokens: int) -> int:
        """Real tokens for the tail of a context of `most`: what a summary and the first messages leave, or half."""
        free_tokens = self._compute_free_tokens(max_tokens) - int(
            self._first_tokens * self.limits.token_ratio
        )
        return max(free_tokens - self.limits.budget.summary_tokens, free_tokens // 2)

    def find_role_indices(self) -> list[int]:
        """The indices that a policy protects by role; in a cramped context those of them, from the newest back, that there is room for."""
        if self.limits.policy.protect.kind != "per_role":
            return []
        indices = find_newest_indices(self.entries, self.limits.policy.protect)
        room, total = self.compute_tail_room(self._compute_max_tokens()), 0
        selection: list[int] = []
        for index in indices:
            total += self.entries[index].tokens
            if (
                self.limits.is_over_threshold
                and selection
                and total * self.limits.token_ratio > room
            ):
                break
            selection.append(index)
        return selection

    def select_whole_pieces(self, indices: Sequence[int]) -> frozenset[int]:
        """The seqs of those that can stay without dragging others along: all of their calls and results are among them."""
        seqs = {self.entries[index].seq for index in indices}
        whole_pieces = [
            piece for piece in self.pieces if seqs and all(entry.seq in seqs for entry in piece)
        ]
        return frozenset(entry.seq for piece in whole_pieces for entry in piece)

    def _select_first(self) -> tuple[frozenset[int], int]:
        """The first messages, pairs whole, and their tokens. In a cramped context they get half of the room, else they go like others."""
        first_entries: list[TranscriptEntry] = []
        for piece in self.pieces:
            if len(first_entries) >= self.limits.policy.protect.first:
                break
            first_entries += piece
        tokens = sum(entry.tokens for entry in first_entries)
        if (
            self.limits.is_over_threshold
            and tokens * self.limits.token_ratio
            > self._compute_free_tokens(self._compute_max_tokens()) // 2
        ):
            return frozenset(), 0
        return frozenset(entry.seq for entry in first_entries), tokens

    def _compute_max_tokens(self) -> int:
        """The most tokens that are not too many."""
        return self.limits.budget.trigger_tokens - 1

    def _compute_free_tokens(self, max_tokens: int) -> int:
        return max(0, max_tokens - self.overhead_tokens)
