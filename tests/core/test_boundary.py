"""The boundary: which messages stay, in complete messages and complete tool pairs."""

import pytest

from compaction.core.tool_pairs import split_entries
from compaction.core.transcript import TranscriptCall, TranscriptEntry
from tests.support.boundaries import find_boundary


def user(seq: int, tokens: int = 10) -> TranscriptEntry:
    return TranscriptEntry(seq=seq, role="user", tokens=tokens)


def answer(seq: int, tokens: int = 10, *, calls: str = "") -> TranscriptEntry:
    """An assistant's message; `calls` holds one call id a letter."""
    return TranscriptEntry(
        seq=seq,
        role="assistant",
        tokens=tokens,
        calls=tuple(TranscriptCall(id=letter, name="tool") for letter in calls),
    )


def result(seq: int, call_id: str, tokens: int = 10) -> TranscriptEntry:
    return TranscriptEntry(seq=seq, role="tool", call_id=call_id, tokens=tokens)


def talk(turns: int, tokens: int = 10) -> list[TranscriptEntry]:
    return [
        make(seq, tokens)
        for turn in range(turns)
        for make, seq in ((user, 2 * turn + 1), (answer, 2 * turn + 2))
    ]


def test_an_empty_session_has_no_boundary() -> None:
    assert find_boundary([], protected_tokens=100) is None


def test_a_single_message_is_kept_however_large() -> None:
    assert find_boundary([user(1, 5_000)], protected_tokens=100) is None


def test_nothing_is_given_up_while_all_fits() -> None:
    assert find_boundary(talk(5), protected_tokens=100) is None


def test_the_newest_messages_within_the_budget_are_kept() -> None:
    assert find_boundary(talk(10), protected_tokens=40) == 17


def test_a_message_that_fits_exactly_is_kept_and_one_token_more_is_not() -> None:
    assert find_boundary([user(1), user(2), user(3)], protected_tokens=20) == 2
    assert find_boundary([user(1), user(2), user(3)], protected_tokens=19) == 3


def test_it_counts_in_real_tokens() -> None:
    assert find_boundary(talk(10), protected_tokens=80, token_ratio=2.0) == find_boundary(
        talk(10), protected_tokens=40
    )


def test_the_newest_message_stays_even_when_it_alone_is_larger() -> None:
    assert find_boundary([*talk(3), user(7, 9_000)], protected_tokens=100) == 7


def test_everything_that_fits_stays_even_if_the_tail_then_begins_with_an_answer() -> None:
    assert find_boundary(talk(10), protected_tokens=55) == 16


def test_a_long_turn_is_cut_between_its_rounds() -> None:
    rounds = [
        e
        for n, i in enumerate("abcdefgh")
        for e in (answer(2 + 2 * n, calls=i), result(3 + 2 * n, i))
    ]
    assert find_boundary([user(1), *rounds], protected_tokens=45) == 14


def test_it_never_splits_a_tool_call_from_its_result() -> None:
    entries = [user(1), answer(2, calls="a"), result(3, "a"), user(4), answer(5)]
    assert find_boundary(entries, protected_tokens=30) == 4
    entries = [user(1), answer(2, calls="a"), result(3, "a"), answer(4)]
    assert find_boundary(entries, protected_tokens=20) == 4


def test_parallel_calls_pair_by_id_in_whatever_order_the_results_come() -> None:
    entries = [
        user(1),
        answer(2, calls="abc"),
        result(3, "c"),
        result(4, "a"),
        result(5, "b"),
        answer(6),
    ]
    assert [find_boundary(entries, protected_tokens=tokens) for tokens in (10, 20, 30, 40, 50)] == [
        6,
        6,
        6,
        6,
        2,
    ]


def test_interleaved_calls_are_kept_whole() -> None:
    entries = [
        user(1),
        answer(2, calls="a"),
        answer(3, calls="b"),
        result(4, "a"),
        result(5, "b"),
        answer(6),
    ]
    assert find_boundary(entries, protected_tokens=35) == 6
    assert find_boundary(entries, protected_tokens=50) == 2


def test_a_call_id_used_again_means_the_newest_call() -> None:
    entries = [
        user(1),
        answer(2, calls="a"),
        result(3, "a"),
        user(4),
        answer(5, calls="a"),
        result(6, "a"),
        answer(7),
    ]
    assert find_boundary(entries, protected_tokens=40) == 4


def test_the_newest_result_keeps_its_call_whatever_the_size() -> None:
    entries = [user(1), answer(2), user(3), answer(4, calls="a"), result(5, "a", 9_000)]
    assert find_boundary(entries, protected_tokens=100) == 4


def test_a_pending_call_stays_with_everything_after_it() -> None:
    entries = [*talk(3), user(7), answer(8, calls="ab"), result(9, "a", 9_000)]
    assert find_boundary(entries, protected_tokens=10) == 8


def test_a_pending_call_stays_although_later_words_do_not_pair_with_it() -> None:
    entries = [
        *talk(3),
        user(7),
        answer(8, calls="a"),
        answer(9),
        result(10, "lost", 9_000),
        answer(11),
    ]
    assert find_boundary(entries, protected_tokens=10) == 8


def test_a_call_that_was_interrupted_long_ago_holds_nothing_back() -> None:
    entries = [user(1), answer(2, calls="a"), user(3), answer(4), user(5), answer(6)]
    assert find_boundary(entries, protected_tokens=20) == 5


def test_a_result_without_its_call_is_never_the_first_kept() -> None:
    entries = [user(1), answer(2), result(3, "lost"), answer(4)]
    assert find_boundary(entries, protected_tokens=20) == 4
    assert find_boundary([user(1), answer(2), result(3, "lost")], protected_tokens=10) == 2


@pytest.mark.parametrize(
    ("up_to", "boundary"), [(0, None), (1, 2), (2, 3), (5, 6), (16, 17), (20, 17)]
)
def test_nothing_newer_than_asked_is_given_up(up_to: int, boundary: int | None) -> None:
    assert find_boundary(talk(10), protected_tokens=40, up_to_seq=up_to) == boundary


def test_a_limit_inside_a_pair_moves_back_before_the_pair() -> None:
    entries = [user(1), answer(2, calls="a"), result(3, "a"), answer(4), user(5)]
    assert find_boundary(entries, protected_tokens=10, up_to_seq=2) == 2


def test_seqs_may_have_gaps_and_are_what_the_boundary_names() -> None:
    assert find_boundary([user(5), answer(90), user(91), answer(400)], protected_tokens=20) == 91


def test_groups_are_the_smallest_pieces_that_may_be_parted() -> None:
    entries = [user(1), answer(2, calls="ab"), result(3, "b"), result(4, "a"), answer(5), user(6)]
    assert [[entry.seq for entry in piece] for piece in split_entries(entries)] == [
        [1],
        [2, 3, 4],
        [5],
        [6],
    ]
