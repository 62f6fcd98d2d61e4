"""How far a pass goes, what is cut on the way in, what happens when a pass fails, and how a session goes on meanwhile."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from compaction.core.knobs import (
    KnobGroup,
    check_choice,
    check_flag,
    check_integer,
    check_nonblank,
    check_optional,
    check_ratio,
    check_template,
    knob,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetKnobs(KnobGroup):
    """Where a pass stops: this share of the basis; null: `tail`, what is protected and a summary, or `fits`, the threshold."""

    prefix: ClassVar[str] = "target"
    ratio: float | None = knob(check_optional(check_ratio))
    otherwise: Literal["tail", "fits"] = knob(check_choice("tail", "fits"))


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolResultKnobs(KnobGroup):
    """How much of a tool's output is stored and shown: `limit` in `unit`, and at most `lines` lines where that is set.

    `keep`: which end; `middle_out` keeps both halves, `quarters` a quarter of head and three of tail. `spill`: the whole output is
    stored beside it, and the model gets a tool that reads it.
    """

    prefix: ClassVar[str] = "tool_result"
    limit: int = knob(check_integer(1))
    unit: Literal["chars", "bytes", "tokens"] = knob(check_choice("chars", "bytes", "tokens"))
    lines: int | None = knob(check_optional(check_integer(1)))
    keep: Literal["head", "tail", "middle_out", "quarters"] = knob(
        check_choice("head", "tail", "middle_out", "quarters")
    )
    marker: str = knob(check_template("kept", "total", "omitted"))
    spill: bool = knob(check_flag)


@dataclass(frozen=True, kw_only=True, slots=True)
class FilesKnobs(KnobGroup):
    """How much of attached files is sent: together `budget_ratio` of the room that is left.

    A file below `fast_path_bytes` is not looked at; of one above `preview_bytes` only `preview_chars` characters are sent.
    """

    prefix: ClassVar[str] = "files"
    budget_ratio: float = knob(check_ratio)
    fast_path_bytes: int = knob(check_integer(0))
    preview_bytes: int = knob(check_integer(0))
    preview_chars: int = knob(check_integer(1))


@dataclass(frozen=True, kw_only=True, slots=True)
class FallbackKnobs(KnobGroup):
    """After a failure, in the request only: `drop_oldest`; `slide_window`; `notice`, what the other stages did stays and a nudge says so;
    `error`, a clear one. `notify`: the user is told `notice`.
    """

    prefix: ClassVar[str] = "fallback"
    kind: Literal["drop_oldest", "slide_window", "notice", "error"] = knob(
        check_choice("drop_oldest", "slide_window", "notice", "error")
    )
    notify: bool = knob(check_flag)
    notice: str = knob(check_nonblank)


@dataclass(frozen=True, kw_only=True, slots=True)
class OverflowKnobs(KnobGroup):
    """After the provider refused a request for its length: the share of the basis to come down to."""

    prefix: ClassVar[str] = "overflow"
    recovery_ratio: float = knob(check_ratio)


@dataclass(frozen=True, kw_only=True, slots=True)
class FlowKnobs(KnobGroup):
    """What a new turn does while a run is open (`wait`: until it ends, at most `lease_seconds`), and how runs are worked on.

    `lease_seconds`: how long a worker holds a run without a sign of life; `workers`: how many runs of this policy at once; `attempts`:
    how often a run may be claimed. `runtime_hint`: tell the model, in a tool loop, how far it is and to do all of it.
    """

    prefix: ClassVar[str] = "flow"
    while_compacting: Literal["proceed", "wait"] = knob(check_choice("proceed", "wait"))
    lease_seconds: int = knob(check_integer(1))
    workers: int = knob(check_integer(1))
    attempts: int = knob(check_integer(1))
    runtime_hint: bool = knob(check_flag)
