"""The policies that come with the house; a preset is data and has no code of its own."""

from compaction.core.policy import Estimate, Fallback, Flow, Overflow, Policy, Protect, Summary, Trigger, Window

ONECLAW = Policy(
    window=Window(unknown="disable"),
    trigger=Trigger(threshold=0.85, strict=True, phases=("after_response", "on_model_change", "on_overflow", "manual")),
    estimate=Estimate(chars_per_token=4, calibration="last_usage"),
    protect=Protect(ratio=0.25),
    stages=("summarize",),
    summary=Summary(max_tokens=2_048, min_words=200, max_words=500, retries=1),
    fallback=Fallback(notice="Conversation history has been automatically trimmed"),
    overflow=Overflow(recovery_ratio=0.70),
    flow=Flow(lease_seconds=300, attempts=3),
)
"""FEAT-011, Auto Compact & Tool Result Truncation."""

PRESETS: dict[str, Policy] = {"oneclaw": ONECLAW}
