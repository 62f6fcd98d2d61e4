"""What the stages of a pass leave alone: the newest messages, the first ones, pinned ones, and what the policy names besides."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compaction.core.boundary import limited, newest, wanted, within
from compaction.core.budget import Budget
from compaction.core.estimate import overhead
from compaction.core.groups import stages
from compaction.core.policy import Policy
from compaction.core.tool_pairs import pieces, safe_cuts
from compaction.core.transcript import Entry, Transcript


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How much a pass may keep. `scale`: real tokens an estimated one stands for; `cramped`: the context is over its threshold."""

    policy: Policy
    budget: Budget
    scale: float = 1.0
    cramped: bool = False
    up_to_seq: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Protection:
    """Fixed before the first stage. `seqs` are the messages that no stage changes in place: the tail, the first, the pinned."""

    seqs: frozenset[int]
    knobs: stages.Protect
    up_to_seq: int | None = None

    def covers(self, entry: Entry, *, small: bool = True) -> bool:
        """Whether a stage must leave a message as it is. `small`: for its few words too, where the policy spares such."""
        if entry.seq in self.seqs or (self.up_to_seq is not None and entry.seq > self.up_to_seq):
            return True
        if entry.role == "tool" and (
            (self.knobs.errors and entry.is_error) or entry.tool_name in self.knobs.tools
        ):
            return True
        return small and len(entry.content) <= self.knobs.min_chars


@dataclass(frozen=True, kw_only=True, slots=True)
class Split:
    """One way to part a context: what is older than `boundary` may go, but for the messages of `kept`."""

    boundary: int
    kept: frozenset[int]


def protect(transcript: Transcript, limits: Limits) -> Protection:
    """What a pass must not change. In a cramped context the tail is at most what there is room for (traps, 11)."""
    view = _View(transcript, limits)
    by_role = limits.policy.protect.kind == "per_role"
    indices: Sequence[int] = (
        view.of_each_role() if by_role else range(view.tail(), len(view.entries))
    )
    tail = frozenset(view.entries[index].seq for index in indices)
    return Protection(
        seqs=tail | view.pinned | view.first,
        knobs=limits.policy.protect,
        up_to_seq=limits.up_to_seq,
    )


def splits(transcript: Transcript, limits: Limits) -> Iterator[Split]:
    """Where a context may be parted, the best place first. Only a cramped one may come down to less than its policy protects.

    A turn whose tools have just answered stays whole where it can: the model goes on with it, and needs the question.
    """
    view = _View(transcript, limits)
    named = view.first | view.whole(view.of_each_role())
    tail, held = view.tail(), named | view.pinned
    places = [(min(tail, view.open_turn(named)), held)]
    if limits.cramped and view.cuts:
        last = view.cuts[-1]
        shorter = (
            []
            if limits.policy.protect.kind == "token_ratio"
            else [(max(tail, view.within(view.left(limits.budget.target))), held)]
        )
        places += [
            (tail, held),
            *shorter,
            (last, held),
            (last, view.first | view.pinned),
            (last, view.pinned),
        ]
    for place, kept in places:
        index = limited(view.entries, view.cuts, place, limits.up_to_seq)
        if index:
            yield _split(transcript, index, kept)


def _split(transcript: Transcript, index: int, kept: frozenset[int]) -> Split:
    """What is older than a place may go. A place among messages that an earlier pass kept moves no boundary back: they are kept again."""
    place = transcript.entries[index].seq
    boundary = max(place, transcript.boundary_seq or 0)
    return Split(
        boundary=boundary,
        kept=kept | {entry.seq for entry in transcript.entries if place <= entry.seq < boundary},
    )


class _View:
    """A context under its limits, read once."""

    def __init__(self, transcript: Transcript, limits: Limits) -> None:
        self.entries, self.limits = transcript.entries, limits
        self.cuts = safe_cuts(self.entries)
        self.pieces = pieces(self.entries, self.cuts)
        self.overhead = int(limits.scale * overhead(transcript, limits.policy))
        self.pinned = frozenset(
            e.seq for piece in self.pieces if any(each.pinned for each in piece) for e in piece
        )
        self.first, self._first_tokens = self._first()

    def tail(self) -> int:
        """The index where the policy's tail begins; in a cramped context no earlier than there is room for.

        A tail by number that does not fit comes down to half of the room: one that only just fits would be over it again at once.
        """
        knobs, budget, scale = self.limits.policy.protect, self.limits.budget, self.limits.scale
        start = wanted(self.entries, self.cuts, knobs, protected=budget.protected, scale=scale)
        if not self.limits.cramped:
            return start
        if (
            knobs.kind == "per_role"
        ):  # they may stand far apart: a tail that held them all would hold everything between them too
            return max(start, self.within(self.left(budget.target)))
        room = self.left(self._threshold())
        if self.within(room) <= start or knobs.kind == "token_ratio":
            return max(start, self.within(room))
        return self.within(room // 2)

    def open_turn(self, named: frozenset[int]) -> int:
        """The index where a turn begins whose tools have just answered; the newest safe place where none is open or there is no room."""
        total, beside = 0, sum(entry.tokens for entry in self.entries if entry.seq in named)
        for entry in reversed(
            self.entries if self.entries and self.entries[-1].role == "tool" else ()
        ):
            total += entry.tokens
            beside -= entry.tokens if entry.seq in named else 0
            if entry.role == "user":
                turn = int(total * self.limits.scale) + 1
                fits = turn + int(
                    beside * self.limits.scale
                ) + self.limits.budget.summary <= self._free(self._threshold())
                return self.within(turn if fits else 0)
        return self.within(0)

    def within(self, tokens: int) -> int:
        """The index from which all fits in so many real tokens."""
        return within(self.entries, self.cuts, tokens, self.limits.scale)

    def left(self, most: int) -> int:
        """Real tokens for the tail of a context of `most`: what a summary and the first messages leave, or half."""
        free = self._free(most) - int(self._first_tokens * self.limits.scale)
        return max(free - self.limits.budget.summary, free // 2)

    def of_each_role(self) -> list[int]:
        """The indices that a policy protects by role; in a cramped context those of them, from the newest back, that there is room for."""
        if self.limits.policy.protect.kind != "per_role":
            return []
        indices = newest(self.entries, self.limits.policy.protect)
        room, total = self.left(self._threshold()), 0
        kept: list[int] = []
        for index in indices:
            total += self.entries[index].tokens
            if self.limits.cramped and kept and total * self.limits.scale > room:
                break
            kept.append(index)
        return kept

    def whole(self, indices: Sequence[int]) -> frozenset[int]:
        """The seqs of those that can stay without dragging others along: all of their calls and results are among them."""
        seqs = {self.entries[index].seq for index in indices}
        found = [
            piece for piece in self.pieces if seqs and all(entry.seq in seqs for entry in piece)
        ]
        return frozenset(entry.seq for piece in found for entry in piece)

    def _first(self) -> tuple[frozenset[int], int]:
        """The first messages, pairs whole, and their tokens. In a cramped context they get half of the room, else they go like others."""
        kept: list[Entry] = []
        for piece in self.pieces:
            if len(kept) >= self.limits.policy.protect.first:
                break
            kept += piece
        tokens = sum(entry.tokens for entry in kept)
        if self.limits.cramped and tokens * self.limits.scale > self._free(self._threshold()) // 2:
            return frozenset(), 0
        return frozenset(entry.seq for entry in kept), tokens

    def _threshold(self) -> int:
        """The most tokens that are not too many."""
        return self.limits.budget.first_over - 1

    def _free(self, most: int) -> int:
        return max(0, most - self.overhead)
