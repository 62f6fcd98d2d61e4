"""The preset `lota`: the settings in which Lota differs from `oneclaw`."""

from collections.abc import Mapping

from compaction.core.systems import add_preset
from compaction.summaries.templates import PromptTags
from compaction.systems.kit import system  # noqa: F401  # they register what it needs
from compaction.systems.kit.templates import add_template, build_headed_template
from compaction.systems.lota import settings  # noqa: F401

# Lota, LLM Summarization, and Lota, Content Extraction (a numbered transcript).
add_template(
    "workstream",
    build_headed_template(
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
    ),
)

_OVERRIDES: Mapping[str, object] = {
    "window": {"unknown": 200_000},
    "budget": {"output_reserve": 32_000, "safety_margin": 8_000},
    "trigger": {
        "threshold": 0.70,
        "clamp": True,
        "strict": False,
        "phases": ["after_response", "manual"],
    },
    "estimate": {
        "chars_per_token": 3,
        "count_system": False,
        "count_tools": False,
        "calibration": "none",
    },
    "protect": {"kind": "count", "count": 6},
    "summary": {
        "template": "workstream",
        "max_tokens": 4_096,
        "max_words": 1_500,
        "retry": "run",
        "backoff": [3],
        "chunk_chars": 120_000,
        "rollup_tokens": 80_000,
        "tools": "listed",
        "tool_names": ["userQuestions", "proceedInOnboarding"],
        "tool_prefixes": ["linear"],
        "state_delta": True,
    },
    "memory": {"entries": 15, "fold": 10},
    "inject": {"place": "first_system", "heading": "Compacted context summary:"},
    "flow": {"while_compacting": "wait", "workers": 2, "lease_seconds": 300, "attempts": 2},
}

LOTA = add_preset("lota", _OVERRIDES)
