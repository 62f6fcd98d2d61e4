"""Define the templates of summaries: what each asks the summary model for.

The texts are behavior and our own: a model reads them. The systems add theirs (`systems/kit`).
"""

from dataclasses import dataclass

from compaction.core.rules import Rule

STYLE_REMARK = "Write plain factual sentences about the conversation, not a further message of it"


TRANSCRIPT_TAG = "transcript"
# All tags of prompts, those of absent systems too: no message can imitate one.
TAG_NAMES = (
    "context-compaction-input",
    "existing-state",
    "existing-workstream-state",
    "new-messages",
    "previous-summary",
    TRANSCRIPT_TAG,
)


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


LENGTH_RULE = (
    "Summarize the conversation between the transcript tags above in {min_words} to {max_words} "
    "words, in its own language. "
)

FACTS = SummaryTemplate(
    instruction=LENGTH_RULE
    + "Keep every name, decision, number, date, file, result and open task that later messages may "
    + "need; leave out greetings. "
    + "{merge}"
    + STYLE_REMARK,
)
"""A concise factual summary."""

ROLLUP_TEMPLATE = SummaryTemplate(
    instruction=(
        "Between the transcript tags above is a summary that has grown too long. Write it anew in "
        "{min_words} to {max_words} words, in its own language and with the headings it has: keep "
        "what later messages may need, merge what is said twice, drop what is settled and no "
        "longer matters. {merge}Write plain factual sentences"
    ),
    rewrites_summaries=True,
)

PARTS_INSTRUCTION = (
    "The transcript is told as summaries of its parts, in their order: make one summary of them "
    "all. "
)

SUMMARY_TEMPLATES: dict[str, SummaryTemplate] = {"facts": FACTS}
"""The templates that a policy may name. The systems add theirs."""

TEMPLATE = Rule("the name of a template", lambda name: name in SUMMARY_TEMPLATES)
"""What the setting of a template takes."""
