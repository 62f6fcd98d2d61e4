"""Estimates: characters to tokens, corrected by the last call's real count."""

import pytest

from compaction.core.estimate import LastUsage, Measure, measure, tokens_of, weigh
from compaction.core.policy import Policy
from compaction.core.presets import ONECLAW
from compaction.core.transcript import Call, Entry, Transcript


def entry(seq: int, characters: int) -> Entry:
    return Entry(seq=seq, role="user", content="x" * characters)


@pytest.mark.parametrize(("characters", "tokens"), [(0, 1), (1, 1), (3, 1), (4, 1), (7, 1), (8, 2), (30_000, 7_500)])
def test_four_characters_are_a_token_rounded_down_at_least_one(characters: int, tokens: int) -> None:
    assert tokens_of(characters, ONECLAW) == tokens


def test_a_policy_may_count_other_characters_per_token() -> None:
    assert tokens_of(30, Policy.parse({"estimate": {"chars_per_token": 1.5}}, ONECLAW)) == 20
    assert tokens_of(30, Policy.parse({"estimate": {"chars_per_token": 3}}, ONECLAW)) == 10


def test_it_counts_only_what_would_be_sent() -> None:
    live = Transcript(entries=(entry(91, 400), entry(92, 800)), summary="s" * 40, overhead_tokens=25)
    assert measure(live, ONECLAW) == Measure(tokens=25 + 10 + 100 + 200, source="estimated", scale=1.0)


def test_an_empty_session_costs_its_overhead() -> None:
    assert measure(Transcript(), ONECLAW).tokens == 0
    assert measure(Transcript(overhead_tokens=7), ONECLAW).tokens == 7


def test_tool_calls_count_with_their_names_and_arguments() -> None:
    call = Call(id="a", name="read", arguments='{"path": 1}')
    assert measure(Transcript(entries=(Entry(seq=1, role="assistant", calls=(call,)),)), ONECLAW).tokens == (4 + 11) // 4


def test_an_entry_that_comes_counted_keeps_its_count() -> None:
    counted = Entry(seq=1, role="user", content="x" * 400, tokens=250)
    assert measure(Transcript(entries=(counted,)), ONECLAW).tokens == 250


def test_weighing_leaves_counted_entries_the_objects_they_are() -> None:
    counted, uncounted = Entry(seq=1, role="user", tokens=5), entry(2, 80)
    weighed = weigh(Transcript(entries=(counted, uncounted)), ONECLAW)
    assert weighed.entries[0] is counted
    assert weighed.entries[1].tokens == 20
    assert weigh(weighed, ONECLAW) is weighed


def test_the_last_call_replaces_the_estimate_and_what_came_after_is_added() -> None:
    entries = tuple(entry(seq, 400) for seq in range(1, 6))
    measured = measure(Transcript(entries=entries), ONECLAW, LastUsage(tokens=900, after_seq=3))
    assert measured == Measure(tokens=900 + 200, source="provider", scale=3.0)


def test_the_scale_never_makes_messages_smaller_than_estimated() -> None:
    measured = measure(Transcript(entries=(entry(1, 4_000),)), ONECLAW, LastUsage(tokens=500, after_seq=1))
    assert (measured.tokens, measured.scale) == (500, 1.0)


def test_a_policy_may_do_without_calibration() -> None:
    policy = Policy.parse({"estimate": {"calibration": "none"}}, ONECLAW)
    assert measure(Transcript(entries=(entry(1, 400),)), policy, LastUsage(tokens=900, after_seq=1)) == Measure(tokens=100)


def test_a_call_that_reported_nothing_is_no_measure() -> None:
    assert measure(Transcript(entries=(entry(1, 400),)), ONECLAW, LastUsage(tokens=0, after_seq=1)).source == "estimated"
