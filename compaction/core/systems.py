"""What systems beside `oneclaw` bring, and the one place where the core asks them.

A system registers its parts when its modules are imported; its app does that. Settings of its own
are groups (`knobs.add_settings`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from compaction.core.knobs import PolicyError
from compaction.core.policy import Policy
from compaction.core.presets import ONECLAW, PRESETS

if TYPE_CHECKING:
    from compaction.core.budget import Budget
    from compaction.core.outcome import Outcome
    from compaction.core.pass_context import PassContext
    from compaction.core.transcript import Transcript, TranscriptEntry


def _includes_any(_name: str) -> bool:
    return True


@dataclass(frozen=True, kw_only=True, slots=True)
class Traits:
    """What a policy does besides its pass. The defaults are what `oneclaw` does."""

    template: str = "facts"
    includes_tool: Callable[[str], bool] = _includes_any
    """Whether summaries include the calls and results of the tool of this name."""
    reads_originals: bool = False
    """Whether the summarizer reads shortened messages in full."""
    merges_parts: bool = False
    """Whether the parts of a long conversation are summarized each alone, and then merged."""
    chunk_chars: int | None = None
    """The most characters of the conversation in one call."""
    rollup_tokens: int | None = None
    """A summary of more tokens is itself summarized."""
    waits: tuple[float, ...] = ()
    """Seconds to wait before each retry; the last number serves for further ones."""
    retries_run: bool = False
    """Whether a retry begins the whole run again, and not only the call."""
    place: str = "system_prefix"
    heading: str = ""
    nudge: str = ""
    failure_nudge: str = ""
    waits_for_run: bool = False
    """Whether a new turn waits for an open run."""
    logs_requests: bool = False
    has_runtime_hint: bool = False

    def choose_wait(self, retry: int) -> float:
        """Return how many seconds to wait before a retry, of which the first is 1."""
        return self.waits[min(retry, len(self.waits)) - 1] if self.waits else 0


class System(Protocol):
    """What carries out policies that have settings beyond those of the core."""

    def plan(
        self,
        policy: Policy,
        window: int | None,
        *,
        max_input: int | None,
        output_reserve: int | None,
        max_tokens: int | None,
        family: str,
    ) -> "Budget | None":
        """Return the budget, see `budget.plan`."""

    def compact(self, transcript: "Transcript", pass_context: "PassContext") -> "Outcome | None":
        """Return the outcome of a pass, see `pipeline.compact_old_messages`."""

    def describe_traits(self, policy: Policy) -> Traits:
        """Return what the policy does besides its pass."""

    def describe_tail(self, policy: Policy) -> str:
        """Return the protected tail in words; empty if it is a share of the window."""

    def truncate_output(self, text: str, policy: Policy) -> tuple[str, int | None]:
        """Return what is kept of a tool's output, and its full length if it was cut."""

    def list_shares(self, policy: Policy, factor: float) -> dict[str, dict[str, float]]:
        """Return its shares of the window times a factor, by which the threshold is lowered."""


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


@dataclass(frozen=True, slots=True)
class Trimmer:
    """A way to trim requests, and the notice that the model gets then."""

    trim: Trim
    get_notice: Callable[[Policy], str]


_systems: list[System] = []
# Those that `fallback.kind` may name beside the core's own.
TRIMMERS: dict[str, Trimmer] = {}
CORE_FALLBACKS = ("drop_oldest", "notice", "error")
CORE_PRESETS = frozenset(PRESETS)
_DEFAULT_TRAITS = Traits()
MISSING = "needs a system that is not installed"


def register_system(system: System) -> None:
    """Let a system carry out policies with settings beyond the core's. The first one is used."""
    _systems.append(system)


def register_trimmer(kind: str, trim: Trim, get_notice: Callable[[Policy], str]) -> None:
    """Let requests be trimmed in this way before the oldest messages go."""
    TRIMMERS[kind] = Trimmer(trim, get_notice)


def add_preset(name: str, *overrides: Mapping[str, object]) -> Policy:
    """Add a preset that differs from `oneclaw` in these settings, and return it."""
    policy = ONECLAW
    for each in overrides:
        policy = Policy.parse(each, policy)
    PRESETS[name] = policy
    return policy


def has_systems() -> bool:
    """Return whether any system is installed beside what the core has."""
    return PRESETS.keys() > CORE_PRESETS


def find_system(policy: Policy) -> System | None:
    """Return the system that carries out a policy; None if the core does."""
    if not _systems or (not policy.others and policy.stages == ONECLAW.stages):
        return None
    return _systems[0]


def describe_traits(policy: Policy) -> Traits:
    """Return what a policy does besides its pass."""
    system = find_system(policy)
    return system.describe_traits(policy) if system else _DEFAULT_TRAITS


def require_parts(policy: Policy) -> None:
    """Raise PolicyError if a policy needs a fallback that only an absent system has."""
    kind = policy.fallback.kind
    if kind not in CORE_FALLBACKS and kind not in TRIMMERS:
        raise PolicyError("fallback.kind", MISSING)
