"""Entries of a transcript that are copied with other values."""

from dataclasses import fields, replace

from compaction.core.transcript import TranscriptCall, TranscriptEntry, change_entry

ENTRY = TranscriptEntry(
    seq=3,
    role="tool",
    content="long",
    tokens=9,
    calls=(TranscriptCall(id="a", name="look"),),
    call_id="b",
    tool_name="look",
    is_error=True,
    pinned=True,
    images=2,
    original="longer",
    first_sent="longest",
)


def test_a_changed_entry_keeps_every_other_value() -> None:
    assert all(getattr(ENTRY, field.name) != field.default for field in fields(ENTRY))
    assert change_entry(ENTRY, tokens=5) == replace(ENTRY, tokens=5)


def test_a_changed_entry_may_have_another_text_and_no_images() -> None:
    changed_entry = change_entry(ENTRY, tokens=0, content="", original="", images=0)
    assert changed_entry == replace(ENTRY, tokens=0, content="", original="", images=0)
    assert ENTRY.content == "long"
