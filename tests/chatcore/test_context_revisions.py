"""Revisions of the context: what they keep, and what happens when a covered message changes."""

import pytest
from django.db import transaction

from chatcore.context import revisions
from chatcore.context.revisions import MessageEdit
from chatcore.models import ContextRevision, Message, Session

pytestmark = pytest.mark.django_db

PLACEMENT = {
    "place": "first_user",
    "heading": "Before:",
    "nudge": "Go on.",
    "marker": "",
    "after_seq": None,
}


@pytest.fixture
def talked(session: Session) -> Session:
    """Ten messages, alternating."""
    Message.objects.bulk_create(
        Message(
            session=session, seq=seq, role="user" if seq % 2 else "assistant", content=f"m{seq}"
        )
        for seq in range(1, 11)
    )
    Session.objects.filter(pk=session.pk).update(last_seq=10, message_count=10)
    session.refresh_from_db()
    return session


def compact(session: Session, boundary: int, **other: object) -> ContextRevision:
    session.refresh_from_db()
    fields = {
        "summary": f"Up to {boundary}.",
        "boundary_seq": boundary,
        "source": "compaction",
    } | other
    version = session.context_version
    return revisions.install_revision(
        session.pk,
        base_version=version,
        **fields,  # type: ignore[arg-type]
    )


def change(session: Session, *seqs: int) -> int | None:
    with transaction.atomic():
        return revisions.revert_summaries_covering(
            Session.objects.select_for_update().get(pk=session.pk), seqs
        )


def seen(session: Session) -> tuple[str | None, int | None]:
    session.refresh_from_db()
    return session.compacted_summary, session.compact_boundary_seq


def newest(session: Session) -> ContextRevision:
    return session.revisions.latest("version")


def test_a_rewind_brings_back_where_the_summary_stood_and_what_was_kept(talked: Session) -> None:
    compact(talked, 5, kept_seqs=[2, 1, 2], background="State.", placement=PLACEMENT)
    compact(talked, 7)
    assert (newest(talked).kept_seqs, newest(talked).background, newest(talked).placement) == (
        [],
        "",
        {},
    )
    revisions.rewind_context(talked.pk, to_version=1)
    assert (newest(talked).kept_seqs, newest(talked).background, newest(talked).placement) == (
        [1, 2],
        "State.",
        PLACEMENT,
    )
    revisions.reset_context(talked.pk)
    assert (newest(talked).kept_seqs, newest(talked).background, newest(talked).placement) == (
        [],
        "State.",
        {},
    )


def test_other_words_for_the_summary_leave_the_rest_of_the_context_as_it_is(
    talked: Session,
) -> None:
    compact(
        talked,
        5,
        kept_seqs=[1],
        background="State.",
        placement=PLACEMENT,
        edits=[MessageEdit(message_seq=6, kind="pruned", replacement="…")],
    )
    revisions.reword_summary(talked.pk, base_version=1, summary="Other words.")
    assert seen(talked) == ("Other words.", 5)
    assert (newest(talked).kept_seqs, newest(talked).background, newest(talked).placement) == (
        [1],
        "State.",
        PLACEMENT,
    )
    assert talked.context_edits.get(until_version=None).replacement == "…"
    with pytest.raises(revisions.StaleContext):
        revisions.reword_summary(talked.pk, base_version=1, summary="Too late.")


def test_a_change_before_the_boundary_goes_back_to_the_newest_summary_that_does_not_cover_it(
    talked: Session,
) -> None:
    compact(talked, 3, kept_seqs=[1])
    compact(talked, 5)
    compact(talked, 9)
    assert change(talked, 6, 7) == 4
    assert seen(talked) == ("Up to 5.", 5)
    assert newest(talked).source == "edit"
    assert newest(talked).restores == 2
    assert change(talked, 3) == 5
    assert seen(talked) == ("Up to 3.", 3)
    assert newest(talked).kept_seqs == [1]


def test_a_change_that_every_summary_covers_sends_the_whole_history_again(talked: Session) -> None:
    compact(talked, 5, edits=[MessageEdit(message_seq=8, kind="pruned", replacement="…")])
    assert change(talked, 2) == 2
    assert seen(talked) == (None, None)
    assert not talked.context_edits.filter(until_version=None).exists()


def test_a_change_of_what_is_sent_anyway_leaves_the_summary(talked: Session) -> None:
    compact(talked, 5)
    assert change(talked, 5, 6, 7, 8, 9, 10) is None
    assert change(talked) is None
    assert seen(talked) == ("Up to 5.", 5)
    assert not newest(talked).stale


def test_a_message_that_was_shown_in_another_form_takes_its_revision_with_it(
    talked: Session,
) -> None:
    compact(talked, 3)
    compact(talked, 5, edits=[MessageEdit(message_seq=8, kind="excerpted", replacement="m…")])
    assert change(talked, 8) == 3
    assert seen(talked) == ("Up to 3.", 3)
    assert not talked.context_edits.filter(until_version=None).exists()


def test_a_boundary_whose_message_goes_moves_to_the_next_that_is_left(talked: Session) -> None:
    compact(talked, 5, background="State.")
    assert change(talked, 5, 6) == 2
    assert seen(talked) == ("Up to 5.", 7)
    assert newest(talked).background == "State."


def test_a_summary_of_what_was_changed_since_is_not_brought_back(talked: Session) -> None:
    compact(talked, 3)
    compact(talked, 7)
    revisions.reset_context(talked.pk)
    assert change(talked, 4) is None
    revisions.rewind_context(talked.pk, to_version=2)
    assert seen(talked) == ("Up to 3.", 3)
    with pytest.raises(ContextRevision.DoesNotExist):
        revisions.rewind_context(talked.pk, to_version=99)
