"""The preset `baseagent`: the settings in which BaseAgent differs from `oneclaw`."""

from collections.abc import Mapping

from compaction.core.systems import add_preset
from compaction.systems.kit import system  # noqa: F401  # they register what it needs
from compaction.systems.kit.templates import add_template, build_headed_template

# BaseAgent, AI Compaction.
add_template(
    "handoff",
    build_headed_template(
        {
            "PROGRESS": "what is done so far, and the decisions taken",
            "CONTEXT": "what must be known, limits, and what the user prefers",
            "REMAINING": "what is left to do, as clear next steps",
            "CRITICAL DATA": "values, examples and references without which the work cannot go on",
            "FILES": "which were changed, and how",
            "ERRORS": "what went wrong, and how it was resolved",
        },
        lead=(
            "It hands the work over to another language model, which goes on with it and knows "
            "nothing else. "
        ),
    ),
)

_OVERRIDES: Mapping[str, object] = {
    "window": {"unknown": 200_000},
    "budget": {"basis": "input", "output_reserve": 32_000},
    "trigger": {"threshold": 0.85, "phases": ["before_request", "manual"]},
    "estimate": {
        "rounding": "floor",
        "per_message": 4,
        "image_tokens": 1_000,
        "calibration": "none",
    },
    "protect": {"kind": "user_turns", "count": 2},
    "stages": ["prune_tool_outputs", "summarize"],
    "prune": {
        "strict": True,
        "crossing_item": "prune",
        "skip_user_turns": 2,
        "placeholder": "[Old tool result content cleared]",
    },
    "summary": {"template": "handoff", "max_tokens": 4_096, "max_words": 1_500, "retries": 0},
    "inject": {
        "place": "first_user",
        "heading": (
            "Another language model began this work and left the summary below of what it did and "
            "thought. The state of the tools it used is still there. Build on that work and do not "
            "repeat it."
        ),
    },
    "target": {"otherwise": "fits"},
    "tool_result": {
        "limit": 2_500,
        "unit": "tokens",
        "keep": "middle_out",
        "marker": "\n\n[...truncated...]\n\n",
    },
    "flow": {"log_requests": True},
}

BASEAGENT = add_preset("baseagent", _OVERRIDES)
add_preset(
    "baseagent-long",
    _OVERRIDES,
    {"trigger": {"threshold": 0.70}, "prune": {"protect_tokens": 30_000}},
)
add_preset(
    "baseagent-complex",
    _OVERRIDES,
    {"trigger": {"threshold": 0.90}, "prune": {"protect_tokens": 60_000}},
)
