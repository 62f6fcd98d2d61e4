"""The stage dedupe_file_reads: only calls and their arguments count, never prose."""

from typing import Any

import pytest

from compaction.core.outcome import Outcome
from compaction.core.transcript import TranscriptCall, TranscriptEntry
from compaction.systems.neurolink.dedupe_file_reads import normalize_path, parse_whole_read
from tests.support.stage_transcripts import (
    answer,
    build_policy,
    compact,
    make_tool_exchange,
    result,
    user,
)

TEXT = "x" * 4_000


def dedupe(entries: tuple[TranscriptEntry, ...], **knobs: Any) -> Outcome:
    protect = knobs.pop("protect", {"kind": "count", "count": 1})
    return compact(
        (*entries, answer(90)),
        build_policy("dedupe_file_reads", dedupe=knobs, protect=protect),
        force=True,
    )


def read_twice(one: str, other: str, **options: Any) -> list[int]:
    """The seqs given up of two reads with these arguments; the first result is message 2."""
    return [
        edit.seq
        for edit in dedupe(
            (*make_tool_exchange(1, one, TEXT, **options), *make_tool_exchange(3, other, TEXT))
        ).edits
    ]


def test_an_earlier_read_refers_to_the_latest() -> None:
    outcome = dedupe(
        tuple(
            entry
            for seq in (1, 3, 5)
            for entry in make_tool_exchange(seq, '{"path": "src/a.py"}', TEXT)
        )
    )
    reference = "[File src/a.py - refer to latest read below]"
    assert [(edit.seq, edit.kind, edit.replacement) for edit in outcome.edits] == [
        (2, "deduplicated", reference),
        (4, "deduplicated", reference),
    ]
    assert outcome.entries[5].content == TEXT


def test_the_latest_read_may_be_one_that_nothing_touches() -> None:
    entries = (
        *make_tool_exchange(1, '{"path": "a"}', TEXT),
        *make_tool_exchange(3, '{"path": "a"}', TEXT),
    )
    assert [
        edit.seq
        for edit in compact(
            entries,
            build_policy("dedupe_file_reads", protect={"kind": "count", "count": 2}),
            force=True,
        ).edits
    ] == [2]


@pytest.mark.parametrize(
    "other",
    ['{"path": "./a.py"}', '{"file_path": "src/../a.py"}', '{"path": "a.py", "offset": null}'],
)
def test_one_file_may_be_spelled_in_several_ways(other: str) -> None:
    assert read_twice('{"path": "a.py"}', other) == [2]


@pytest.mark.parametrize(
    "other",
    [
        '{"path": "b.py"}',
        '{"path": "/a.py"}',
        '{"path": "A.py"}',
        '{"path": "a.py", "encoding": "latin-1"}',
    ],
)
def test_different_files_differ(other: str) -> None:
    assert read_twice('{"path": "a.py"}', other) == []


@pytest.mark.parametrize(
    "part",
    [
        '"offset": 10',
        '"limit": 50',
        '"start_line": 1',
        '"lineEnd": 9',
        '"view_range": [1, 2]',
        '"head": 5',
        '"max_bytes": 3',
    ],
)
def test_a_read_of_a_part_is_no_duplicate_and_makes_none(part: str) -> None:
    partial = f'{{"path": "a.py", {part}}}'
    assert read_twice('{"path": "a.py"}', partial) == []
    assert read_twice(partial, '{"path": "a.py"}') == []
    assert read_twice(partial, partial) == []


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "{",
        "[]",
        '"a.py"',
        "null",
        '{"path": 3}',
        '{"path": " "}',
        '{"command": "cat a.py"}',
        "[" * 9_999,
    ],
)
def test_arguments_that_name_no_file_are_no_read(arguments: str) -> None:
    assert parse_whole_read(TranscriptCall(id="1", name="read_file", arguments=arguments)) is None


def test_prose_is_no_read() -> None:
    prose = "I will read the docs. Reading docs/a.md now: cat docs/a.md " + TEXT
    entries = (
        user(1, prose),
        answer(2, prose),
        user(3, prose),
        answer(4, prose, calls="a"),
        result(5, "a", prose),
    )
    assert dedupe(entries).status == "skipped"


