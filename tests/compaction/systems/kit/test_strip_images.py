"""The stage strip_images: a text replaces the images of older messages."""

from compaction.core.transcript import TranscriptCall, TranscriptEntry
from tests.support.stage_transcripts import answer, build_policy, compact, talk, user

SCREENSHOT = "[Screenshot analyzed — image omitted from context]"
PLACEHOLDER = "[Image omitted from context]"
STRIP = build_policy("strip_images", protect={"kind": "count", "count": 2})


def pictures(*older: TranscriptEntry) -> tuple[TranscriptEntry, ...]:
    """Older messages, then enough talk to be over the threshold of 10,000 tokens."""
    return (*older, *talk(40, first=10))


def test_an_older_image_gives_way_to_the_placeholder_before_the_words() -> None:
    outcome = compact(pictures(user(1, "Look.", images=2)), STRIP)
    assert [(edit.seq, edit.kind, edit.replacement) for edit in outcome.edits] == [
        (1, "images_stripped", f"{PLACEHOLDER}\nLook.")
    ]
    assert (outcome.entries[0].images, outcome.entries[0].original) == (0, "Look.")
    assert outcome.tokens_before - outcome.tokens_after >= 2_000


def test_the_placeholder_is_prepended_once() -> None:
    outcome = compact(
        pictures(user(1, f"{PLACEHOLDER}\nLook.", images=1), user(2, "", images=1)), STRIP
    )
    assert [edit.replacement for edit in outcome.edits] == [f"{PLACEHOLDER}\nLook.", PLACEHOLDER]


def test_new_images_pinned_ones_and_first_ones_stay() -> None:
    entries = (
        user(1, images=1),
        user(2, images=1, pinned=True),
        user(3, images=1),
        *talk(40, first=10),
        user(50, images=1),
        answer(51),
    )
    outcome = compact(
        entries, build_policy("strip_images", protect={"kind": "count", "count": 2, "first": 1})
    )
    assert [edit.seq for edit in outcome.edits] == [3]


def test_images_of_tool_results_go_wherever_they_stand_unless_pinned() -> None:
    calls = tuple(TranscriptCall(id=f"c{seq}", name="look") for seq in (51, 52, 53))
    results = [
        TranscriptEntry(seq=seq, role="tool", call_id=f"c{seq}", tool_name="look", images=1)
        for seq in (51, 52)
    ]
    pinned_result = TranscriptEntry(
        seq=53, role="tool", call_id="c53", tool_name="look", images=1, pinned=True
    )
    caller = TranscriptEntry(seq=50, role="assistant", calls=calls)
    entries = (*talk(40, first=8), user(49, images=1), caller, *results, pinned_result)
    outcome = compact(entries, STRIP)
    assert outcome.status == "applied"
    assert [(edit.seq, edit.replacement) for edit in outcome.edits] == [
        (51, SCREENSHOT),
        (52, SCREENSHOT),
    ]
    assert {51, 52} <= outcome.protected_seqs


def test_few_words_do_not_protect_an_image() -> None:
    outcome = compact(
        pictures(user(1, "Look.", images=1)),
        build_policy("strip_images", protect={"kind": "count", "count": 2, "min_chars": 500}),
    )
    assert [edit.seq for edit in outcome.edits] == [1]


def test_an_image_that_costs_less_than_the_placeholder_stays() -> None:
    free = build_policy(
        "strip_images", estimate={"image_tokens": 0}, protect={"kind": "count", "count": 2}
    )
    assert compact(pictures(user(1, "Look.", images=1)), free, force=True).status == "skipped"


def test_a_summary_runs_after_it_only_when_it_was_not_enough() -> None:
    both = build_policy(
        "strip_images", "summarize", protect={"kind": "count", "count": 4}, target={"ratio": 0.6}
    )
    few = compact((*(user(seq, images=1) for seq in range(1, 9)), *talk(20, first=10)), both)
    assert few.stages_used == ("strip_images",)
    assert few.tokens_after <= 6_000
    many = compact((*(user(seq, images=1) for seq in range(1, 5)), *talk(40, first=10)), both)
    assert many.stages_used == ("strip_images", "summarize")
    assert many.edits == ()
