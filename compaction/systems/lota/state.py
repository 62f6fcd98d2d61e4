"""The structured state of a conversation and its memory block, which go with the summary."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from compaction.systems.lota.settings import StateKnobs as Limits

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
ITEM_CHARS = 500  # the most characters of one item of the state
ENTRY_CHARS = 2_000  # the most characters of one entry of the memory block

Sections = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class SectionChange:
    """Changes of one section. `update` has pairs of an old sentence and its replacement."""

    add: tuple[str, ...] = ()
    update: tuple[tuple[str, str], ...] = ()
    remove: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class StateDelta:
    """Changes by section, and new entries of the memory block, as a summarizer returns them."""

    sections: Mapping[str, SectionChange] = field(default_factory=dict)
    memory: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class StructuredState:
    """What is stored beside a summary. Every section is there; the newest items are last."""

    sections: Sections = field(default_factory=lambda: dict.fromkeys(SECTIONS, ()))
    memory: tuple[str, ...] = ()
    memory_summary: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in it."""
        return not (any(self.sections.values()) or self.memory or self.memory_summary)


def merge_delta(
    structured_state: StructuredState, delta: StateDelta, limits: Limits, *, memory: bool = True
) -> StructuredState:
    """Return the state after a delta.

    What the delta names becomes the newest of its section, and each section keeps as many of the
    newest items as its limit allows. Merging a delta twice has the same effect as once. If a delta
    adds and removes the same sentence, it is added. Without `memory`, no entries are added to the
    memory block.
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
    new_entries: tuple[str, ...] = ()
    if memory:
        new_entries = _drop_duplicates(
            entry for entry in delta.memory if normalize_sentence(entry) not in memory_keys
        )
    return StructuredState(
        sections=sections,
        memory=(*structured_state.memory, *new_entries),
        memory_summary=structured_state.memory_summary,
    )


def undo_change(
    structured_state: StructuredState, before: StructuredState, after: StructuredState
) -> StructuredState:
    """Take back the change from `before` to `after`; what was changed later stays."""
    sections = {
        name: _undo_items(
            structured_state.sections[name], before.sections[name], after.sections[name]
        )
        for name in SECTIONS
    }
    memory_summary = structured_state.memory_summary
    if memory_summary == after.memory_summary:
        memory_summary = before.memory_summary
    return StructuredState(
        sections=sections,
        memory=_undo_items(structured_state.memory, before.memory, after.memory),
        memory_summary=memory_summary,
    )


def _undo_items(
    items: tuple[str, ...], before: tuple[str, ...], after: tuple[str, ...]
) -> tuple[str, ...]:
    """Bring back the items that the change removed, and drop those that it added."""
    before_keys = set(map(normalize_sentence, before))
    after_keys = set(map(normalize_sentence, after))
    current_keys = set(map(normalize_sentence, items))
    removed_items = [
        item for item in before if normalize_sentence(item) not in after_keys | current_keys
    ]
    added_keys = after_keys - before_keys
    other_items = [item for item in items if normalize_sentence(item) not in added_keys]
    return (*removed_items, *other_items)


def normalize_sentence(text: str) -> str:
    """Return the form by which sentences are compared: without case, extra spaces and full stop."""
    return " ".join(text.casefold().split()).rstrip(".")


def render_state(structured_state: StructuredState) -> str:
    """Return the state and the memory as the text that is sent beside the summary.

    The text is empty if there is nothing in them.
    """
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
    """Return the text of `render_state` in at most `max_chars` characters.

    If it is too long, its items are shortened, and in the end the text is cut at a line.
    """
    for item_chars in (ENTRY_CHARS, 200, 80):
        text = render_state(_shorten_items(structured_state, item_chars))
        if len(text) <= max_chars:
            return text
    return text[:max_chars].rpartition("\n")[0]


def number_sections(structured_state: StructuredState, limits: Limits) -> str:
    """Return the sections that a policy keeps, with numbers by which a delta may name the items."""
    return "\n".join(
        _number_items(name, structured_state.sections.get(name, ()))
        for name in SECTIONS
        if getattr(limits, name)
    )


def _shorten_items(structured_state: StructuredState, item_chars: int) -> StructuredState:
    def cut_item(item: str) -> str:
        return item if len(item) <= item_chars else item[: item_chars - 1] + "…"

    def cut_items(items: Iterable[str]) -> tuple[str, ...]:
        return tuple(map(cut_item, items))

    return replace(
        structured_state,
        sections={name: cut_items(items) for name, items in structured_state.sections.items()},
        memory=cut_items(structured_state.memory),
    )


def _apply_change(items: tuple[str, ...], change: SectionChange, limit: int) -> tuple[str, ...]:
    if not limit:
        return ()
    # The new form of an updated sentence is added even if its old form is not found, because a
    # summarizer may not quote the old one exactly.
    updated_items = [new for _, new in change.update]
    new_items = _drop_duplicates((*updated_items, *change.add))[-limit:]
    obsolete_items = [*new_items, *(old for old, _ in change.update), *change.remove]
    obsolete_keys = set(map(normalize_sentence, obsolete_items))
    remaining_items = [item for item in items if normalize_sentence(item) not in obsolete_keys]
    return (*remaining_items, *new_items)[-limit:]


def _drop_duplicates(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the texts that are not blank, each once, at its last position."""
    text_by_key: dict[str, str] = {}
    for text in texts:
        if normalize_sentence(text):
            text_by_key.pop(normalize_sentence(text), None)
            text_by_key[normalize_sentence(text)] = text
    return tuple(text_by_key.values())


def _format_bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {join_text_lines(item)}" for item in items)


def _number_items(name: str, items: tuple[str, ...]) -> str:
    if not items:
        return f"{name}: none"
    lines = [f"{number}. {join_text_lines(item)}" for number, item in enumerate(items, start=1)]
    return "\n".join([f"{name}:", *lines])


def join_text_lines(text: str) -> str:
    """Return the text in one line, so that no part of it looks like a line of its own."""
    return " ".join(text.splitlines())
