"""Templates of summaries with headings."""

from dataclasses import astuple

from compaction.summaries.templates import (
    LENGTH_RULE,
    STYLE_REMARK,
    SUMMARY_TEMPLATES,
    TAG_NAMES,
    PromptTags,
    SummaryTemplate,
)

_EMPTY_HEADING_RULE = 'Under a heading for which there is nothing, write "none". '


def add_template(name: str, template: SummaryTemplate) -> None:
    """Let policies name a template. Raises ValueError for a tag that a message could imitate."""
    unknown_tags = {*astuple(template.tags)} - {*TAG_NAMES, ""}
    if unknown_tags:
        raise ValueError(f"{', '.join(unknown_tags)} must stand in TAG_NAMES.")
    SUMMARY_TEMPLATES[name] = template


def build_headed_template(
    sections: dict[str, str],
    *,
    lead: str = "",
    numbers_headings: bool = False,
    numbers_messages: bool = False,
    tags: PromptTags | None = None,
) -> SummaryTemplate:
    """Return a template with these headings, and with what each is for in brackets.

    Without the brackets small models repeat "TASK: what the user asked for" as it is.
    """
    heading_labels = [
        f"{number}. {heading}" if numbers_headings else heading
        for number, heading in enumerate(sections, start=1)
    ]
    opening = (
        f"{LENGTH_RULE}{lead}Use exactly these {len(sections)} headings, each on a line of its "
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
        tags=tags or PromptTags(),
    )
