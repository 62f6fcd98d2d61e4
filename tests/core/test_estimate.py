"""Estimates: characters to tokens, corrected by the last call's real count."""

import pytest

from compaction.core.estimate import (
    LastUsage,
    Measurement,
    build_counter,
    count_entry_tokens,
    measure,
)
from compaction.core.policy import Policy
from compaction.core.presets import ONECLAW, PRESETS
from compaction.core.transcript import Transcript, TranscriptCall, TranscriptEntry


def entry(seq: int, characters: int) -> TranscriptEntry:
    return TranscriptEntry(seq=seq, role="user", content="x" * characters)


@pytest.mark.parametrize(
    ("characters", "tokens"), [(0, 0), (1, 1), (3, 1), (4, 1), (7, 1), (8, 2), (30_000, 7_500)]
)
def test_four_characters_are_a_token_rounded_down_at_least_one(
    characters: int, tokens: int
) -> None:
    assert build_counter(ONECLAW).count_characters(characters) == tokens


def test_an_empty_message_counts_what_its_policy_adds_and_nothing_else() -> None:
    transcript = Transcript(entries=(entry(1, 0), entry(2, 400)))
    assert measure(transcript, ONECLAW).tokens == 100
    assert measure(transcript, PRESETS["baseagent"]).tokens == 4 + 104
    assert measure(transcript, PRESETS["wolffish"]).tokens == 20 + 287


def test_a_policy_may_count_other_characters_per_token() -> None:
    assert build_counter(under(chars_per_token=1.5)).count_characters(30) == 20
    assert build_counter(under(chars_per_token=3)).count_characters(30) == 10


def test_it_counts_only_what_would_be_sent() -> None:
    live = Transcript(
        entries=(entry(91, 400), entry(92, 800)), summary="s" * 40, overhead_tokens=25
    )
    assert measure(live, ONECLAW) == Measurement(
        tokens=25 + 10 + 100 + 200, source="estimated", token_ratio=1.0
    )


def test_an_empty_session_costs_its_overhead() -> None:
    assert measure(Transcript(), ONECLAW).tokens == 0
    assert measure(Transcript(overhead_tokens=7), ONECLAW).tokens == 7


def test_tool_calls_count_with_their_names_and_arguments() -> None:
    call = TranscriptCall(id="a", name="read", arguments='{"path": 1}')
    assert (
        measure(
            Transcript(entries=(TranscriptEntry(seq=1, role="assistant", calls=(call,)),)), ONECLAW
        ).tokens
        == (4 + 11) // 4
    )


def test_an_entry_that_comes_counted_keeps_its_count() -> None:
    counted_entry = TranscriptEntry(seq=1, role="user", content="x" * 400, tokens=250)
    assert measure(Transcript(entries=(counted_entry,)), ONECLAW).tokens == 250


def test_weighing_leaves_counted_entries_the_objects_they_are() -> None:
    counted_entry, new_entry = TranscriptEntry(seq=1, role="user", tokens=5), entry(2, 80)
    sized = count_entry_tokens(Transcript(entries=(counted_entry, new_entry)), ONECLAW)
    assert sized.entries[0] is counted_entry
    assert sized.entries[1].tokens == 20
    assert count_entry_tokens(sized, ONECLAW) is sized


def test_the_last_call_replaces_the_estimate_and_what_came_after_is_added() -> None:
    entries = tuple(entry(seq, 400) for seq in range(1, 6))
    measurement = measure(Transcript(entries=entries), ONECLAW, LastUsage(tokens=900, after_seq=3))
    assert measurement == Measurement(tokens=900 + 200, source="provider", token_ratio=3.0)


def test_the_scale_never_makes_messages_smaller_than_estimated() -> None:
    measurement = measure(
        Transcript(entries=(entry(1, 4_000),)), ONECLAW, LastUsage(tokens=500, after_seq=1)
    )
    assert (measurement.tokens, measurement.token_ratio) == (500, 1.0)


def test_a_policy_may_do_without_calibration() -> None:
    policy = Policy.parse({"estimate": {"calibration": "none"}}, ONECLAW)
    assert measure(
        Transcript(entries=(entry(1, 400),)), policy, LastUsage(tokens=900, after_seq=1)
    ) == Measurement(tokens=100)


def test_a_call_that_reported_nothing_is_no_measure() -> None:
    assert (
        measure(
            Transcript(entries=(entry(1, 400),)), ONECLAW, LastUsage(tokens=0, after_seq=1)
        ).source
        == "estimated"
    )


def under(**knobs: object) -> Policy:
    return Policy.parse({"estimate": knobs}, ONECLAW)


