"""The fallback: a request without its oldest messages."""

from dataclasses import replace

from compaction.core.transcript import TranscriptCall, TranscriptEntry
from compaction.core.trimming import drop_oldest_to_fit
from compaction.systems.neurolink.sliding import slide_to_fit


def entry(
    seq: int, role: str, tokens: int = 10, *, calls: str = "", call_id: str = ""
) -> TranscriptEntry:
    return TranscriptEntry(
        seq=seq,
        role=role,
        tokens=tokens,
        call_id=call_id,
        calls=tuple(TranscriptCall(id=each, name="t") for each in calls),
    )


def talk(turns: int) -> list[TranscriptEntry]:
    return [entry(seq, "user" if seq % 2 else "assistant") for seq in range(1, 2 * turns + 1)]


def seqs(entries: tuple[TranscriptEntry, ...]) -> list[int]:
    return [entry.seq for entry in entries]


def test_what_fits_is_left_alone() -> None:
    assert seqs(drop_oldest_to_fit(talk(3), limit_tokens=60)) == [1, 2, 3, 4, 5, 6]


def test_nothing_comes_of_nothing() -> None:
    assert drop_oldest_to_fit([], limit_tokens=10, overhead_tokens=50) == ()


def test_the_oldest_go_first_until_the_rest_fits_and_the_cut_is_at_a_whole_step() -> None:
    # Half of the room is 160, so the steps are 128 tokens: 100 must go, and 130 do.
    assert seqs(drop_oldest_to_fit(talk(21), limit_tokens=320))[0] == 15


def test_overhead_and_scale_count() -> None:
    plain = drop_oldest_to_fit(talk(20), limit_tokens=240)
    assert len(plain) < 24
    assert drop_oldest_to_fit(talk(20), limit_tokens=300, overhead_tokens=60) == plain
    assert drop_oldest_to_fit(talk(20), limit_tokens=480, token_ratio=2.0) == plain


def test_the_rest_does_not_begin_without_a_question() -> None:
    assert seqs(drop_oldest_to_fit(talk(5), limit_tokens=70)) == [5, 6, 7, 8, 9, 10]


def test_the_cut_stays_where_it_is_for_many_turns() -> None:
    cuts = [
        drop_oldest_to_fit(talk(turns), limit_tokens=400, overhead_tokens=turns % 3)[0].seq
        for turns in range(1, 121)
    ]
    assert cuts == sorted(cuts)
    # 2,400 tokens in steps of 192, and 100 turns over the limit.
    assert len(set(cuts)) == 12


def test_the_rounds_of_a_long_turn_go_in_steps_too_and_its_question_stays() -> None:
    entries = [entry(1, "user", 30)]
    remaining_seqs = []
    for number in range(100):
        entries += [
            entry(2 * number + 2, "assistant", calls=f"{number:c}"),
            entry(2 * number + 3, "tool", call_id=f"{number:c}"),
        ]
        remaining_seqs.append(seqs(drop_oldest_to_fit(entries, limit_tokens=400)))
    assert all(remaining[0] == 1 for remaining in remaining_seqs)
    assert all(remaining[-1] == 2 * n + 3 for n, remaining in enumerate(remaining_seqs))
    assert len({remaining[1] for remaining in remaining_seqs}) <= 12


def test_where_no_whole_step_is_left_the_steps_are_halved() -> None:
    entries = [entry(1, "user", 10), entry(2, "assistant", 200), entry(3, "user", 20)]
    entries += [entry(4, "assistant", 20), entry(5, "user", 20)]
    # From message 3 on it fits, and the next whole step of 96 tokens is behind the last message.
    assert seqs(drop_oldest_to_fit(entries, limit_tokens=200)) == [3, 4, 5]


def test_a_call_goes_with_its_results() -> None:
    entries = [
        entry(1, "user"),
        entry(2, "assistant", calls="ab"),
        entry(3, "tool", call_id="b"),
        entry(4, "tool", call_id="a"),
    ]
    entries += [entry(5, "assistant"), entry(6, "user")]
    assert seqs(drop_oldest_to_fit(entries, limit_tokens=40)) == [1, 5, 6]
    assert seqs(drop_oldest_to_fit(entries, limit_tokens=20)) == [6]


def test_a_long_turn_is_cut_inside_however_many_turns_follow() -> None:
    entries = [entry(1, "user", 30)]
    for number in range(60):
        entries += [
            entry(2 * number + 2, "assistant", 40, calls=f"{number:c}"),
            entry(2 * number + 3, "tool", 160, call_id=f"{number:c}"),
        ]
    entries.append(entry(122, "assistant", 50))
    for number in range(30):
        entries.append(entry(123 + 2 * number, "user", 20))
        rest = drop_oldest_to_fit(entries, limit_tokens=4000)
        entries.append(entry(124 + 2 * number, "assistant", 20))
        used_tokens = sum(each.tokens for each in rest)
        assert 2000 <= used_tokens <= 4000
        assert rest[0].seq == 1
        assert all(each.role == "assistant" for each in rest[1:2])


