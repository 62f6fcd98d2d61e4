"""The shapes a summary may have, as data: what each asks the summarizer for, in words of our own. A new one is one entry here."""

from dataclasses import dataclass

REMARK = "Write plain factual sentences about the conversation, not a further message of it"


@dataclass(frozen=True, kw_only=True, slots=True)
class Template:
    """`asks` stands after the transcript; whoever uses it ends its last sentence. `headings`: those it must use, in order.

    `numbered`: messages are told with their numbers. `rewrites`: it is given summaries, of which much may stay as it is.
    """

    asks: str
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

NINE_SECTIONS = Template(
    asks=_LENGTH + "Use exactly these nine headings, each on a line of its own:\n"
    "1. Primary Request and Intent: what the user wants, in full\n"
    "2. Key Concepts: subjects, technologies and rules that matter\n"
    "3. Files and Code: each file looked at, changed or made, why, and the lines that matter\n"
    "4. Errors and Fixes: what went wrong, how it was put right, what the user said about it\n"
    "5. Problem Solving: what was solved, what was tried, what is still looked into\n"
    "6. User Messages: what each message of the user asked for or told, none left out\n"
    "7. Pending Tasks: what was asked for and is not done\n"
    "8. Current Work: what was being done at the very end, exactly\n"
    "9. Next Step: the one that follows from the newest request, if there is one\n" + _EMPTY + "{merge}" + REMARK,
    headings=(
        "Primary Request and Intent",
        "Key Concepts",
        "Files and Code",
        "Errors and Fixes",
        "Problem Solving",
        "User Messages",
        "Pending Tasks",
        "Current Work",
        "Next Step",
    ),
)
"""NeuroLink, Stage 3: LLM Summarization; its document names no section, so these are those a working conversation needs."""

WORKSTREAM = Template(
    asks=_LENGTH + "Use exactly these three headings, each on a line of its own, with a list under it:\n"
    "KEY FACTS: who and what, numbers, dates, decisions, constraints\n"
    "CONVERSATION FLOW: what was talked about and done, in its order\n"
    "OPEN THREADS: questions not answered, work not finished\n" + _EMPTY + "{merge}" + REMARK,
    headings=("KEY FACTS", "CONVERSATION FLOW", "OPEN THREADS"),
    numbered=True,
)
"""Lota, 4. LLM Summarization and 3. Content Extraction (a numbered transcript)."""

TASK_STATE = Template(
    asks=_LENGTH + "Use exactly these five headings, each on a line of its own:\n"
    "TASK: what the user asked for in the first place\n"
    "PROGRESS: a numbered list of the steps done, each with its result\n"
    "REMAINING: what is still to be done: exact items, counts, identifiers\n"
    "DATA: values that are needed later: names, addresses, dates, identifiers, numbers, links, errors\n"
    "DECISIONS: what was decided or confirmed\n" + _EMPTY + "{merge}" + REMARK,
    headings=("TASK", "PROGRESS", "REMAINING", "DATA", "DECISIONS"),
)
"""Wolffish, Step 4: One-Shot Summary."""

HANDOFF = Template(
    asks=_LENGTH + "It hands the work over to another language model, which goes on with it and knows nothing else. "
    "Use exactly these six headings, each on a line of its own, with a list under it:\n"
    "PROGRESS: what is done so far, and the decisions taken\n"
    "CONTEXT: what must be known, limits, and what the user prefers\n"
    "REMAINING: what is left to do, as clear next steps\n"
    "CRITICAL DATA: values, examples and references without which the work cannot go on\n"
    "FILES: which were changed, and how\n"
    "ERRORS: what went wrong, and how it was resolved\n" + _EMPTY + "{merge}" + REMARK,
    headings=("PROGRESS", "CONTEXT", "REMAINING", "CRITICAL DATA", "FILES", "ERRORS"),
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
