"""Knobs for the rest: where a pass stops, what is cut on the way in, failures, and open runs."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from compaction.core.knobs import KnobGroup, knob
from compaction.core.rules import (
    FILLED_TEXT,
    FLAG,
    RATIO,
    allow_null,
    require_choice,
    require_integer,
    require_template,
)

TargetKind = Literal["tail", "fits"]
SizeUnit = Literal["chars", "bytes", "tokens"]
KeptEnd = Literal["head", "tail", "middle_out", "quarters"]
FallbackKind = Literal["drop_oldest", "slide_window", "notice", "error"]
FileSharing = Literal["proportional", "even"]
TurnConduct = Literal["proceed", "wait"]

_NUMBER = require_integer(0)
_POSITIVE_NUMBER = require_integer(1)


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetKnobs(KnobGroup):
    """The size at which a pass stops."""

    prefix: ClassVar[str] = "target"
    ratio: float | None = knob(
        allow_null(RATIO), "The share of the basis to come down to. Null: what `otherwise` says."
    )
    otherwise: TargetKind = knob(
        require_choice(TargetKind),
        "`tail`: down to the protected tail and a summary. `fits`: just within the threshold.",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolResultKnobs(KnobGroup):
    """How much of a tool's output is stored and sent."""

    prefix: ClassVar[str] = "tool_result"
    limit: int = knob(_POSITIVE_NUMBER, "The most that is kept of one output, in `unit`.")
    unit: SizeUnit = knob(
        require_choice(SizeUnit), "The unit of `limit`. A token is four characters here."
    )
    lines: int | None = knob(
        allow_null(_POSITIVE_NUMBER), "The most lines that are kept. Null: any number."
    )
    keep: KeptEnd = knob(
        require_choice(KeptEnd),
        "Which part is kept: the `head`, the `tail`, half of each (`middle_out`), or a quarter of "
        "head and three of tail (`quarters`).",
    )
    marker: str = knob(
        require_template("kept", "total", "omitted"), "The text that says what is missing."
    )
    spill: bool = knob(FLAG, "Store the whole output too, and give the model a tool that reads it.")


@dataclass(frozen=True, kw_only=True, slots=True)
class FilesKnobs(KnobGroup):
    """How much of attached text files is sent."""

    prefix: ClassVar[str] = "files"
    budget_ratio: float = knob(
        RATIO, "All files together take at most this share of the room that everything else leaves."
    )
    sharing: FileSharing = knob(
        require_choice(FileSharing),
        "How files share that room if it is too small. `proportional`: each gives up the same "
        "share. `even`: each gets the same room at most, so that no large one starves a small one.",
    )
    fast_path_bytes: int = knob(_NUMBER, "A smaller file is sent whole while there is room.")
    preview_bytes: int = knob(_NUMBER, "Of a larger file only a preview is sent.")
    preview_chars: int = knob(_POSITIVE_NUMBER, "The characters of a preview.")


@dataclass(frozen=True, kw_only=True, slots=True)
class FallbackKnobs(KnobGroup):
    """What happens after a failed compaction. Only the request changes, nothing that is stored."""

    prefix: ClassVar[str] = "fallback"
    kind: FallbackKind = knob(
        require_choice(FallbackKind),
        "`drop_oldest`: leave out the oldest messages until the rest fits. `slide_window`: the "
        "same in the steps of the stage. `notice`: keep what other stages did, and tell the model. "
        "`error`: refuse the request with a clear error.",
    )
    notify: bool = knob(FLAG, "Show `notice` to the user.")
    notice: str = knob(FILLED_TEXT, "The text that the user sees.")


@dataclass(frozen=True, kw_only=True, slots=True)
class OverflowKnobs(KnobGroup):
    """What happens after the provider refused a request for its length."""

    prefix: ClassVar[str] = "overflow"
    recovery_ratio: float = knob(RATIO, "The share of the basis to come down to.")


@dataclass(frozen=True, kw_only=True, slots=True)
class FlowKnobs(KnobGroup):
    """How runs are worked on, and how a session goes on meanwhile."""

    prefix: ClassVar[str] = "flow"
    while_compacting: TurnConduct = knob(
        require_choice(TurnConduct),
        "What a new turn does while a run is open. `wait`: until it ends, for `lease_seconds` at "
        "most.",
    )
    lease_seconds: int = knob(
        _POSITIVE_NUMBER,
        "Seconds without a sign of life after which another worker may take over, 30 at most.",
    )
    workers: int = knob(_POSITIVE_NUMBER, "How many runs of this policy are worked on at once.")
    attempts: int = knob(_POSITIVE_NUMBER, "How often a run may be claimed before it has failed.")
    log_requests: bool = knob(
        FLAG,
        "Log the size of each request at the level `INFO`, also of one that is sent unchanged.",
    )
    runtime_hint: bool = knob(
        FLAG,
        "Tell the model, in a loop of tool calls, how much is done and that all must be done.",
    )
