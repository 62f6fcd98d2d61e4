"""The boundary: what stays as it is, in whole messages, with no tool call parted from its result."""

import pytest

from compaction.core.boundary import choose
from compaction.core.tool_pairs import groups
from compaction.core.transcript import Call, Entry


def user(seq: int, tokens: int = 10) -> Entry:
    return Entry(seq=seq, role="user", tokens=tokens)


def answer(seq: int, tokens: int = 10, *, calls: str = "") -> Entry:
    """An assistant's message; `calls` holds one call id a letter."""
    return Entry(
        seq=seq,
        role="assistant",
        tokens=tokens,
        calls=tuple(Call(id=letter, name="tool") for letter in calls),
    )


def result(seq: int, call_id: str, tokens: int = 10) -> Entry:
    return Entry(seq=seq, role="tool", call_id=call_id, tokens=tokens)


def talk(turns: int, tokens: int = 10) -> list[Entry]:
    return [
        make(seq, tokens)
        for turn in range(turns)
        for make, seq in ((user, 2 * turn + 1), (answer, 2 * turn + 2))
    ]


def test_an_empty_session_has_no_boundary() -> None:
    assert choose([], protected=100) is None


def test_a_single_message_is_kept_however_large() -> None:
    assert choose([user(1, 5_000)], protected=100) is None


def test_nothing_is_given_up_while_all_fits() -> None:
    assert choose(talk(5), protected=100) is None


def test_the_newest_messages_within_the_budget_are_kept() -> None:
    assert choose(talk(10), protected=40) == 17


def test_a_message_that_fits_exactly_is_kept_and_one_token_more_is_not() -> None:
    assert choose([user(1), user(2), user(3)], protected=20) == 2
    assert choose([user(1), user(2), user(3)], protected=19) == 3


def test_it_counts_in_real_tokens() -> None:
    assert choose(talk(10), protected=80, scale=2.0) == choose(talk(10), protected=40)


def test_the_newest_message_stays_even_when_it_alone_is_larger() -> None:
    assert choose([*talk(3), user(7, 9_000)], protected=100) == 7


def test_everything_that_fits_stays_even_if_the_tail_then_begins_with_an_answer() -> None:
    assert choose(talk(10), protected=55) == 16


def test_a_long_turn_is_cut_between_its_rounds() -> None:
    rounds = [
        e
        for n, i in enumerate("abcdefgh")
        for e in (answer(2 + 2 * n, calls=i), result(3 + 2 * n, i))
    ]
    assert choose([user(1), *rounds], protected=45) == 14


def test_it_never_splits_a_tool_call_from_its_result() -> None:
    entries = [user(1), answer(2, calls="a"), result(3, "a"), user(4), answer(5)]
    assert choose(entries, protected=30) == 4
    entries = [user(1), answer(2, calls="a"), result(3, "a"), answer(4)]
    assert choose(entries, protected=20) == 4


def test_parallel_calls_pair_by_id_in_whatever_order_the_results_come() -> None:
    entries = [
        user(1),
        answer(2, calls="abc"),
        result(3, "c"),
        result(4, "a"),
        result(5, "b"),
        answer(6),
    ]
    assert [choose(entries, protected=tokens) for tokens in (10, 20, 30, 40, 50)] == [6, 6, 6, 6, 2]


def test_interleaved_calls_are_kept_whole() -> None:
    entries = [
        user(1),
        answer(2, calls="a"),
        answer(3, calls="b"),
        result(4, "a"),
        result(5, "b"),
        answer(6),
    ]
    assert choose(entries, protected=35) == 6
    assert choose(entries, protected=50) == 2


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
    assert choose(entries, protected=40) == 4


def test_the_newest_result_keeps_its_call_whatever_the_size() -> None:
    entries = [user(1), answer(2), user(3), answer(4, calls="a"), result(5, "a", 9_000)]
    assert choose(entries, protected=100) == 4


def test_a_pending_call_stays_with_everything_after_it() -> None:
    entries = [*talk(3), user(7), answer(8, calls="ab"), result(9, "a", 9_000)]
    assert choose(entries, protected=10) == 8


def test_a_pending_call_stays_although_later_words_do_not_pair_with_it() -> None:
    entries = [
        *talk(3),
        user(7),
        answer(8, calls="a"),
        answer(9),
        result(10, "lost", 9_000),
        answer(11),
    ]
    assert choose(entries, protected=10) == 8


def test_a_call_that_was_interrupted_long_ago_holds_nothing_back() -> None:
    entries = [user(1), answer(2, calls="a"), user(3), answer(4), user(5), answer(6)]
    assert choose(entries, protected=20) == 5


def test_a_result_without_its_call_is_never_the_first_kept() -> None:
    entries = [user(1), answer(2), result(3, "lost"), answer(4)]
    assert choose(entries, protected=20) == 4
    assert choose([user(1), answer(2), result(3, "lost")], protected=10) == 2


@pytest.mark.parametrize(
    ("up_to", "boundary"), [(0, None), (1, 2), (2, 3), (5, 6), (16, 17), (20, 17)]
)
def test_nothing_newer_than_asked_is_given_up(up_to: int, boundary: int | None) -> None:
    assert choose(talk(10), protected=40, up_to_seq=up_to) == boundary


def test_a_limit_inside_a_pair_moves_back_before_the_pair() -> None:
    entries = [user(1), answer(2, calls="a"), result(3, "a"), answer(4), user(5)]
    assert choose(entries, protected=10, up_to_seq=2) == 2


def test_seqs_may_have_gaps_and_are_what_the_boundary_names() -> None:
    assert choose([user(5), answer(90), user(91), answer(400)], protected=20) == 91


def test_groups_are_the_smallest_pieces_that_may_be_parted() -> None:
    entries = [user(1), answer(2, calls="ab"), result(3, "b"), result(4, "a"), answer(5), user(6)]
    assert [[entry.seq for entry in piece] for piece in groups(entries)] == [
        [1],
        [2, 3, 4],
        [5],
        [6],
    ]
