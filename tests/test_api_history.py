"""Sessions as JSON files, both ways."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from chatcore import context, history
from chatcore.models import Message, Session


@pytest.fixture
def talked(session: Session) -> Session:
    Session.objects.filter(pk=session.pk).update(title="Tea", system_prompt="Be brief.", params={"temperature": 0.5})
    session.refresh_from_db()
    call = {"id": "c1", "name": "look", "arguments": "{}"}
    history.import_messages(
        session,
        [
            {"role": "user", "content": "I like tea.", "created_at": "2026-01-01T00:00:00Z"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": "x" * 40_000, "tool_call_id": "c1", "tool_name": "look", "is_error": True},
            {"role": "assistant", "content": "Noted."},
        ],
    )
    Message.objects.filter(session=session, seq=4).update(token_count_input=9, reasoning="Hm.", pinned=True, provider_data={"a": [1]})
    hidden = context.Edit(message_seq=3, kind="pruned", replacement="[gone]")
    context.install(session.pk, base_version=0, summary="Likes tea.", boundary_seq=2, edits=[hidden], source="compaction")
    session.refresh_from_db()
    return session


def exported(session: Session) -> dict[str, Any]:
    return json.loads(json.dumps(history.export_session(session)))


def test_what_was_exported_is_imported_whole(talked: Session, user: User) -> None:
    again = history.import_session(user, exported(talked))
    assert again.pk != talked.pk
    assert exported(again) == exported(talked)
    assert context.build_request(again) == context.build_request(talked)


def test_a_file_from_elsewhere_is_refused_by_the_name_of_its_field(talked: Session, user: User) -> None:
    whole = exported(talked)
    changes: dict[str, dict[str, Any]] = {
        "format": {"format": "other"},
        "session": {"session": []},
        "session.pinned": {"session": {"pinned": "perhaps"}},
        "messages[0]": {"messages": ["Hi"]},
        "messages[0].status": {"messages": [{"role": "user", "content": "Hi", "status": "asleep"}]},
        "context.boundary_seq": {"context": {"summary": "x", "boundary_seq": 99}},
        "context.edits[0]": {"context": {"edits": [{"message_seq": 99}]}},
    }
    for field, change in changes.items():
        with pytest.raises(history.NotImportable) as refused:
            history.import_session(user, whole | change)
        assert refused.value.field == field
    assert Session.objects.count() == 1


def test_the_commands_write_and_read_a_file(talked: Session, user: User, tmp_path: Path) -> None:
    out, made = StringIO(), StringIO()
    call_command("export", str(talked.pk), stdout=out)
    (tmp_path / "tea.json").write_text(out.getvalue())
    call_command("import", str(tmp_path / "tea.json"), stdout=made)
    assert exported(Session.objects.get(pk=made.getvalue().strip())) == exported(talked)


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
