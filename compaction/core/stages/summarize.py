"""Replace what is older than the protected tail by one summary, which takes in the one before; or put it beside what was cut short."""

from collections.abc import Iterable
from dataclasses import replace

from compaction.core.estimate import estimated, summary_tokens, weigh
from compaction.core.policy import Policy
from compaction.core.protection import Split, splits
from compaction.core.stages.base import Draft, SummaryFailed, SummaryTask, Work
from compaction.core.transcript import Entry


def summarize(draft: Draft, work: Work) -> Draft:
    """One call of the summarizer, or none when nothing is older than the tail. Raises SummaryFailed.

    Where the policy summarizes originals and messages were cut to excerpts, these stay and the summary of what they were is added
    (Wolffish, Steps 2 to 5): it tells of the whole conversation, the tail too, because it says what is done and what remains. Only when
    the excerpts leave the context over its target does the boundary move as well.
    """
    beside = owed(draft, work.policy) and _pays(draft, work)
    if beside and work.fits(draft.transcript):
        return _beside(draft, work)
    for split in splits(draft.transcript, work.limits):
        gone = tuple(
            entry.seq
            for entry in draft.transcript.entries
            if entry.seq < split.boundary and entry.seq not in split.kept
        )
        if gone:
            return _instead(draft, work, split, gone)
    return _beside(draft, work) if beside else draft


def owed(draft: Draft, policy: Policy) -> bool:
    """Whether this pass cut messages whose whole text the policy wants summarized."""
    return policy.summary.source == "originals" and any(
        edit.kind == "excerpted" for edit in draft.edits
    )


def objection(text: str, task: SummaryTask, policy: Policy) -> str | None:
    """Why a text is no summary of what the task gave, in one sentence; None when it is one. A summarizer that tries again asks this too."""
    if not text.strip():
        return "The summary is empty."
    source = summary_tokens(task.previous, policy) + sum(entry.tokens for entry in task.entries)
    size = summary_tokens(text.strip(), policy)
    return (
        f"The summary ({size} tokens) is not smaller than what it replaces ({source} tokens)."
        if size >= source
        else None
    )


def _pays(draft: Draft, work: Work) -> bool:
    """Whether a summary of full length beside the excerpts leaves the context smaller than it was."""
    before = estimated(replace(draft.transcript, summary=None), work.policy)
    return work.size(before + work.budget.summary) < work.measure.tokens


def _beside(draft: Draft, work: Work) -> Draft:
    entries = draft.transcript.entries
    text = _asked(draft, work, entries)
    return replace(
        draft, transcript=replace(draft.transcript, summary=text, summarized_up_to=entries[-1].seq)
    )


def _instead(draft: Draft, work: Work, split: Split, gone: tuple[int, ...]) -> Draft:
    before = draft.transcript
    whole = owed(draft, work.policy)
    text = _asked(
        draft, work, (entry for entry in before.entries if whole or entry.seq < split.boundary)
    )
    told = before.entries[-1].seq if whole else before.told_up_to
    after = replace(
        before,
        entries=tuple(
            entry
            for entry in before.entries
            if entry.seq >= split.boundary or entry.seq in split.kept
        ),
        summary=text,
        boundary_seq=split.boundary,
        summarized_up_to=told if told >= split.boundary else None,
    )
    return replace(draft, transcript=after, compacted=(*draft.compacted, *gone))


def _asked(draft: Draft, work: Work, entries: Iterable[Entry]) -> str:
    """A summary of messages and of the one before; that one, where it tells of them all. Raises SummaryFailed."""
    previous, told = draft.transcript.summary, draft.transcript.told_up_to
    untold = tuple(entry for entry in entries if entry.seq > told)
    if previous and not untold:
        return previous
    task = SummaryTask(
        previous=previous,
        entries=_sources(draft, work, untold),
        instructions=work.instructions,
        max_tokens=work.budget.summary,
    )
    text = work.summarize(task).strip()
    complaint = objection(text, task, work.policy)
    if complaint:
        raise SummaryFailed(complaint)
    return text


def _sources(draft: Draft, work: Work, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """The messages as the summarizer is given them: as they are shown, or as they were before any edit."""
    if work.policy.summary.source == "shown":
        return entries
    whole = tuple(
        entry if entry.original is None else replace(entry, content=entry.original, tokens=0)
        for entry in entries
    )
    return weigh(replace(draft.transcript, entries=whole), work.policy).entries