@pytest.mark.parametrize(
    ("rounding", "tokens"),
    [("floor_min1", [0, 1, 1, 2]), ("floor", [0, 0, 1, 2]), ("ceil", [0, 1, 2, 2])],
)
def test_a_text_is_rounded_as_the_policy_says(rounding: str, tokens: list[int]) -> None:
    assert [
        build_counter(under(rounding=rounding)).count_characters(characters)
        for characters in (0, 1, 7, 8)
    ] == tokens


def test_a_ratio_that_is_no_binary_fraction_rounds_exactly() -> None:
    assert build_counter(under(chars_per_token=3.3, rounding="ceil")).count_characters(33) == 10
    assert build_counter(under(chars_per_token=3.3, rounding="ceil")).count_characters(34) == 11


def test_family_and_safety_multiply_what_a_text_counts() -> None:
    policy = under(rounding="ceil", family_multiplier={"anthropic": 1.23}, safety_multiplier=1.15)
    assert build_counter(policy).count_characters(400) == 115
    assert build_counter(policy, "anthropic").count_characters(400) == 142  # 141.45
    assert build_counter(policy, "mistral").count_characters(400) == 115


def test_a_message_costs_its_framing_and_its_images() -> None:
    message = TranscriptEntry(seq=1, role="user", content="x" * 40, images=2)
    assert (
        measure(Transcript(entries=(message,)), under(per_message=4, image_tokens=1_000)).tokens
        == 4 + 10 + 2_000
    )
    assert (
        measure(Transcript(entries=(message,)), under(per_message_chars=30, image_tokens=0)).tokens
        == 17
    )
    assert (
        measure(
            Transcript(entries=(message,) * 2), under(per_conversation=24, image_tokens=0)
        ).tokens
        == 24 + 20
    )


def test_code_in_fences_counts_by_its_own_ratio() -> None:
    fenced_text = "```" + "c" * 294 + "```"
    policy = under(code_chars_per_token=3)
    assert build_counter(policy).count_text("x" * 400) == 100
    assert build_counter(policy).count_text(fenced_text) == 100
    assert build_counter(policy).count_text("x" * 400 + fenced_text + "x" * 400) == 300
    assert build_counter(policy).count_text("x" * 100 + "```" + "c" * 297) == 25 + 100
    assert build_counter(policy).count_text("x" * 300, is_code=True) == 100
    assert build_counter(ONECLAW).count_text(fenced_text) == 75


@pytest.mark.parametrize(
    ("role", "content", "tokens"),
    [
        ("tool", '{"a": 1234567890, "b": 123456}', 10),
        ("tool", " [1234567890, 1234567890, 123] ", 10),
        ("tool", "a plain text of thirty letters", 7),
        ("user", '{"a": 1234567890, "b": 123456}', 7),
    ],
)
def test_json_that_a_tool_gave_counts_as_code(role: str, content: str, tokens: int) -> None:
    entry = TranscriptEntry(seq=1, role=role, content=content)
    assert measure(Transcript(entries=(entry,)), under(code_chars_per_token=3)).tokens == tokens


def test_the_system_prompt_and_the_tools_count_where_the_policy_says() -> None:
    transcript = Transcript(system="s" * 400, tools="t" * 800, overhead_tokens=7)
    assert build_counter(ONECLAW).count_overhead(transcript) == 307
    assert build_counter(under(count_system=False)).count_overhead(transcript) == 207
    assert build_counter(under(count_tools=False)).count_overhead(transcript) == 107
    assert build_counter(under(safety_multiplier=2)).count_overhead(transcript) == 7 + 200 + 200


def test_the_calibration_is_the_policy_s() -> None:
    def measurement(kind: str, counted_entry: int) -> Measurement:
        entries = tuple(entry(seq, 400) for seq in range(1, 6))
        return measure(
            Transcript(entries=entries),
            under(calibration=kind),
            LastUsage(tokens=counted_entry + 50, input=counted_entry, after_seq=4),
        )

    assert (measurement("last_usage", 100).tokens, measurement("last_usage", 900).tokens) == (
        250,
        1_050,
    )
    assert (measurement("floor", 100).tokens, measurement("floor", 900).tokens) == (500, 1_050)
    assert (measurement("max", 100).tokens, measurement("max", 900).tokens) == (500, 900)
    assert (measurement("none", 100).tokens, measurement("none", 900).tokens) == (500, 500)
    assert [measurement(kind, 900).source for kind in ("last_usage", "floor", "max", "none")] == [
        "provider"
    ] * 3 + ["estimated"]
    assert (measurement("max", 900).token_ratio, measurement("floor", 100).source) == (
        1.8,
        "estimated",
    )


def test_an_edited_message_counts_as_it_is_shown() -> None:
    edited_entry = TranscriptEntry(
        seq=1, role="tool", content="[cleared]" + "x" * 31, original="y" * 4_000
    )
    assert measure(Transcript(entries=(edited_entry,)), ONECLAW).tokens == 10
