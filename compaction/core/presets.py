"""The policies of the core. A preset is data: `oneclaw` is complete, the others are overrides.

`chatcore` is our own. docs/policies.md explains every knob.
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


PRESETS: dict[str, Policy] = {"oneclaw": ONECLAW, "chatcore": Policy.parse(_CHATCORE, ONECLAW)}
"""The other systems add theirs (`systems.py`)."""