def test_only_the_tools_that_are_named_read() -> None:
    entries = (
        *make_tool_exchange(1, '{"path": "a"}', TEXT, tool="open"),
        *make_tool_exchange(3, '{"path": "a"}', TEXT, tool="open"),
    )
    assert dedupe(entries).edits == ()
    assert [edit.seq for edit in dedupe(entries, tools=["open"]).edits] == [2]


def test_two_tools_may_read_the_same_file() -> None:
    assert read_twice('{"path": "a"}', '{"path": "a"}', tool="cat") == [2]


def test_a_read_that_failed_neither_goes_nor_stands_for_another() -> None:
    entries = (
        *make_tool_exchange(1, '{"path": "a"}', TEXT),
        *make_tool_exchange(3, '{"path": "a"}', "No such file.", is_error=True),
    )
    assert dedupe(entries).edits == ()


def test_what_was_shortened_before_does_not_stand_for_the_file() -> None:
    entries = (
        *make_tool_exchange(1, '{"path": "a"}', TEXT),
        *make_tool_exchange(3, '{"path": "a"}', "[Tool result cleared]", original=TEXT),
    )
    assert dedupe(entries).edits == ()


def test_parallel_reads_pair_by_id() -> None:
    calls = tuple(
        TranscriptCall(id=each, name="read", arguments=f'{{"path": "{each}"}}')
        for each in ("one", "two")
    )
    entries = tuple(
        entry
        for seq in (1, 4)
        for entry in (
            TranscriptEntry(seq=seq, role="assistant", calls=calls),
            result(seq + 1, "two", "2" * 4_000, tool="read"),
            result(seq + 2, "one", "1" * 4_000, tool="read"),
        )
    )
    reference = {edit.seq: edit.replacement for edit in dedupe(entries).edits}
    assert reference == {
        2: "[File two - refer to latest read below]",
        3: "[File one - refer to latest read below]",
    }


def test_it_must_save_its_share_of_what_the_reads_of_a_file_take() -> None:
    entries = (
        *make_tool_exchange(1, '{"path": "a"}', "x" * 800),
        *make_tool_exchange(3, '{"path": "a"}', "x" * 3_200),
    )
    assert dedupe(entries, minimum_ratio=0.3).edits == ()
    assert [edit.seq for edit in dedupe(entries, minimum_ratio=0.15).edits] == [2]
    more = (
        *entries,
        *make_tool_exchange(5, '{"path": "b"}', TEXT),
        *make_tool_exchange(7, '{"path": "b"}', TEXT),
    )
    assert [edit.seq for edit in dedupe(more, minimum_ratio=0.3).edits] == [6]


def test_protected_reads_stay() -> None:
    entries = (
        *make_tool_exchange(1, '{"path": "a"}', TEXT),
        *make_tool_exchange(3, '{"path": "a"}', TEXT),
        *make_tool_exchange(5, '{"path": "a"}', TEXT),
    )
    assert [edit.seq for edit in dedupe(entries, protect={"kind": "count", "count": 4}).edits] == [
        2
    ]
    assert [
        edit.seq
        for edit in dedupe(entries, protect={"kind": "count", "count": 1, "first": 1}).edits
    ] == [4]
    assert (
        dedupe(entries, protect={"kind": "count", "count": 1, "tools": ["read_file"]}).edits == ()
    )


def test_the_placeholder_may_say_it_otherwise_and_twice_is_once() -> None:
    entries = (
        *make_tool_exchange(1, '{"path": "a"}', TEXT),
        *make_tool_exchange(3, '{"path": "a"}', TEXT),
    )
    once = dedupe(entries, placeholder="see {path}")
    assert once.edits[0].replacement == "see a"
    assert dedupe(once.entries[:-1], placeholder="see {path}").status == "skipped"


@pytest.mark.parametrize(
    ("spelling", "path"),
    [
        ("./a//b/../c", "a/c"),
        ("/../x", "/x"),
        ("../../a/..", "../.."),
        ("a\\b", "a/b"),
        (" /x/ ", "/x"),
        ("a\ud800\x00b", "ab"),
        ("", ""),
    ],
)
def test_a_path_has_one_spelling(spelling: str, path: str) -> None:
    assert normalize_path(spelling) == path
