"""`chatcore verify` finds what should never be."""

from datetime import timedelta
from io import StringIO
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import models
from django.utils import timezone

from chatcore.api.serializers.sessions import READ_ONLY_FIELDS
from chatcore.context import revisions
from chatcore.files import intake
from chatcore.models import Message, Session, Turn
from chatcore.sessions import verification
from tests.support.events import append_events
from tests.support.sample_files import build_png

pytestmark = pytest.mark.django_db
BRANCH = UUID(int=1)
STALE_VALUES = {
    models.IntegerField: 0,
    models.TextField: "stale",
    models.DateTimeField: timezone.now() - timedelta(days=1),
}


def verify(*sessions: Session) -> tuple[int, str]:
    out = StringIO()
    try:
        call_command("verify", *(str(session.pk) for session in sessions), stdout=out)
    except SystemExit as leaving:
        return int(leaving.code or 0), out.getvalue()
    return 0, out.getvalue()


def test_a_session_that_is_not_there_is_named(session: Session) -> None:
    with pytest.raises(CommandError, match=f"There is no session {BRANCH}"):
        call_command("verify", str(session.pk), str(BRANCH))
    with pytest.raises(CommandError, match="invalid UUID value: 'abc'"):
        call_command("verify", "abc")


def filled(session: Session) -> Session:
    Message.objects.bulk_create(
        [
            Message(session=session, seq=1, role="user", content="one"),
            Message(session=session, seq=2, role="assistant", content="two"),
            Message(session=session, seq=3, role="tool", content="three", tool_call_id="x"),
        ]
    )
    Session.objects.filter(pk=session.pk).update(last_seq=3, message_count=3)
    return session


def test_a_sound_session_passes(session: Session) -> None:
    revisions.install_revision(
        filled(session).pk, base_version=0, summary="s", boundary_seq=2, source="compaction"
    )
    assert verify(session) == (0, "1 sessions checked, 0 violations\n")


def test_empty_messages_of_earlier_versions_raise_no_alarm(
    session: Session,
) -> None:
    filled(session)
    # An empty text counted one token once, and one in another form still does.
    Message.objects.filter(session=session, seq=2).update(content="", token_estimate=1)
    edit = revisions.MessageEdit(message_seq=3, kind="pruned")
    revisions.install_revision(
        session.pk,
        base_version=0,
        summary=None,
        boundary_seq=None,
        edits=[edit],
        source="compaction",
    )
    assert verify(session)[0] == 0


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        ({"message_count": 7}, "message_count is 7, but the number of current messages is 3"),
        ({"last_seq": 1}, "last_seq is 1, but the newest message is 3"),
        ({"context_version": 4}, "context_version is 4, but the newest revision is 1"),
        (
            {"compacted_summary": "other"},
            "compacted_summary differs from the summary of the newest revision",
        ),
        ({"compact_boundary_seq": 9}, "there is no message at the boundary 9"),
        ({"compact_boundary_seq": 3}, "the boundary 3 parts a tool result from its call"),
    ],
)
def test_damage_is_named_and_ends_with_1(
    session: Session, damage: dict[str, object], sentence: str
) -> None:
    revisions.install_revision(
        filled(session).pk, base_version=0, summary="s", boundary_seq=2, source="compaction"
    )
    Session.objects.filter(pk=session.pk).update(**damage)
    code, said = verify()
    assert code == 1
    assert sentence in said


