"""The fallback: a request without its oldest messages."""

from dataclasses import replace

from compaction.core.transcript import TranscriptCall, TranscriptEntry
from compaction.core.trimming import drop_oldest_to_fit, slide_to_fit


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


def test_the_oldest_go_first_until_the_rest_fits() -> None:
    assert seqs(drop_oldest_to_fit(talk(5), limit_tokens=60)) == [5, 6, 7, 8, 9, 10]


def test_overhead_and_scale_count() -> None:
    assert seqs(drop_oldest_to_fit(talk(5), limit_tokens=60, overhead_tokens=20)) == [7, 8, 9, 10]
    assert seqs(drop_oldest_to_fit(talk(5), limit_tokens=80, token_ratio=2.0)) == [7, 8, 9, 10]


def test_the_rest_does_not_begin_inside_a_turn() -> None:
    assert seqs(drop_oldest_to_fit(talk(5), limit_tokens=70)) == [5, 6, 7, 8, 9, 10]


def test_a_call_goes_with_its_results() -> None:
    entries = [
        entry(1, "user"),
        entry(2, "assistant", calls="ab"),
        entry(3, "tool", call_id="b"),
        entry(4, "tool", call_id="a"),
    ]
    entries += [entry(5, "assistant"), entry(6, "user")]
    assert seqs(drop_oldest_to_fit(entries, limit_tokens=40)) == [5, 6]


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
    rest = drop_oldest_to_fit(entries, limit_tokens=60)
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
