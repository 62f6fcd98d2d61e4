"""How far a pass goes, what is cut on the way in, what happens when a pass fails, and how a session goes on meanwhile."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from compaction.core.knobs import Group, flag, knob, maybe, one_of, ratio, template, whole, words


@dataclass(frozen=True, kw_only=True, slots=True)
class Target(Group):
    """Where a pass stops: this share of the basis; null: `tail`, what is protected and a summary, or `fits`, the threshold."""

    prefix: ClassVar[str] = "target"
    ratio: float | None = knob(maybe(ratio))
    otherwise: Literal["tail", "fits"] = knob(one_of("tail", "fits"))


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolResult(Group):
    """How much of a tool's output is stored and shown: `limit` in `unit`, and at most `lines` lines where that is set.

    `keep`: which end; `middle_out` keeps both halves, `quarters` a quarter of head and three of tail. `spill`: the whole output is
    stored beside it, and the model gets a tool that reads it.
    """

    prefix: ClassVar[str] = "tool_result"
    limit: int = knob(whole(1))
    unit: Literal["chars", "bytes", "tokens"] = knob(one_of("chars", "bytes", "tokens"))
    lines: int | None = knob(maybe(whole(1)))
    keep: Literal["head", "tail", "middle_out", "quarters"] = knob(
        one_of("head", "tail", "middle_out", "quarters")
    )
    marker: str = knob(template("kept", "total", "omitted"))
    spill: bool = knob(flag)


@dataclass(frozen=True, kw_only=True, slots=True)
class Files(Group):
    """How much of attached files is sent: together `budget_ratio` of the room that is left.

    A file below `fast_path_bytes` is not looked at; of one above `preview_bytes` only `preview_chars` characters are sent.
    """

    prefix: ClassVar[str] = "files"
    budget_ratio: float = knob(ratio)
    fast_path_bytes: int = knob(whole(0))
    preview_bytes: int = knob(whole(0))
    preview_chars: int = knob(whole(1))


@dataclass(frozen=True, kw_only=True, slots=True)
class Fallback(Group):
    """After a failure, in the request only: `drop_oldest`; `slide_window`; `notice`, what the other stages did stays and a nudge says so;
    `error`, a clear one. `notify`: the user is told `notice`.
    """

    prefix: ClassVar[str] = "fallback"
    kind: Literal["drop_oldest", "slide_window", "notice", "error"] = knob(
        one_of("drop_oldest", "slide_window", "notice", "error")
    )
    notify: bool = knob(flag)
    notice: str = knob(words)


@dataclass(frozen=True, kw_only=True, slots=True)
class Overflow(Group):
    """After the provider refused a request for its length: the share of the basis to come down to."""

    prefix: ClassVar[str] = "overflow"
    recovery_ratio: float = knob(ratio)


@dataclass(frozen=True, kw_only=True, slots=True)
class Flow(Group):
    """What a new turn does while a run is open (`wait`: until it ends, at most `lease_seconds`), and how runs are worked on.

    `lease_seconds`: how long a worker holds a run without a sign of life; `workers`: how many runs of this policy at once; `attempts`:
    how often a run may be claimed. `runtime_hint`: tell the model, in a tool loop, how far it is and to do all of it.
    """

    prefix: ClassVar[str] = "flow"
    while_compacting: Literal["proceed", "wait"] = knob(one_of("proceed", "wait"))
    lease_seconds: int = knob(whole(1))
    workers: int = knob(whole(1))
    attempts: int = knob(whole(1))
    runtime_hint: bool = knob(flag)
