"""The stages by the names that policies give them.

A new stage is one file in this folder, one line in this table, and its name in `policy.STAGES`
(policies are checked before stages are imported). A test compares the two lists.
"""

from compaction.core.stages.base import Stage
from compaction.core.stages.dedupe_file_reads import dedupe_file_reads
from compaction.core.stages.excerpt import excerpt
from compaction.core.stages.prune_tool_outputs import prune_tool_outputs
from compaction.core.stages.slide_window import slide_window
from compaction.core.stages.strip_images import strip_images
from compaction.core.stages.summarize import summarize

STAGES: dict[str, Stage] = {
    "strip_images": strip_images,
    "prune_tool_outputs": prune_tool_outputs,
    "dedupe_file_reads": dedupe_file_reads,
    "excerpt": excerpt,
    "summarize": summarize,
    "slide_window": slide_window,
}