def test_every_derived_column_of_a_session_is_recomputed(session: Session) -> None:
    """Every column is listed in verification.py, as derived from others or as plain."""
    revisions.install_revision(
        filled(session).pk, base_version=0, summary="s", boundary_seq=2, source="compaction"
    )
    columns = {field.name for field in Session._meta.concrete_fields}
    assert verification.DERIVED_FIELDS.keys() | verification.PLAIN_FIELDS == columns
    assert not verification.DERIVED_FIELDS.keys() & verification.PLAIN_FIELDS
    # What people may not write is computed from something, but for what the row is born with and
    # the time of the user's newest act.
    born_fields = {"id", "external_id", "created_at", "forked_from", "forked_from_seq", "parent"}
    shown_fields = set(READ_ONLY_FIELDS) & columns - born_fields - {"updated_at"}
    assert shown_fields <= verification.DERIVED_FIELDS.keys()
    append_events(session.pk, ("session.updated", {"fields": []}))
    for name, data in (("a.txt", b"words"), ("a.png", build_png(4, 3))):
        file = intake.store_file(session, name=name, data=data)
        intake.bind_files(session.messages.get(seq=2), [file.pk])
    for name in verification.DERIVED_FIELDS:
        stored = Session.objects.values(name).get(pk=session.pk)
        field = Session._meta.get_field(name)
        stale_value = next(value for kind, value in STALE_VALUES.items() if isinstance(field, kind))
        Session.objects.filter(pk=session.pk).update(**{name: stale_value})
        assert name in verify(session)[1]
        Session.objects.filter(pk=session.pk).update(**stored)
    assert verify(session)[0] == 0


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        ({"branch": BRANCH}, "the branch of message 2 follows no one message"),
        ({"branch": BRANCH, "branch_after": 2}, "the branch of message 2 follows a later one, 2"),
        ({"branch_after": 1}, "message 2 is current and has a place in a branch"),
        ({"replaces": 1}, "message 2 and the one it replaces are both current"),
    ],
)
def test_a_version_in_disorder_is_found(
    session: Session, damage: dict[str, Any], sentence: str
) -> None:
    first = filled(session).messages.get(seq=1)
    damage = {name: first if name == "replaces" else value for name, value in damage.items()}
    session.messages.filter(seq=2).update(**damage)
    assert sentence in verify(session)[1]


def test_a_context_that_speaks_of_changed_messages_is_found(session: Session) -> None:
    revisions.install_revision(
        filled(session).pk, base_version=0, summary="s", boundary_seq=2, source="compaction"
    )
    session.revisions.update(stale=True)
    assert (
        "the context in force, 1, speaks of messages that were changed since" in verify(session)[1]
    )


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        ({"kept_seqs": [7]}, "message 7 is kept before the boundary, and is not there"),
        ({"kept_seqs": [2]}, "message 2 is kept before the boundary 2, and is not before it"),
        ({"placement": {"place": "nowhere"}}, "the summary stands nowhere: {'place': 'nowhere'}"),
        ({"placement": {"nudge": 5}}, "the nudge of the summary is no text"),
        ({"placement": {"after_seq": 99}}, "the after_seq of the summary is no message: 99"),
    ],
)
def test_what_is_kept_and_where_the_summary_stands_must_make_sense(
    session: Session, damage: dict[str, Any], sentence: str
) -> None:
    placement = {"place": "last_user", "heading": "Before:", "after_seq": 3}
    revisions.install_revision(
        filled(session).pk,
        base_version=0,
        summary="s",
        boundary_seq=2,
        kept_seqs=[1],
        placement=placement,
        source="compaction",
    )
    session.messages.filter(seq=1).update(pinned=True)
    assert verify(session)[0] == 0
    session.revisions.update(**damage)
    assert sentence in verify(session)[1]


def test_a_boundary_at_a_superseded_message_is_found_unless_a_newer_version_follows(
    session: Session,
) -> None:
    revisions.install_revision(
        filled(session).pk, base_version=0, summary="s", boundary_seq=2, source="compaction"
    )
    session.messages.filter(seq=2).update(branch=BRANCH, branch_after=1)
    session.messages.filter(seq=3).update(role="assistant")
    assert "the boundary 2 is at a superseded message" in verify(session)[1]
    session.messages.filter(seq=3).update(replaces=session.messages.get(seq=2))
    assert "the boundary 2" not in verify(session)[1]


def test_a_pinned_message_that_is_not_sent_is_found(session: Session) -> None:
    filled(session).messages.filter(seq=3).update(pinned=True)
    hidden = revisions.MessageEdit(message_seq=3, kind="hidden")
    assert verify(session)[0] == 0
    revisions.install_revision(
        session.pk,
        base_version=0,
        summary=None,
        boundary_seq=None,
        edits=[hidden],
        source="compaction",
    )
    assert verify(session)[0] == 0


def test_a_turn_that_waits_for_nothing_is_found(session: Session) -> None:
    for _ in range(2):
        Turn.objects.create(session=session, status=Turn.Status.WAITING, lease_until=timezone.now())
    said = verify(session)[1]
    assert "waits for nothing" in said
    assert "more than one turn is running or waiting" in said


def test_a_message_streaming_in_no_turn_is_found(session: Session) -> None:
    Message.objects.filter(pk__in=filled(session).messages.filter(seq=2).values("pk")).update(
        status="streaming"
    )
    assert "message 2 is streaming in no running turn" in verify(session)[1]
