"""The knobs of a policy, in groups: what a context may hold, what the stages do, what a summary is, and how a session is treated."""

from compaction.core.groups.conduct import Fallback, Files, Flow, Overflow, Target, ToolResult
from compaction.core.groups.size import Basis, Estimate, Trigger, Window
from compaction.core.groups.stages import Dedupe, Excerpt, Protect, Prune, Slide, Strip
from compaction.core.groups.summaries import Inject, Memory, State, Summary

__all__ = [
    "Basis",
    "Dedupe",
    "Estimate",
    "Excerpt",
    "Fallback",
    "Files",
    "Flow",
    "Inject",
    "Memory",
    "Overflow",
    "Protect",
    "Prune",
    "Slide",
    "State",
    "Strip",
    "Summary",
    "Target",
    "ToolResult",
    "Trigger",
    "Window",
]
