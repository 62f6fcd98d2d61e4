"""The built-in policies. A preset is data: `oneclaw` is complete, the others are overrides.

`chatcore` is our own. Each other follows a published system, see docs/origins.md. docs/policies.md
explains every knob.
"""

from compaction.core import knobs
from compaction.core.estimate import CHARS_PER_TOKEN
from compaction.core.policy import Policy

# Of the window (FEAT-011, Constants).
COMPACT_THRESHOLD_RATIO = 0.85
PROTECTED_WINDOW_RATIO = 0.25

PLAN_TOOLS = (
    "todo_write",
    "todowrite",
    "write_todos",
    "update_todos",
    "set_todos",
    "todo_list",
    "todolist",
    "update_todo_list",
    "update_plan",
    "manage_todo_list",
)

ONECLAW = Policy(
    window=knobs.WindowKnobs(unknown="disable", by_family={}),
    budget=knobs.BudgetKnobs(basis="window", output_reserve=0, safety_margin=0, floor_ratio=0.5),
    trigger=knobs.TriggerKnobs(
        threshold=COMPACT_THRESHOLD_RATIO,
        clamp=False,
        strict=True,
        phases=("after_response", "on_model_change", "on_overflow", "manual"),
    ),
    estimate=knobs.EstimateKnobs(
        method="characters",
        chars_per_token=CHARS_PER_TOKEN,
        code_chars_per_token=None,
        rounding="floor_min1",
        per_message=0,
        per_message_chars=0,
        per_conversation=0,
        image_tokens=1_024,
        family_multiplier={},
        safety_multiplier=1,
        count_system=True,
        count_tools=True,
        calibration="last_usage",
    ),
    protect=knobs.ProtectKnobs(
        kind="token_ratio",
        ratio=PROTECTED_WINDOW_RATIO,
        count=0,
        minimum=0,
        first=0,
        tools=(),
        plans=PLAN_TOOLS,
        errors=False,
        min_chars=0,
    ),
    stages=("summarize",),
    strip=knobs.StripKnobs(
        placeholder="[Screenshot analyzed — image omitted from context]",
        other_placeholder="[Image omitted from context]",
    ),
    prune=knobs.PruneKnobs(
        protect_tokens=40_000,
        minimum_savings=20_000,
        strict=False,
        crossing_item="keep",
        skip_user_turns=0,
        protected_tools=(),
        placeholder="[Tool result cleared]",
    ),
    dedupe=knobs.DedupeKnobs(
        tools=("read_file", "readFile", "read", "view_file", "cat"),
        minimum_ratio=0.3,
        placeholder="[File {path} - refer to latest read below]",
    ),
    excerpt=knobs.ExcerptKnobs(
        head_ratio=0.15,
        head_cap=6_000,
        tail_ratio=0.08,
        tail_cap=3_000,
        expected_ratio=0.25,
        marker=(
            "[TRUNCATED — {total:,} chars original, {omitted:,} chars omitted, "
            "showing first {head:,} + last {tail:,} chars]"
        ),
    ),
    slide=knobs.SlideKnobs(
        fraction=0.5,
        marker="[Earlier conversation history was truncated to fit within context limits]",
    ),
    summary=knobs.SummaryKnobs(
        model="same",
        template="facts",
        spans="rewritten",
        max_tokens=2_048,
        room_ratio=None,
        min_words=200,
        max_words=500,
        retries=1,
        retry="call",
        backoff=(),
        timeout=240,
        source="shown",
        prompt="transcript",
        merging="sequential",
        chunk_chars=None,
        rollup_tokens=None,
        tools="all",
        tool_names=(),
        tool_prefixes=(),
        state_delta=False,
    ),
    state=knobs.StateKnobs(
        decisions=8, constraints=6, tasks=10, questions=5, risks=5, artifacts=10, contributions=6
    ),
    memory=knobs.MemoryKnobs(entries=0, fold=0),
    inject=knobs.InjectKnobs(place="system_prefix", heading="", nudge="", failure_nudge=""),
    ledger=knobs.LedgerKnobs(ratio=0),
    recall=knobs.RecallKnobs(tokens=0, threshold=0.15),
    verify=knobs.VerifyKnobs(checks=False, repair=False, extract=False),
    target=knobs.TargetKnobs(ratio=None, otherwise="tail"),
    tool_result=knobs.ToolResultKnobs(
        limit=30_000,
        unit="chars",
        lines=None,
        keep="head",
        marker="\n\n[... content truncated, showing first {kept} characters of {total} total ...]",
        spill=False,
    ),
    files=knobs.FilesKnobs(
        budget_ratio=0.6,
        sharing="proportional",
        fast_path_bytes=102_400,
        preview_bytes=5_242_880,
        preview_chars=2_000,
    ),
    fallback=knobs.FallbackKnobs(
        kind="drop_oldest",
        notify=True,
        notice="Conversation history has been automatically trimmed",
    ),
    overflow=knobs.OverflowKnobs(recovery_ratio=0.70),
    flow=knobs.FlowKnobs(
        while_compacting="proceed",
        lease_seconds=300,
        workers=2,
        attempts=3,
        log_requests=False,
        runtime_hint=False,
    ),
)
"""The default policy (FEAT-011)."""

_NEUROLINK: dict[str, object] = {
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

_LOTA: dict[str, object] = {
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
    "flow": {"while_compacting": "wait", "attempts": 2},
}

_WOLFFISH: dict[str, object] = {
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

_BASEAGENT: dict[str, object] = {
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

_CHATCORE: dict[str, object] = {
    "files": {"sharing": "even"},
    "ledger": {"ratio": 0.15},
    "recall": {"tokens": 600},
    "summary": {
        "spans": "frozen",
        "room_ratio": 0.08,
        "max_words": 2_000,
        "prompt": "cheapest",
    },
    "tool_result": {"spill": True},
    "verify": {"checks": True, "repair": True, "extract": True},
}


def _build_preset(*overrides: dict[str, object]) -> Policy:
    policy = ONECLAW
    for override in overrides:
        policy = Policy.parse(override, policy)
    return policy


PRESETS: dict[str, Policy] = {
    "oneclaw": ONECLAW,
    "neurolink": _build_preset(_NEUROLINK),
    "lota": _build_preset(_LOTA),
    "wolffish": _build_preset(_WOLFFISH),
    "baseagent": _build_preset(_BASEAGENT),
    "baseagent-long": _build_preset(
        _BASEAGENT, {"trigger": {"threshold": 0.70}, "prune": {"protect_tokens": 30_000}}
    ),
    "baseagent-complex": _build_preset(
        _BASEAGENT, {"trigger": {"threshold": 0.90}, "prune": {"protect_tokens": 60_000}}
    ),
    "chatcore": _build_preset(_CHATCORE),
}
