"""The preset `wolffish`: the settings in which Wolffish differs from `oneclaw`."""

from collections.abc import Mapping

from compaction.core.systems import add_preset
from compaction.systems.kit import system  # noqa: F401  # they register what it needs
from compaction.systems.kit.templates import add_template, build_headed_template
from compaction.systems.wolffish import excerpt, strip_images  # noqa: F401

# Wolffish, The Compaction Flow (step 4, a summary in one call).
add_template(
    "task_state",
    build_headed_template(
        {
            "TASK": "what the user asked for in the first place",
            "PROGRESS": "a numbered list of the steps done, each with its result",
            "REMAINING": "what is still to be done: exact items, counts, identifiers",
            "DATA": (
                "values that are needed later: names, addresses, dates, identifiers, numbers, "
                "links, errors"
            ),
            "DECISIONS": "what was decided or confirmed",
        }
    ),
)

_OVERRIDES: Mapping[str, object] = {
    "window": {"unknown": 8_000},
    "budget": {"basis": "input", "output_reserve": "model", "floor_ratio": 0.5},
    "trigger": {"threshold": 0.75, "phases": ["before_request", "on_overflow", "manual"]},
    "estimate": {
        "chars_per_token": 1.5,
        "rounding": "ceil",
        "per_message_chars": 30,
        "calibration": "max",
    },
    "protect": {"kind": "per_role", "count": 3, "first": 1, "errors": True, "min_chars": 500},
    "stages": ["strip_images", "excerpt", "summarize"],
    "summary": {
        "template": "task_state",
        "retries": 5,
        "backoff": [1, 2, 4, 8, 16],
        "source": "originals",
        "merging": "parts",
    },
    "inject": {
        "place": "last_user",
        "heading": "[Compaction Summary]",
        "nudge": (
            "[Status: The context was compacted. The messages above hold shortened versions of "
            "older content, and this summary holds the state of the whole conversation. Continue "
            "where you left off. Do NOT give a final answer until ALL steps are complete. Do NOT "
            "do completed work again.]"
        ),
        "failure_nudge": (
            "[Compaction Notice: The context was compacted by shortening older messages to their "
            "beginning and end. A summary of the conversation could not be written. Read the "
            "shortened content with care to see what is done and what remains. Continue where you "
            "left off. Do NOT give a final answer until ALL steps are complete.]"
        ),
    },
    "target": {"ratio": 0.50},
    "tool_result": {"spill": True},
    "fallback": {"kind": "notice"},
    "flow": {"log_requests": True, "runtime_hint": True},
}

WOLFFISH = add_preset("wolffish", _OVERRIDES)