def test_a_question_that_has_no_room_goes_with_its_turn() -> None:
    entries = [
        entry(1, "user", 500),
        entry(2, "assistant", 100),
        entry(3, "user"),
        entry(4, "assistant"),
    ]
    assert seqs(drop_oldest_to_fit([*entries, entry(5, "user")], limit_tokens=100)) == [3, 4, 5]


def test_the_newest_user_message_stays_and_its_oldest_rounds_go() -> None:
    rounds = [
        e
        for n, i in enumerate("abcd")
        for e in (entry(4 + 2 * n, "assistant", calls=i), entry(5 + 2 * n, "tool", 100, call_id=i))
    ]
    rest = drop_oldest_to_fit(
        [entry(1, "user"), entry(2, "assistant"), entry(3, "user"), *rounds], limit_tokens=240
    )
    assert seqs(rest) == [3, 8, 9, 10, 11]


def test_the_newest_user_message_and_the_newest_pair_stay_even_over_the_limit() -> None:
    entries = [
        entry(1, "user"),
        entry(2, "user", 900),
        entry(3, "assistant", calls="a"),
        entry(4, "tool", 900, call_id="a"),
    ]
    assert seqs(drop_oldest_to_fit(entries, limit_tokens=100)) == [2, 3, 4]


def test_the_entries_are_the_ones_it_was_given() -> None:
    entries = talk(5)
    rest = drop_oldest_to_fit(entries, limit_tokens=70)
    assert all(mine is theirs for mine, theirs in zip(rest, entries[4:], strict=True))
    assert len(entries) == 10


def test_trimming_twice_is_trimming_once() -> None:
    once = drop_oldest_to_fit(talk(20), limit_tokens=95)
    assert drop_oldest_to_fit(once, limit_tokens=95) == once


# Sliding: NeuroLink's way, on the request only


def test_the_first_pair_stays_and_half_of_the_rest_goes_until_it_fits() -> None:
    assert seqs(slide_to_fit(talk(10), limit_tokens=150, first_count=2, fraction=0.5)) == [
        1,
        2,
        *range(11, 21),
    ]
    assert seqs(slide_to_fit(talk(10), limit_tokens=90, first_count=2, fraction=0.5)) == [
        1,
        2,
        *range(15, 21),
    ]
    assert seqs(slide_to_fit(talk(10), limit_tokens=200, first_count=2, fraction=0.5)) == list(
        range(1, 21)
    )


def test_sliding_counts_overhead_and_scale_and_leaves_four_messages_alone() -> None:
    assert (
        len(
            slide_to_fit(
                talk(10), limit_tokens=200, first_count=2, fraction=0.5, overhead_tokens=60
            )
        )
        == 12
    )
    assert (
        len(slide_to_fit(talk(10), limit_tokens=280, first_count=2, fraction=0.5, token_ratio=2.0))
        == 12
    )
    assert seqs(slide_to_fit(talk(2), limit_tokens=1, first_count=2, fraction=0.5)) == [1, 2, 3, 4]
    assert slide_to_fit([], limit_tokens=1, first_count=2, fraction=0.5) == ()


def test_sliding_keeps_pairs_pins_the_newest_question_and_the_newest_message() -> None:
    rounds = [
        e
        for n, i in enumerate("abc")
        for e in (entry(4 + 2 * n, "assistant", calls=i), entry(5 + 2 * n, "tool", call_id=i))
    ]
    entries = [
        entry(1, "user"),
        entry(2, "assistant"),
        replace(entry(3, "user"), pinned=True),
        *rounds,
        entry(10, "user"),
    ]
    entries += [entry(11, "assistant"), entry(12, "assistant")]
    assert seqs(slide_to_fit(entries, limit_tokens=1, first_count=1, fraction=0.9)) == [
        1,
        3,
        10,
        12,
    ]
    assert seqs(slide_to_fit(entries, limit_tokens=100, first_count=1, fraction=0)) == [
        1,
        3,
        *range(6, 13),
    ]


def test_pinned_messages_stay_wherever_the_cut_is() -> None:
    entries = talk(20)
    entries[0] = replace(entries[0], pinned=True)
    remaining_seqs = seqs(drop_oldest_to_fit(entries, limit_tokens=240))
    assert remaining_seqs[0] == 1
    assert remaining_seqs[1] > 15
    assert remaining_seqs[-1] == 40


def test_pins_for_which_there_is_no_room_beside_the_question_go_oldest_first() -> None:
    entries = [replace(each, pinned=True) for each in talk(5)] + [entry(11, "user", 50)]
    assert seqs(drop_oldest_to_fit(entries, limit_tokens=80)) == [8, 9, 10, 11]
    assert seqs(drop_oldest_to_fit(entries, limit_tokens=50)) == [11]
