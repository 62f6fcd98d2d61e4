"""The protected tail by number, by share, by role and by turn; no tool pair is separated."""

import pytest

from compaction.core.transcript import Transcript, TranscriptEntry
from tests.support.stage_transcripts import (
    Summarizer,
    answer,
    build_policy,
    compact,
    result,
    talk,
    user,
)


def boundary(entries: tuple[TranscriptEntry, ...], **protect: object) -> int | None:
    """Where a pass asked for by hand parts a context that is within its threshold."""
    return compact(
        entries, build_policy("summarize", protect=protect), window=100_000, force=True
    ).boundary_seq


def test_the_newest_so_many_messages_stay() -> None:
    assert boundary(talk(20), kind="count", count=6) == 15
    assert boundary(talk(6), kind="count", count=6) is None


def test_a_number_is_never_less_because_it_falls_into_a_pair() -> None:
    entries = (*talk(4), user(5), answer(6, calls="ab"), result(7, "a"), result(8, "b"), answer(9))
    assert [boundary(entries, kind="count", count=count) for count in (1, 2, 3, 4, 5)] == [
        9,
        6,
        6,
        6,
        5,
    ]


def test_a_share_of_the_messages_stays_but_at_least_a_number() -> None:
    assert boundary(talk(40), kind="count_ratio", ratio=0.3, minimum=4) == 29
    assert boundary(talk(10), kind="count_ratio", ratio=0.3, minimum=4) == 7
    assert boundary(talk(4), kind="count_ratio", ratio=0.3, minimum=4) is None


def test_the_newest_turns_stay_whole() -> None:
    long_turn = [
        entry for seq in range(4, 20, 2) for entry in (answer(seq, calls="a"), result(seq + 1, "a"))
    ]
    entries = (user(1, tokens=500), answer(2), user(3), *long_turn, user(20), answer(21), user(22))
    assert [boundary(entries, kind="user_turns", count=count) for count in (0, 1, 2, 3, 4)] == [
        22,
        22,
        20,
        3,
        None,
    ]


def test_by_role_the_newest_of_each_stay_and_the_tail_holds_them_all() -> None:
    assert boundary(talk(20), kind="per_role", count=3) == 15
    rounds = [
        entry
        for seq in range(12, 20, 2)
        for entry in (answer(seq, calls="a"), result(seq + 1, "a"))
    ]
    assert boundary((*talk(11), *rounds), kind="per_role", count=1) == 11


def test_the_newest_message_stays_when_a_policy_protects_none() -> None:
    assert boundary(talk(5), kind="count", count=0) == 5


@pytest.mark.parametrize(
    "protect",
    [
        {"kind": "count", "count": 50},
        {"kind": "count_ratio", "ratio": 1, "minimum": 0},
        {"kind": "per_role", "count": 50},
        {"kind": "user_turns", "count": 50},
        {"kind": "token_ratio", "ratio": 0.8},
    ],
)
def test_over_the_threshold_there_is_something_to_do_whatever_is_protected(
    protect: dict[str, object],
) -> None:
    outcome = compact(talk(50), build_policy("summarize", protect=protect))
    assert outcome.is_applied
    assert outcome.tokens_after <= 8_500


def test_a_tail_larger_than_the_room_shrinks_to_half_of_it() -> None:
    entries = (*talk(8, 400), *talk(6, 8_000, first=9))
    outcome = compact(entries, build_policy("summarize", protect={"kind": "count", "count": 6}))
    assert outcome.boundary_seq == 14
    assert outcome.tokens_after <= 8_500


def test_the_first_messages_stay_however_old_and_are_not_summarized_twice_over() -> None:
    protect = {"kind": "count", "count": 4, "first": 2}
    first = compact(talk(50), build_policy("summarize", protect=protect))
    assert (first.exempt_seqs, first.boundary_seq) == ((1, 2), 47)
    grown = Transcript(
        entries=(*first.entries, *talk(46, first=51)), summary=first.summary, boundary_seq=47
    )
    second = compact(grown, build_policy("summarize", protect=protect))
    assert (second.exempt_seqs, second.boundary_seq) == ((1, 2), 93)


def test_the_first_messages_are_whole_pairs() -> None:
    entries = (user(1), answer(2, calls="ab"), result(3, "b"), result(4, "a"), *talk(46, first=5))
    outcome = compact(
        entries, build_policy("summarize", protect={"kind": "count", "count": 4, "first": 2})
    )
    assert outcome.exempt_seqs == (1, 2, 3, 4)


def test_first_messages_that_take_most_of_the_room_go_like_others() -> None:
    entries = (user(1, "x" * 30_000), *talk(10, first=2))
    outcome = compact(
        entries, build_policy("summarize", protect={"kind": "count", "count": 4, "first": 1})
    )
    assert (outcome.exempt_seqs, outcome.boundary_seq) == ((), 8)


def test_questions_that_a_policy_protects_by_role_stay_when_the_boundary_passes_them() -> None:
    rounds = [
        e
        for seq in range(4, 80, 2)
        for e in (answer(seq, "x" * 600, calls="a"), result(seq + 1, "a", "y" * 600))
    ]
    entries = (user(1, "old"), answer(2), user(3, "asked"), *rounds)
    outcome = compact(entries, build_policy("summarize", protect={"kind": "per_role", "count": 1}))
    assert outcome.exempt_seqs == (3,)
    assert outcome.boundary_seq is not None
    assert outcome.boundary_seq > 3


def test_an_open_turn_keeps_its_question_under_every_kind() -> None:
    rounds = [e for seq in range(42, 50, 2) for e in (answer(seq, calls="a"), result(seq + 1, "a"))]
    for protect in (
        {"kind": "count", "count": 2},
        {"kind": "per_role", "count": 1},
        {"kind": "count_ratio", "ratio": 0.01},
    ):
        outcome = compact(
            (*talk(40), user(41), *rounds), build_policy("summarize", protect=protect), window=9_000
        )
        assert outcome.boundary_seq == 41 or 41 in outcome.exempt_seqs


def test_the_words_of_what_is_kept_do_not_reach_the_summary_alone() -> None:
    summarizer = Summarizer()
    compact(talk(50), build_policy("summarize", protect={"kind": "count", "count": 6}), summarizer)
    assert [entry.seq for entry in summarizer.tasks[0].entries] == list(range(1, 45))
