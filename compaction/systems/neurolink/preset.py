"""The preset `neurolink`: the settings in which NeuroLink differs from `oneclaw`."""

from collections.abc import Mapping

from compaction.core.systems import add_preset
from compaction.systems.kit import system  # noqa: F401  # they register what it needs
from compaction.systems.kit.templates import add_template, build_headed_template
from compaction.systems.neurolink import dedupe_file_reads, slide_window  # noqa: F401

# NeuroLink, Stage 3: LLM Summarization. Its document names no sections; these are our own.
add_template(
    "nine_sections",
    build_headed_template(
        {
            "Primary Request and Intent": "what the user wants, in full",
            "Key Concepts": "subjects, technologies and rules that matter",
            "Files and Code": (
                "each file looked at, changed or made, why, and the lines that matter"
            ),
            "Errors and Fixes": (
                "what went wrong, how it was put right, what the user said about it"
            ),
            "Problem Solving": "what was solved, what was tried, what is still looked into",
            "User Messages": "what each message of the user asked for or told, none left out",
            "Pending Tasks": "what was asked for and is not done",
            "Current Work": "what was being done at the very end, exactly",
            "Next Step": "the one that follows from the newest request, if there is one",
        },
        numbers_headings=True,
    ),
)

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
