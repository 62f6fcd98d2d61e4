"""The shapes a summary may have, as data: what each asks the summarizer for, in words of our own. A new one is one entry here."""

from dataclasses import dataclass

REMARK = "Write plain factual sentences about the conversation, not a further message of it"


@dataclass(frozen=True, kw_only=True, slots=True)
class Template:
    """`asks` stands after the transcript; whoever uses it ends its last sentence. `headings`: those it must use, in order.

    `bare`: the same with the headings alone, for models that give back what each is for; empty where there are no headings.
    `numbered`: messages are told with their numbers. `rewrites`: it is given summaries, of which much may stay as it is.
    """

    asks: str
    bare: str = ""
    headings: tuple[str, ...] = ()
    numbered: bool = False
    rewrites: bool = False


_LENGTH = "Summarize the conversation between the transcript tags above in {min_words} to {max_words} words, in its own language. "
_EMPTY = 'Under a heading for which there is nothing, write "none". '

FACTS = Template(
    asks=_LENGTH
    + "Keep every name, decision, number, date, file, result and open task that later messages may need; leave out greetings. "
    + "{merge}"
    + REMARK,
)
"""FEAT-011, Compact Rules, 6: a concise factual summary."""


def _headed(
    sections: dict[str, str], *, lead: str = "", counted: bool = False, numbered: bool = False
) -> Template:
    """Headings with what each is for. That stands in brackets: small models give "TASK: what the user asked for" back as it is."""
    numbered_headings = [
        f"{number}. {heading}" if counted else heading
        for number, heading in enumerate(sections, start=1)
    ]
    begin = f"{_LENGTH}{lead}Use exactly these {len(sections)} headings, each on a line of its own, and below each what the conversation says"
    listed = "\n".join(
        f"{heading} ({meaning})"
        for heading, meaning in zip(numbered_headings, sections.values(), strict=True)
    )
    end = f"\n{_EMPTY}{{merge}}{REMARK}"
    return Template(
        asks=f"{begin} of the matter in brackets; leave the brackets out:\n{listed}{end}",
        bare=f"{begin} of it:\n" + "\n".join(numbered_headings) + end,
        headings=tuple(sections),
        numbered=numbered,
    )


NINE_SECTIONS = _headed(
    {
        "Primary Request and Intent": "what the user wants, in full",
        "Key Concepts": "subjects, technologies and rules that matter",
        "Files and Code": "each file looked at, changed or made, why, and the lines that matter",
        "Errors and Fixes": "what went wrong, how it was put right, what the user said about it",
        "Problem Solving": "what was solved, what was tried, what is still looked into",
        "User Messages": "what each message of the user asked for or told, none left out",
        "Pending Tasks": "what was asked for and is not done",
        "Current Work": "what was being done at the very end, exactly",
        "Next Step": "the one that follows from the newest request, if there is one",
    },
    counted=True,
)
"""NeuroLink, Stage 3: LLM Summarization; its document names no section, so these are those a working conversation needs."""

WORKSTREAM = _headed(
    {
        "KEY FACTS": "who and what, numbers, dates, decisions, constraints",
        "CONVERSATION FLOW": "what was talked about and done, in its order",
        "OPEN THREADS": "questions not answered, work not finished",
    },
    numbered=True,
)
"""Lota, 4. LLM Summarization and 3. Content Extraction (a numbered transcript)."""

TASK_STATE = _headed(
    {
        "TASK": "what the user asked for in the first place",
        "PROGRESS": "a numbered list of the steps done, each with its result",
        "REMAINING": "what is still to be done: exact items, counts, identifiers",
        "DATA": "values that are needed later: names, addresses, dates, identifiers, numbers, links, errors",
        "DECISIONS": "what was decided or confirmed",
    }
)
"""Wolffish, Step 4: One-Shot Summary."""

HANDOFF = _headed(
    {
        "PROGRESS": "what is done so far, and the decisions taken",
        "CONTEXT": "what must be known, limits, and what the user prefers",
        "REMAINING": "what is left to do, as clear next steps",
        "CRITICAL DATA": "values, examples and references without which the work cannot go on",
        "FILES": "which were changed, and how",
        "ERRORS": "what went wrong, and how it was resolved",
    },
    lead="It hands the work over to another language model, which goes on with it and knows nothing else. ",
)
"""BaseAgent, the compaction prompt."""

MEMORY = Template(
    asks="Between the transcript tags above are entries of a long-lived memory, the oldest first. Blend them into one text of at most "
    "{max_words} words, in their own language: keep every fact that may matter later, let a newer entry correct an older one, and say "
    "nothing twice. {merge}Write plain factual sentences",
    rewrites=True,
)
"""Lota, Memory Block Compaction."""

ROLLUP = Template(
    asks="Between the transcript tags above is a summary that has grown too long. Write it anew in {min_words} to {max_words} words, in "
    "its own language and with the headings it has: keep what later messages may need, merge what is said twice, drop what is settled and "
    "no longer matters. {merge}Write plain factual sentences",
    rewrites=True,
)
"""Lota, 6. Summary Rollup."""

MERGED_PARTS = "The transcript is told as summaries of its parts, in their order: make one summary of them all. "

TEMPLATES: dict[str, Template] = {
    "facts": FACTS,
    "nine_sections": NINE_SECTIONS,
    "workstream": WORKSTREAM,
    "task_state": TASK_STATE,
    "handoff": HANDOFF,
}
"""By the name that `summary.template` gives."""
