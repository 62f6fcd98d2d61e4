"""How much of a tool's output is stored and shown: the pure cut, with the figures of the seeds."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatcore.base.truncation import cut_tool_result
from compaction.core.attachments import preview_text
from compaction.core.policy import Policy
from compaction.core.presets import PRESETS
from compaction.systems.kit.outputs import truncate_output
from compaction.systems.kit.settings import OutputKnobs

ONECLAW, NEUROLINK, BASEAGENT = (PRESETS[name] for name in ("oneclaw", "neurolink", "baseagent"))
MARKERS = [
    "[{kept} of {total}, {omitted} left out]",
    "\n\n[...truncated...]\n\n",
    "\n[{total:,}/{kept:,}]",
    "[{kept}{kept}]",
]


def change(policy: Policy, **knobs: object) -> Policy:
    return Policy.parse({"tool_result": knobs}, policy)


def policies() -> st.SearchStrategy[Policy]:
    return st.builds(
        partial(change, ONECLAW),
        limit=st.integers(1, 300),
        unit=st.sampled_from(["chars", "bytes", "tokens"]),
        lines=st.none() | st.integers(1, 12),
        keep=st.sampled_from(["head", "tail", "middle_out", "quarters"]),
        marker=st.sampled_from(MARKERS),
    )


def outputs() -> st.SearchStrategy[str]:
    """Any characters, lone surrogates and other texts' markers too."""
    pieces = st.sampled_from(
        [
            "a",
            "é",
            "漢",
            "👋🏽",
            "\n",
            "\ud83d",
            "word ",
            *(marker.format(kept=7, total=9, omitted=2) for marker in MARKERS),
        ]
    )
    return st.lists(pieces | st.text(max_size=20), max_size=150).map("".join) | st.builds(
        lambda p, n: p * n, pieces, st.integers(0, 1500)
    )


def test_oneclaw_stores_30001_characters_as_30076() -> None:
    """FEAT-011, Tool Result Truncation Rules."""
    done = truncate_output("x" * 30_001, ONECLAW)
    assert (len(done.content), done.original_chars) == (30_076, 30_001)
    assert done.content.endswith(
        "x\n\n[... content truncated, showing first 30000 characters of 30001 total ...]"
    )
    assert truncate_output("x" * 30_000, ONECLAW).original_chars is None


@given(outputs())
def test_oneclaw_gives_what_the_save_hook_gives(text: str) -> None:
    small = change(ONECLAW, limit=100)
    assert (
        truncate_output(text, small).content,
        truncate_output(text, small).original_chars,
    ) == cut_tool_result(text, 100)
    again = truncate_output(text, small).content
    assert (
        truncate_output(again, small).content,
        truncate_output(again, small).original_chars,
    ) == cut_tool_result(again, 100)


def test_neurolink_keeps_the_last_51200_bytes_and_2000_lines() -> None:
    """Tool Output Limits: MAX_TOOL_OUTPUT_BYTES, MAX_TOOL_OUTPUT_LINES, direction tail."""
    by_bytes = truncate_output("x" * 60_000 + "end", NEUROLINK).content
    assert (
        by_bytes == "x" * 51_197 + "end" + "\n\n[Output truncated from 60003 bytes to 51200 bytes]"
    )
    by_lines = truncate_output("".join(f"{n}\n" for n in range(2_001)), NEUROLINK).content
    assert by_lines.startswith("1\n2\n")
    assert by_lines.endswith("2000\n\n\n[Output truncated from 8895 bytes to 8893 bytes]")
    whole = "line\n" * 2_000
    assert truncate_output(whole, NEUROLINK).content == whole


def test_neurolink_counts_bytes_and_splits_no_character() -> None:
    done = truncate_output("漢" * 20_000, NEUROLINK)
    assert done.content == "漢" * 17_066 + "\n\n[Output truncated from 60000 bytes to 51198 bytes]"
    assert done.original_chars == 20_000


def middle_out_truncate(text: str, max_tokens: int = 2500) -> str:
    """As BaseAgent's document prints it."""
    max_chars = max_tokens * 4
    if len(text) <= max_chars:
        return text
    keep = max_chars // 2 - 50
    return f"{text[:keep]}\n\n[...truncated...]\n\n{text[-keep:]}"


@pytest.mark.parametrize("length", [9_999, 10_000, 10_001, 123_456])
def test_baseagent_cuts_as_its_document_does(length: int) -> None:
    text = "".join(chr(33 + place % 90) for place in range(length))
    assert truncate_output(text, BASEAGENT).content == middle_out_truncate(text)


def test_quarters_keep_one_of_the_head_and_three_of_the_tail() -> None:
    quarters = change(BASEAGENT, keep="quarters", unit="chars", limit=500, marker="|")
    assert truncate_output("a" * 300 + "b" * 700, quarters).content == "a" * 100 + "|" + "b" * 300


@given(outputs(), policies())
def test_cutting_twice_changes_nothing_and_nothing_is_too_long(text: str, policy: Policy) -> None:
    once = truncate_output(text, policy)
    assert truncate_output(once.content, policy).content == once.content
    assert (once.content == text) or once.original_chars == len(text)
    limit = (
        policy.tool_result.limit * 4
        if policy.get(OutputKnobs).unit == "tokens"
        else policy.tool_result.limit
    )
    assert len(once.content) <= limit + 150
    if (
        once.content != text
        and policy.get(OutputKnobs).unit == "bytes"
        and policy.get(OutputKnobs).marker == MARKERS[1]
    ):
        assert len(once.content.encode("utf-8", "surrogatepass")) <= limit + len(
            policy.get(OutputKnobs).marker
        )


@given(outputs(), policies())
def test_what_is_kept_stands_at_the_ends_of_the_output(text: str, policy: Policy) -> None:
    policy = change(policy, marker="\x01")
    content = truncate_output(text, policy).content
    if content == text:
        return
    keep = policy.get(OutputKnobs).keep
    parts = content.rpartition if keep in ("head", "tail") else content.partition
    head, _, tail = parts("\x01")
    if keep == "tail":
        head, tail = "", head
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) < len(text)


def test_a_preview_says_how_long_the_whole_is() -> None:
    """Wolffish, Task File Summaries."""
    text = '{"account":"younes@wolffi.sh","count":41,' + "x" * 9_409
    assert preview_text(text).startswith('(9,450 chars) {"account":"younes@wolffi.sh","count":41,')
    assert preview_text(text).endswith("x... [7,450 chars omitted]")
    assert preview_text("short") == "(5 chars) short"
