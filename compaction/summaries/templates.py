"""Define the templates of summaries: what each asks the summary model for.

A new template is one entry here. The words are behavior and our own: a model reads them. Which
document asks for each is in docs/origins.md, under the names below.
"""

from dataclasses import dataclass

from compaction.core.knobs import TemplateName

STYLE_REMARK = "Write plain factual sentences about the conversation, not a further message of it"


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptTags:
    """The names of the tags in a prompt; those that are empty are left out.

    The transcript always stands between tags of its own. Without `previous` it begins with the
    earlier summary.
    """

    state: str = "existing-state"
    previous: str = ""
    messages: str = ""
    input: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class SummaryTemplate:
    """The form that a summary is to have.

    `instruction` follows the transcript; the prompt ends its last sentence. `headings` are those
    that the summary must use, in order. `bare_instruction` names the headings without what each is
    for, because some models repeat that; it is empty for a template without headings. With
    `numbers_messages` the messages are shown with their numbers. `rewrites_summaries` marks a
    template whose source is a summary, of which much may stay as it is.
    """

    instruction: str
    bare_instruction: str = ""
    headings: tuple[str, ...] = ()
    numbers_messages: bool = False
    rewrites_summaries: bool = False
    tags: PromptTags = PromptTags()


_LENGTH_RULE = (
    "Summarize the conversation between the transcript tags above in {min_words} to {max_words} "
    "words, in its own language. "
)
_EMPTY_HEADING_RULE = 'Under a heading for which there is nothing, write "none". '

FACTS = SummaryTemplate(
    instruction=_LENGTH_RULE
    + "Keep every name, decision, number, date, file, result and open task that later messages may "
    + "need; leave out greetings. "
    + "{merge}"
    + STYLE_REMARK,
)
"""FEAT-011, Compact Rules (6): a concise factual summary."""


def _build_headed_template(
    sections: dict[str, str],
    *,
    lead: str = "",
    numbers_headings: bool = False,
    numbers_messages: bool = False,
    tags: PromptTags = PromptTags(),
) -> SummaryTemplate:
    """Return a template with these headings, and with what each is for in brackets.

    Without the brackets small models repeat "TASK: what the user asked for" as it is.
    """
    heading_labels = [
        f"{number}. {heading}" if numbers_headings else heading
        for number, heading in enumerate(sections, start=1)
    ]
    opening = (
        f"{_LENGTH_RULE}{lead}Use exactly these {len(sections)} headings, each on a line of its "
        "own, and below each what the conversation says"
    )
    heading_lines = "\n".join(
        f"{heading} ({meaning})"
        for heading, meaning in zip(heading_labels, sections.values(), strict=True)
    )
    ending = f"\n{_EMPTY_HEADING_RULE}{{merge}}{STYLE_REMARK}"
    return SummaryTemplate(
        instruction=(
            f"{opening} of the matter in brackets; leave the brackets out:\n{heading_lines}{ending}"
        ),
        bare_instruction=f"{opening} of it:\n" + "\n".join(heading_labels) + ending,
        headings=tuple(sections),
        numbers_messages=numbers_messages,
        tags=tags,
    )


NINE_SECTIONS = _build_headed_template(
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
    numbers_headings=True,
)
"""NeuroLink, Stage 3: LLM Summarization. Its document names no sections; these are our own."""

WORKSTREAM = _build_headed_template(
    {
        "KEY FACTS": "who and what, numbers, dates, decisions, constraints",
        "CONVERSATION FLOW": "what was talked about and done, in its order",
        "OPEN THREADS": "questions not answered, work not finished",
    },
    numbers_messages=True,
    tags=PromptTags(
        input="context-compaction-input",
        previous="previous-summary",
        state="existing-workstream-state",
        messages="new-messages",
    ),
)
"""Lota, LLM Summarization, and Lota, Content Extraction (a numbered transcript)."""

TASK_STATE = _build_headed_template(
    {
        "TASK": "what the user asked for in the first place",
        "PROGRESS": "a numbered list of the steps done, each with its result",
        "REMAINING": "what is still to be done: exact items, counts, identifiers",
        "DATA": (
            "values that are needed later: names, addresses, dates, identifiers, numbers, links, "
            "errors"
        ),
        "DECISIONS": "what was decided or confirmed",
    }
)
"""Wolffish, The Compaction Flow (step 4, a summary in one call)."""

HANDOFF = _build_headed_template(
    {
        "PROGRESS": "what is done so far, and the decisions taken",
        "CONTEXT": "what must be known, limits, and what the user prefers",
        "REMAINING": "what is left to do, as clear next steps",
        "CRITICAL DATA": "values, examples and references without which the work cannot go on",
        "FILES": "which were changed, and how",
        "ERRORS": "what went wrong, and how it was resolved",
    },
    lead=(
        "It hands the work over to another language model, which goes on with it and knows nothing "
        "else. "
    ),
)
"""BaseAgent, AI Compaction."""

ROLLUP_TEMPLATE = SummaryTemplate(
    instruction=(
        "Between the transcript tags above is a summary that has grown too long. Write it anew in "
        "{min_words} to {max_words} words, in its own language and with the headings it has: keep "
        "what later messages may need, merge what is said twice, drop what is settled and no "
        "longer matters. {merge}Write plain factual sentences"
    ),
    rewrites_summaries=True,
)
"""Lota, Summary Rollup."""

PARTS_INSTRUCTION = (
    "The transcript is told as summaries of its parts, in their order: make one summary of them "
    "all. "
)

SUMMARY_TEMPLATES: dict[TemplateName, SummaryTemplate] = {
    "facts": FACTS,
    "nine_sections": NINE_SECTIONS,
    "workstream": WORKSTREAM,
    "task_state": TASK_STATE,
    "handoff": HANDOFF,
}
"""The templates by the names that the knob `summary.template` accepts."""
