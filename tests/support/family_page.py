"""The tables of docs/providers.md: what each family refuses, and what comes of every situation."""

from collections.abc import Collection

from tests.support.family_stage import NEED_TOOLS, SITUATIONS
from tests.support.strict_servers import FAMILIES, Family

MARK = "<!-- Written by `./bin/test --slow`. Do not edit below. -->"


def render_tables(failures: Collection[tuple[str, str]]) -> str:
    """Return what stands below the mark, given the pairs of family and situation that failed."""
    toolless = ", ".join(family.name for family in FAMILIES if not family.knows_tools)
    failed = "; ".join(f"{family} in {situation}" for family, situation in sorted(failures))
    return "\n".join(
        [
            MARK,
            "",
            "## What each family refuses",
            "",
            "Beside what every server of the protocol refuses: calls without results, results"
            " without calls, ids used twice, empty requests.",
            "",
            "| family | protocol | refused | known from |",
            "|---|---|---|---|",
            *map(_render_rules, FAMILIES),
            "",
            "## Every family in every situation",
            "",
            f"The situations: {'; '.join(SITUATIONS)}. After each one more message was answered.",
            "",
            f"Failed: {failed or 'none'}. Without tools, and so without"
            f" {' and '.join(NEED_TOOLS)}: {toolless}.",
            "",
        ]
    )


def _render_rules(family: Family) -> str:
    names = [rule.__name__.replace("_", " ") for rule in family.rules]
    protocol = {"openai": "OpenAI", "anthropic": "Anthropic"}[family.protocol]
    rules = "; ".join(names) or "nothing else"
    return f"| {family.name} | {protocol} | {rules} | [{family.surety}]({family.source}) |"
