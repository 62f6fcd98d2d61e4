"""The preset `neurolink`: the settings in which NeuroLink differs from `oneclaw`."""

from collections.abc import Mapping

from compaction.core.systems import add_preset
from compaction.systems.kit import pipeline, sliding  # noqa: F401  # they register what it needs

_OVERRIDES: Mapping[str, object] = {
    "window": {
        "unknown": 128_000,
        "by_family": {
            "anthropic": 200_000,
            "bedrock": 200_000,
            "google-ai": 1_048_576,
            "vertex": 1_048_576,
            "huggingface": 32_000,
        },
    },
    "budget": {
        "basis": "input",
        "output_reserve": {"ratio": 0.35, "max": 64_000},
        "floor_ratio": 0.1,
    },
    "trigger": {
        "threshold": 0.80,
        "strict": False,
        "phases": ["before_request", "on_overflow", "manual"],
    },
    "estimate": {
        "code_chars_per_token": 3,
        "rounding": "ceil",
        "per_message": 4,
        "per_conversation": 24,
        "family_multiplier": {
            "anthropic": 1.23,
            "bedrock": 1.23,
            "google-ai": 1.18,
            "vertex": 1.18,
            "mistral": 1.26,
        },
        "safety_multiplier": 1.15,
        "calibration": "none",
    },
    "protect": {"kind": "count_ratio", "ratio": 0.3, "minimum": 4, "first": 2},
    "stages": ["prune_tool_outputs", "dedupe_file_reads", "summarize", "slide_window"],
    "prune": {"protected_tools": ["skill"]},
    "summary": {
        "template": "nine_sections",
        "max_tokens": 4_096,
        "min_words": 200,
        "max_words": 1_200,
        "retries": 0,
    },
    "inject": {"place": "first_system"},
    "target": {"otherwise": "fits"},
    "tool_result": {
        "limit": 51_200,
        "unit": "bytes",
        "lines": 2_000,
        "keep": "tail",
        "marker": "\n\n[Output truncated from {total} bytes to {kept} bytes]",
    },
    "fallback": {"kind": "slide_window"},
}

NEUROLINK = add_preset("neurolink", _OVERRIDES)
