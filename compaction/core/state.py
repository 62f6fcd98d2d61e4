"""The structured state of a conversation and its memory block: how a delta changes them, what they may hold, how they are read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from compaction.core.groups.summaries import State as Limits

SECTIONS = ("decisions", "constraints", "tasks", "questions", "risks", "artifacts", "contributions")
TITLES = {
    "decisions": "Key decisions",
    "constraints": "Active constraints",
    "tasks": "Tasks",
    "questions": "Open questions",
    "risks": "Risks",
    "artifacts": "Artifacts",
    "contributions": "Contributions",
}
ITEM_CHARS = 500
ENTRY_CHARS = 2_000

Sections = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """What becomes of one section: sentences added, sentences put in place of others (old, new), sentences that no longer hold."""

    add: tuple[str, ...] = ()
    update: tuple[tuple[str, str], ...] = ()
    remove: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Delta:
    """Changes by section, and new entries of the memory block."""

    sections: Mapping[str, Change] = field(default_factory=dict)
    memory: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Working:
    """All that is kept beside a summary; every section is there, newest items last, and so are the memory's entries."""

    state: Sections = field(default_factory=lambda: dict.fromkeys(SECTIONS, ()))
    memory: tuple[str, ...] = ()
    memory_summary: str = ""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to tell."""
        return not (any(self.state.values()) or self.memory or self.memory_summary)


def merge(working: Working, delta: Delta, limits: Limits, *, memory: bool = True) -> Working:
    """The state after a delta: what it names becomes the newest, and each section keeps the newest items its limit allows.

    A delta merged twice changes no more than once. What it adds wins over what it removes. Without `memory` no entries are taken.
    """
    state = {
        name: _changed(
            working.state.get(name, ()), delta.sections.get(name, Change()), getattr(limits, name)
        )
        for name in SECTIONS
    }
    known = set(map(key, working.memory))
    fresh = _distinct(entry for entry in delta.memory if key(entry) not in known) if memory else ()
    return Working(
        state=state, memory=(*working.memory, *fresh), memory_summary=working.memory_summary
    )


def without(working: Working, before: Working, after: Working) -> Working:
    """The state as if what changed it from `before` to `after` had not been; what others changed since stays."""
    return Working(
        state={
            name: _undone(working.state[name], before.state[name], after.state[name])
            for name in SECTIONS
        },
        memory=_undone(working.memory, before.memory, after.memory),
        memory_summary=before.memory_summary
        if working.memory_summary == after.memory_summary
        else working.memory_summary,
    )


def _undone(
    items: tuple[str, ...], before: tuple[str, ...], after: tuple[str, ...]
) -> tuple[str, ...]:
    known, made = set(map(key, before)), set(map(key, after))
    back = tuple(item for item in before if key(item) not in made | set(map(key, items)))
    return (*back, *(item for item in items if key(item) in known or key(item) not in made))


def key(text: str) -> str:
    """What makes two sentences the same one: neither case, nor spaces, nor the full stop."""
    return " ".join(text.casefold().split()).rstrip(".")


def rendered(working: Working) -> str:
    """The state and the memory as reference text, empty for nothing: what stands beside the summary in a request."""
    parts = []
    lists = [
        f"{TITLES[name]}:\n{_bullets(working.state[name])}"
        for name in SECTIONS
        if working.state.get(name)
    ]
    if lists:
        parts.append("State of the work:\n" + "\n".join(lists))
    if working.memory_summary:
        parts.append(f"Memory, summarized:\n{working.memory_summary}")
    if working.memory:
        parts.append(f"Memory, newest last:\n{_bullets(working.memory)}")
    return "\n\n".join(parts)


def fitted(working: Working, most_chars: int) -> str:
    """The same in so many characters: where it is longer, with shorter items, and at last without its end."""
    for longest in (ENTRY_CHARS, 200, 80):
        text = rendered(_shortened(working, longest))
        if len(text) <= most_chars:
            return text
    return text[:most_chars].rpartition("\n")[0]


def numbered(working: Working, limits: Limits) -> str:
    """The sections that a policy keeps, with numbers by which a delta may name their items."""
    return "\n".join(
        _numbered(name, working.state.get(name, ())) for name in SECTIONS if getattr(limits, name)
    )


def _shortened(working: Working, longest: int) -> Working:
    def cut(items: Iterable[str]) -> tuple[str, ...]:
        return tuple(item if len(item) <= longest else item[: longest - 1] + "…" for item in items)

    return replace(
        working,
        state={name: cut(items) for name, items in working.state.items()},
        memory=cut(working.memory),
    )


def _changed(items: tuple[str, ...], change: Change, limit: int) -> tuple[str, ...]:
    replaced = {key(old): new for old, new in change.update}
    # An updated sentence stands once, also where its old form is not found: a summarizer may not quote it exactly.
    fresh = _distinct((*(new for _, new in change.update), *change.add))
    fresh = fresh[-limit:] if limit else ()
    gone = set(map(key, fresh)) | set(replaced) | set(map(key, change.remove))
    kept = tuple(item for item in items if key(item) not in gone)
    return (*kept, *fresh)[-limit:] if limit else ()


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """Without blank ones, each once, where it is said last."""
    found: dict[str, str] = {}
    for text in texts:
        if key(text):
            found.pop(key(text), None)
            found[key(text)] = text
    return tuple(found.values())


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _numbered(name: str, items: tuple[str, ...]) -> str:
    return (
        f"{name}:\n" + "\n".join(f"{number}. {item}" for number, item in enumerate(items, start=1))
        if items
        else f"{name}: none"
    )
