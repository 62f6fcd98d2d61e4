"""What the stages of NeuroLink can set."""

from dataclasses import dataclass
from typing import ClassVar

from compaction.core.knobs import KnobGroup, add_settings, knob
from compaction.core.rules import NAMES, RATIO, TEXT
from compaction.systems.kit.settings import require_template


@add_settings
@dataclass(frozen=True, kw_only=True, slots=True)
class DedupeKnobs(KnobGroup):
    """The stage `dedupe_file_reads`: of several reads of a whole file only the latest stays."""

    prefix: ClassVar[str] = "dedupe"
    written: ClassVar[tuple[str, ...]] = ("placeholder",)
    tools: tuple[str, ...] = knob(
        NAMES, ("read_file", "readFile", "read", "view_file", "cat"), "The tools that read a file."
    )
    minimum_ratio: float = knob(
        RATIO, 0.3, "The share of the tokens of a file's reads that must be saved, else they stay."
    )
    placeholder: str = knob(
        require_template("path"),
        "[File {path} - refer to latest read below]",
        "The text that replaces an earlier read.",
    )


@add_settings
@dataclass(frozen=True, kw_only=True, slots=True)
class SlideKnobs(KnobGroup):
    """The stage `slide_window`: the oldest messages are left out of the request."""

    prefix: ClassVar[str] = "slide"
    written: ClassVar[tuple[str, ...]] = ("marker",)
    fraction: float = knob(
        RATIO,
        0.5,
        "The share of the remaining messages, an even number, that is left out in each step "
        "until the rest fits.",
    )
    marker: str = knob(
        TEXT,
        "[Earlier conversation history was truncated to fit within context limits]",
        "The notice for the model that messages were left out.",
    )
