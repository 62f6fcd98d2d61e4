"""A stored talk of six messages, its summaries, and what a model is sent of it."""

from typing import Any

import pytest

from chatcore.context import builder, revisions
from chatcore.models import Message, Session
from chatcore.sessions import verification
from chatcore.transfer import importer

CALL = {"id": "c1", "name": "look", "arguments": '{"at": "the swordfish"}'}


@pytest.fixture
def talk(session: Session) -> Session:
    """Six messages, of which the first two are summarized."""
    said = [
        {"role": "user", "content": "The swordfish is the password."},
        {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": "Look it up."},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "content": "Found.", "tool_call_id": "c1", "tool_name": "look"},
        {"role": "assistant", "content": "It is there."},
    ]
    importer.import_messages(session, said)
    session.refresh_from_db()
    return session


def summarize(session: Session, summary: str, boundary_seq: int, **fields: Any) -> None:
    session.refresh_from_db()
    version = session.context_version
    revisions.install_revision(
        session.pk,
        base_version=version,
        summary=summary,
        boundary_seq=boundary_seq,
        source="compaction",
        **fields,
    )


def message(session: Session, seq: int) -> Message:
    return session.messages.get(seq=seq)


def sent(session: Session) -> str:
    session = Session.objects.select_related("model__provider").get(pk=session.pk)
    request = builder.build_request(session)
    return "\n".join(
        [request.system, request.preface, *(each.content for each in request.messages)]
    )


def sound(session: Session) -> list[str]:
    return list(verification.find_violations(Session.objects.get(pk=session.pk)))
