"""What a policy protects by number, by role or by turn, and where a context may be split then.

A tail by number may be larger than what the window can hold, for example "the last six messages"
when each has 3,000 tokens and the window 8,192.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compaction.core.protection import BoundedContext, PassLimits, SplitPoint, list_splits
from compaction.core.transcript import Transcript, TranscriptEntry
from compaction.systems.kit.settings import TailKnobs
from compaction.systems.kit.tails import find_newest_indices, find_tail_start


@dataclass(frozen=True, kw_only=True, slots=True)
class Protection:
    """What no stage may change in place. It is fixed before the first stage runs."""

    seqs: frozenset[int]
    """The tail, the first messages, the pinned ones and the question of an open turn."""
    knobs: TailKnobs
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


def build_protection(transcript: Transcript, limits: PassLimits) -> Protection:
    """Return what a pass must not change."""
    context = ProtectedContext(transcript, limits)
    if limits.policy.get(TailKnobs).kind == "per_role":
        indices: Sequence[int] = context.find_role_indices()
    else:
        indices = range(context.find_tail(), len(context.entries))
    tail_seqs = frozenset(context.entries[index].seq for index in indices)
    return Protection(
        seqs=tail_seqs | context.lasting_seqs | context.first_seqs,
        knobs=limits.policy.get(TailKnobs),
        up_to_seq=limits.up_to_seq,
    )


def find_splits(transcript: Transcript, limits: PassLimits) -> Iterator[SplitPoint]:
    """Yield the ways to split a context, the best one first.

    Only in a context that is over its threshold may less stay than the policy protects.
    """
    context = ProtectedContext(transcript, limits)
    yield from list_splits(context, _list_candidates(context, limits))


def _list_candidates(
    context: "ProtectedContext", limits: PassLimits
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
    if limits.policy.get(TailKnobs).kind != "token_ratio":
        target_start = context.find_start(context.compute_tail_space(limits.budget.target))
        yield max(tail_start, target_start), exempt_seqs
    newest_cut = context.cuts[-1]
    yield newest_cut, exempt_seqs
    yield newest_cut, context.first_seqs | context.lasting_seqs
    yield newest_cut, context.lasting_seqs


class ProtectedContext(BoundedContext):
    """A context whose first messages may be protected, and whose tail may be of another kind."""

    def __init__(self, transcript: Transcript, limits: PassLimits) -> None:
        super().__init__(transcript, limits)
        self.first_seqs, self.first_tokens = self._select_first()

    def find_tail(self) -> int:
        """Return the index where the tail begins: the policy's, or after the caller's message.

        A tail by number that does not fit is reduced to half of the room: one that only just fits
        would be over the threshold again with the next message.
        """
        knobs = self.limits.policy.get(TailKnobs)
        if knobs.kind == "token_ratio" or self.limits.up_to_seq is not None:
            return super().find_tail()
        start = find_tail_start(self.entries, self.cuts, self.limits.policy)
        if not self.limits.is_over_threshold:
            return start
        if knobs.kind == "per_role":
            # The newest of each role may be far apart. A tail that held them all would hold
            # everything between them too, so the room is what the target leaves.
            target_space = self.compute_tail_space(self.limits.budget.target)
            return max(start, self.find_start(target_space))
        space = self.compute_tail_space(self.max_tokens)
        return start if self.find_start(space) <= start else self.find_start(space // 2)

    def find_role_indices(self) -> list[int]:
        """Return the indices that a policy protects by role, from the newest back.

        In a context that is over its threshold, only those for which there is room.
        """
        if (
            self.limits.policy.get(TailKnobs).kind != "per_role"
            or self.limits.up_to_seq is not None
        ):
            return []
        indices = list(find_newest_indices(self.entries, self.limits.policy))
        if not self.limits.is_over_threshold:
            return indices
        space = self.compute_tail_space(self.max_tokens)
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
            piece_seqs = {entry.seq for entry in self.find_piece(index)}
            if piece_seqs <= seqs:
                whole_seqs |= piece_seqs
        return frozenset(whole_seqs)

    def _select_first(self) -> tuple[frozenset[int], int]:
        """Return the seqs of the protected first messages, and their estimated tokens.

        In a context that is over its threshold they may take half of the room. If they are larger,
        none of them is protected.
        """
        first_entries: list[TranscriptEntry] = []
        first_count = min(self.limits.policy.get(TailKnobs).first, len(self.entries))
        while len(first_entries) < first_count:
            first_entries += self.find_piece(len(first_entries))
        tokens = sum(entry.tokens for entry in first_entries)
        space = self.compute_free_tokens(self.max_tokens) // 2
        if self.limits.is_over_threshold and tokens * self.limits.token_ratio > space:
            return frozenset(), 0
        return frozenset(entry.seq for entry in first_entries), tokens
