"""The structured state of a conversation and its memory block: how a delta changes them, what they may hold, how they are read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from compaction.core.groups.summaries import StateKnobs as Limits

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
class SectionChange:
    """What becomes of one section: sentences added, sentences put in place of others (old, new), sentences that no longer hold."""

    add: tuple[str, ...] = ()
    update: tuple[tuple[str, str], ...] = ()
    remove: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class StateDelta:
    """Changes by section, and new entries of the memory block."""

    sections: Mapping[str, SectionChange] = field(default_factory=dict)
    memory: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class StructuredState:
    """All that is kept beside a summary; every section is there, newest items last, and so are the memory's entries."""

    sections: Sections = field(default_factory=lambda: dict.fromkeys(SECTIONS, ()))
    memory: tuple[str, ...] = ()
    memory_summary: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to tell."""
        return not (any(self.sections.values()) or self.memory or self.memory_summary)


def merge_delta(
    structured_state: StructuredState, delta: StateDelta, limits: Limits, *, memory: bool = True
) -> StructuredState:
    """The state after a delta: what it names becomes the newest, and each section keeps the newest items its limit allows.

    A delta merged twice changes no more than once. What it adds wins over what it removes. Without `memory` no entries are taken.
    """
    sections = {
        name: _apply_change(
            structured_state.sections.get(name, ()),
            delta.sections.get(name, SectionChange()),
            getattr(limits, name),
        )
        for name in SECTIONS
    }
    memory_keys = set(map(normalize_sentence, structured_state.memory))
    new_entries = (
        _drop_duplicates(
            entry for entry in delta.memory if normalize_sentence(entry) not in memory_keys
        )
        if memory
        else ()
    )
    return StructuredState(
        sections=sections,
        memory=(*structured_state.memory, *new_entries),
        memory_summary=structured_state.memory_summary,
    )


def undo_change(
    structured_state: StructuredState, before: StructuredState, after: StructuredState
) -> StructuredState:
    """The state as if what changed it from `before` to `after` had not been; what others changed since stays."""
    return StructuredState(
        sections={
            name: _undo_items(
                structured_state.sections[name], before.sections[name], after.sections[name]
            )
            for name in SECTIONS
        },
        memory=_undo_items(structured_state.memory, before.memory, after.memory),
        memory_summary=before.memory_summary
        if structured_state.memory_summary == after.memory_summary
        else structured_state.memory_summary,
    )


def _undo_items(
    items: tuple[str, ...], before: tuple[str, ...], after: tuple[str, ...]
) -> tuple[str, ...]:
    before_keys, after_keys = (
        set(map(normalize_sentence, before)),
        set(map(normalize_sentence, after)),
    )
    missing_items = tuple(
        item
        for item in before
        if normalize_sentence(item) not in after_keys | set(map(normalize_sentence, items))
    )
    return (
        *missing_items,
        *(
            item
            for item in items
            if normalize_sentence(item) in before_keys or normalize_sentence(item) not in after_keys
        ),
    )


def normalize_sentence(text: str) -> str:
    """What makes two sentences the same one: neither case, nor spaces, nor the full stop."""
    return " ".join(text.casefold().split()).rstrip(".")


def render_state(structured_state: StructuredState) -> str:
    """The state and the memory as reference text, empty for nothing: what stands beside the summary in a request."""
    parts = []
    lists = [
        f"{TITLES[name]}:\n{_format_bullets(structured_state.sections[name])}"
        for name in SECTIONS
        if structured_state.sections.get(name)
    ]
    if lists:
        parts.append("State of the work:\n" + "\n".join(lists))
    if structured_state.memory_summary:
        parts.append(f"Memory, summarized:\n{structured_state.memory_summary}")
    if structured_state.memory:
        parts.append(f"Memory, newest last:\n{_format_bullets(structured_state.memory)}")
    return "\n\n".join(parts)


def fit_state(structured_state: StructuredState, max_chars: int) -> str:
    """The same in so many characters: where it is longer, with shorter items, and at last without its end."""
    for item_chars in (ENTRY_CHARS, 200, 80):
        text = render_state(_shorten_items(structured_state, item_chars))
        if len(text) <= max_chars:
            return text
    return text[:max_chars].rpartition("\n")[0]


def number_sections(structured_state: StructuredState, limits: Limits) -> str:
    """The sections that a policy keeps, with numbers by which a delta may name their items."""
    return "\n".join(
        _number_items(name, structured_state.sections.get(name, ()))
        for name in SECTIONS
        if getattr(limits, name)
    )


def _shorten_items(structured_state: StructuredState, item_chars: int) -> StructuredState:
    def cut_items(items: Iterable[str]) -> tuple[str, ...]:
        return tuple(
            item if len(item) <= item_chars else item[: item_chars - 1] + "…" for item in items
        )

    return replace(
        structured_state,
        sections={name: cut_items(items) for name, items in structured_state.sections.items()},
        memory=cut_items(structured_state.memory),
    )


def _apply_change(items: tuple[str, ...], change: SectionChange, limit: int) -> tuple[str, ...]:
    replacements = {normalize_sentence(old): new for old, new in change.update}
    # An updated sentence stands once, also where its old form is not found: a summarizer may not quote it exactly.
    new_items = _drop_duplicates((*(new for _, new in change.update), *change.add))
    new_items = new_items[-limit:] if limit else ()
    obsolete_keys = (
        set(map(normalize_sentence, new_items))
        | set(replacements)
        | set(map(normalize_sentence, change.remove))
    )
    remaining_items = tuple(item for item in items if normalize_sentence(item) not in obsolete_keys)
    return (*remaining_items, *new_items)[-limit:] if limit else ()


def _drop_duplicates(texts: Iterable[str]) -> tuple[str, ...]:
    """Without blank ones, each once, where it is said last."""
    text_by_key: dict[str, str] = {}
    for text in texts:
        if normalize_sentence(text):
            text_by_key.pop(normalize_sentence(text), None)
            text_by_key[normalize_sentence(text)] = text
    return tuple(text_by_key.values())


def _format_bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _number_items(name: str, items: tuple[str, ...]) -> str:
    return (
        f"{name}:\n" + "\n".join(f"{number}. {item}" for number, item in enumerate(items, start=1))
        if items
        else f"{name}: none"
    )
