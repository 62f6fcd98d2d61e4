"""Sessions as JSON files, both ways."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from chatcore.context import builder, revisions
from chatcore.files import output_store
from chatcore.models import Attachment, Message, Session
from chatcore.sessions import verification
from chatcore.transfer import exporter, importer, reader
from compaction.core.presets import PRESETS
from compaction.systems.kit.settings import PruneKnobs
from compaction.systems.neurolink.settings import SlideKnobs

PRUNED = PRESETS["oneclaw"].get(PruneKnobs).placeholder


@pytest.fixture
def filled_session(session: Session) -> Session:
    Session.objects.filter(pk=session.pk).update(
        title="Tea", system_prompt="Be brief.", params={"temperature": 0.5}
    )
    session.refresh_from_db()
    call = {"id": "c1", "name": "look", "arguments": "{}"}
    importer.import_messages(
        session,
        [
            {"role": "user", "content": "I like tea.", "created_at": "2026-01-01T00:00:00Z"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {
                "role": "tool",
                "content": "x" * 40_000,
                "tool_call_id": "c1",
                "tool_name": "look",
                "is_error": True,
            },
            {"role": "assistant", "content": "Noted."},
        ],
    )
    Message.objects.filter(session=session, seq=4).update(
        token_count_input=9, reasoning="Hm.", pinned=True
    )
    hidden = revisions.MessageEdit(message_seq=3, kind="pruned", replacement=PRUNED)
    revisions.install_revision(
        session.pk,
        base_version=0,
        summary="Likes tea.",
        boundary_seq=2,
        edits=[hidden],
        source="compaction",
    )
    session.refresh_from_db()
    return session


def export(session: Session) -> dict[str, Any]:
    return json.loads(json.dumps(exporter.export_session(session)))


def test_what_was_exported_is_imported_whole(filled_session: Session, user: User) -> None:
    imported_session = importer.import_session(user, export(filled_session))
    assert imported_session.pk != filled_session.pk
    assert export(imported_session) == export(filled_session)
    assert builder.build_request(imported_session) == builder.build_request(filled_session)


def build_record(**fields: Any) -> dict[str, Any]:
    return {"role": "user", "content": "Hi", **fields}


def test_a_window_that_slid_without_a_summary_is_imported_as_it_was(
    filled_session: Session, user: User
) -> None:
    place = {
        "place": "first_user",
        "marker": PRESETS["oneclaw"].get(SlideKnobs).marker,
        "summarized_up_to": 1,
    }
    revisions.install_revision(
        filled_session.pk,
        base_version=1,
        summary=None,
        boundary_seq=4,
        kept_seqs=[1],
        placement=place,
        source="compaction",
    )
    filled_session.refresh_from_db()
    imported_session = importer.import_session(user, export(filled_session))
    assert export(imported_session) == export(filled_session)
    assert builder.build_request(imported_session) == builder.build_request(filled_session)


def test_messages_that_the_next_summary_is_to_tell_are_imported_as_such(
    filled_session: Session, user: User
) -> None:
    """They were pinned when the summary was written."""
    revisions.install_revision(
        filled_session.pk,
        base_version=1,
        summary="They met.",
        boundary_seq=4,
        placement={"untold_seqs": [1, 2]},
        source="compaction",
    )
    filled_session.refresh_from_db()
    imported_session = importer.import_session(user, export(filled_session))
    assert export(imported_session) == export(filled_session)


def test_messages_keep_their_numbers_and_outputs_their_whole(
    filled_session: Session, user: User
) -> None:
    """Summaries and notes about stored outputs name messages by their numbers."""
    result = filled_session.messages.get(seq=3)
    fields = {
        "kind": "output",
        "name": "look.txt",
        "media_type": "text/plain",
        "size": 5,
        "data": b"",
        "text": "whole",
    }
    Attachment.objects.create(session=filled_session, message=result, **fields)
    filled_session.messages.filter(seq=1).delete()
    Session.objects.filter(pk=filled_session.pk).update(message_count=3, last_seq=9)
    filled_session.refresh_from_db()
    imported_session = importer.import_session(user, export(filled_session))
    assert export(imported_session) == export(filled_session)
    assert list(imported_session.messages.order_by("seq").values_list("seq", flat=True)) == [
        2,
        3,
        4,
    ]
    assert imported_session.last_seq == 9
    assert output_store.read_text(imported_session.attachments.get()) == "whole"
    assert list(verification.find_violations(imported_session)) == []


def test_an_export_asks_little_of_the_database(
    filled_session: Session, django_assert_max_num_queries: Any
) -> None:
    importer.import_messages(filled_session, [build_record()] * 50)
    with django_assert_max_num_queries(10):
        exporter.export_session(filled_session)
    with django_assert_max_num_queries(2):  # the files that stand in the texts
        exporter.export_as(filled_session, "openai")


def test_a_file_from_elsewhere_is_refused_by_the_name_of_its_field(
    filled_session: Session, user: User
) -> None:
    export_data = export(filled_session)
    changes: dict[str, dict[str, Any]] = {
        "format": {"format": "other"},
        "session": {"session": []},
        "session.pinned": {"session": {"pinned": "perhaps"}},
        "messages[0]": {"messages": ["Hi"]},
        "messages[0].status": {"messages": [{"role": "user", "content": "Hi", "status": "asleep"}]},
        "session.tools": {"session": {"tools": {"calculate": 1}}},
        "session.params": {"session": {"params": [1]}},
        "session.compact_threshold": {"session": {"compact_threshold": 7}},
        "session.last_seq": {"session": {"last_seq": True}},
        "messages[0].tool_result_limit": {
            "messages": [{"role": "user", "content": "Hi", "tool_result_limit": 10**9}]
        },
        "messages[1].seq": {"messages": [build_record(seq=2), build_record(seq=2)]},
        "messages[0].seq": {"messages": [build_record(seq="1")]},
        "messages[0].replaces": {"messages": [build_record(seq=1, replaces=1)]},
        "messages[1].replaces": {
            "messages": [build_record(seq=1), build_record(seq=2, replaces=1)]
        },
        "messages[0].branch_after": {"messages": [build_record(seq=1, branch="x", branch_after=1)]},
        "messages[2].branch_after": {
            "messages": [
                build_record(seq=1),
                build_record(seq=2, branch="x", branch_after=1),
                build_record(seq=3, branch="x", branch_after=0),
            ]
        },
        "messages[0].attachments": {"messages": [build_record(attachments={})]},
        "messages[0].attachments[0]": {
            "messages": [build_record(attachments=[{"name": "a", "data": ""}])]
        },
        "messages[0].attachments[0].data": {
            "messages": [build_record(attachments=[{"name": "a", "data": "?"}])]
        },
        "context.kept_seqs": {"context": {"summary": "x", "boundary_seq": 2, "kept_seqs": [{}]}},
        "context.placement.place": {"context": {"summary": "x", "placement": {"place": "nowhere"}}},
        "context.placement.untold_seqs": {
            "context": {"summary": "x", "placement": {"untold_seqs": [99]}}
        },
        "context.placement.after_seq": {
            "context": {"summary": "x", "placement": {"after_seq": "1"}}
        },
        "context.boundary_seq": {"context": {"summary": "x", "boundary_seq": 99}},
        "context.edits[0]": {"context": {"edits": [{"message_seq": 99}]}},
    }
    for field, change in changes.items():
        with pytest.raises(reader.InvalidImport) as refusal:
            importer.import_session(user, export_data | change)
        assert refusal.value.field == field
    assert Session.objects.count() == 1


def test_the_commands_write_and_read_a_file(
    filled_session: Session, user: User, tmp_path: Path
) -> None:
    out, output = StringIO(), StringIO()
    call_command("export", str(filled_session.pk), stdout=out)
    (tmp_path / "tea.json").write_text(out.getvalue())
    call_command("import", str(tmp_path / "tea.json"), stdout=output)
    assert export(Session.objects.get(pk=output.getvalue().strip())) == export(filled_session)


def test_the_commands_say_what_is_wrong(user: User, tmp_path: Path) -> None:
    (tmp_path / "no.json").write_text("no")
    User.objects.create_user("bob")
    for command, match in (
        (("export", "00000000-0000-0000-0000-000000000000"), "no session"),
        (("import", str(tmp_path / "none.json"), "--user=bob"), "cannot be read"),
        (("import", str(tmp_path / "no.json"), "--user=bob"), "cannot be read"),
        (("import", str(tmp_path / "no.json")), "cannot be read|--user"),
    ):
        with pytest.raises(CommandError, match=match):
            call_command(*command)
