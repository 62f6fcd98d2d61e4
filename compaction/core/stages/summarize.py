"""Replace what is older than the protected tail by one summary, which takes in the one before."""

from dataclasses import replace

from compaction.core.boundary import choose
from compaction.core.estimate import summary_tokens, tokens_of
from compaction.core.policy import Policy
from compaction.core.stages.base import Draft, SummaryFailed, SummaryTask, Work
from compaction.core.tool_pairs import groups
from compaction.core.transcript import Entry


def summarize(draft: Draft, work: Work) -> Draft:
    """One call of the summarizer, or none when nothing is older than the tail. Raises SummaryFailed."""
    before = draft.transcript
    boundary = _boundary(draft, work)
    if boundary is None:
        return draft
    older = tuple(entry for entry in before.entries if entry.seq < boundary)
    pinned = _pinned(older)
    compacted = tuple(entry.seq for entry in older if entry.seq not in pinned)
    if not compacted:
        return draft
    task = SummaryTask(previous=before.summary, entries=older, instructions=work.instructions, max_tokens=work.budget.summary)
    text = work.summarize(task).strip()
    complaint = objection(text, task, work.policy)
    if complaint:
        raise SummaryFailed(complaint)
    kept = tuple(entry for entry in before.entries if entry.seq in pinned or entry.seq >= boundary)
    return replace(
        draft,
        transcript=replace(before, entries=kept, summary=text),
        compacted=(*draft.compacted, *compacted),
        kept_verbatim=(*draft.kept_verbatim, *sorted(pinned)),
    )


def objection(text: str, task: SummaryTask, policy: Policy) -> str | None:
    """Why a text is no summary of what the task gave, in one sentence; None when it is one. A summarizer that tries again asks this too."""
    if not text.strip():
        return "The summary is empty."
    source = summary_tokens(task.previous, policy) + sum(entry.tokens for entry in task.entries)
    size = tokens_of(len(text.strip()), policy)
    return f"The summary ({size} tokens) is not smaller than what it replaces ({source} tokens)." if size >= source else None


def _boundary(draft: Draft, work: Work) -> int | None:
    """The policy's tail; in a cramped context a shorter one, at last the newest message: over the threshold there is work to do."""
    budget, scale, entries = work.budget, work.measure.scale, draft.transcript.entries
    room = max(0, budget.threshold - int(scale * draft.transcript.overhead_tokens))
    shorter = min(budget.protected, max(room - budget.summary, room // 2))
    turn = _open_turn(entries, scale)
    whole = turn if turn + budget.summary <= room else 0
    tails = [max(shorter, whole), shorter, 0] if work.cramped else [max(budget.protected, whole)]
    chosen = (choose(entries, protected=tail, scale=scale, up_to_seq=work.up_to_seq) for tail in tails)
    return next((boundary for boundary in chosen if boundary is not None), None)


def _open_turn(entries: tuple[Entry, ...], scale: float) -> int:
    """Real tokens of a turn whose tools have just answered: the model goes on with it, and needs the question. 0 when none is open."""
    total = 0
    for entry in reversed(entries if entries and entries[-1].role == "tool" else ()):
        total += entry.tokens
        if entry.role == "user":
            return int(total * scale) + 1
    return 0


def _pinned(entries: tuple[Entry, ...]) -> frozenset[int]:
    """The seqs that stay verbatim: pinned messages, each with the calls or results it pairs with."""
    return frozenset(entry.seq for group in groups(entries) if any(each.pinned for each in group) for entry in group)
