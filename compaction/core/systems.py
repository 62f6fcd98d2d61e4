"""What the systems beside `oneclaw` bring: presets, and the pass and fallbacks that these need.

A system registers them when its module is imported; its app does that.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from compaction.core.knobs import PolicyError
from compaction.core.policy import Policy
from compaction.core.presets import ONECLAW, PRESETS

if TYPE_CHECKING:
    from compaction.core.outcome import Outcome
    from compaction.core.pass_context import PassContext
    from compaction.core.transcript import Transcript, TranscriptEntry


class Trim(Protocol):
    """A way to leave messages out of a request: see `trimming.drop_oldest_to_fit`."""

    def __call__(
        self,
        entries: "Sequence[TranscriptEntry]",
        policy: Policy,
        /,
        *,
        limit_tokens: int,
        overhead_tokens: int,
        token_ratio: float,
    ) -> "Sequence[TranscriptEntry]": ...


Pass = Callable[["Transcript", "PassContext"], "Outcome | None"]
_passes: list[Pass] = []
# Those that `fallback.kind` may name beside the core's own.
TRIMMERS: dict[str, Trim] = {}
CORE_FALLBACKS = ("drop_oldest", "notice", "error")
_CORE_PRESETS = frozenset(PRESETS)
MISSING = "needs a system that is not installed"


def register_pass(compact: Pass) -> None:
    """Use this pass for policies that need more than the core's. The first one stays."""
    _passes.append(compact)


def register_trimmer(kind: str, trim: Trim) -> None:
    """Let requests be trimmed in this way before the oldest messages go."""
    TRIMMERS[kind] = trim


def add_preset(name: str, *overrides: Mapping[str, object]) -> Policy:
    """Add a preset that differs from `oneclaw` in these settings, and return it."""
    policy = ONECLAW
    for each in overrides:
        policy = Policy.parse(each, policy)
    PRESETS[name] = policy
    return policy


def has_systems() -> bool:
    """Return whether any system is installed beside what the core has."""
    return PRESETS.keys() > _CORE_PRESETS


def needs_other_pass(policy: Policy) -> bool:
    """Return whether a policy asks for more than one summary of what is older than its tail."""
    return (
        policy.stages != ("summarize",)
        or policy.protect.kind != "token_ratio"
        or policy.protect.first > 0
        or policy.summary.source != "shown"
    )


def get_other_pass() -> Pass:
    """Return the pass of the other systems. Raises PolicyError if none of them is there."""
    if not _passes:
        raise PolicyError("stages", MISSING)
    return _passes[0]


def require_parts(policy: Policy) -> None:
    """Raise PolicyError if a policy needs what only a system that is absent can do."""
    if needs_other_pass(policy):
        get_other_pass()
    kind = policy.fallback.kind
    if kind not in CORE_FALLBACKS and kind not in TRIMMERS:
        raise PolicyError("fallback.kind", MISSING)
