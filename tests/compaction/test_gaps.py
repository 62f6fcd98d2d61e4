"""A mark says how many messages are left out between the first ones and the newest ones."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from chatcore.models import Message, Session
from chatcore.transfer.exporter import export_session
from chatcore.transfer.importer import import_session
from compaction.sessions.facts import load_session_facts
from compaction.sessions.transcripts import load_transcript
from tests.support.compaction_sessions import (
    fill_session,
    list_chat_calls,
    summarize_or_chat,
)
from tests.support.frozen_talk import use_policy
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)

ORDER = "Delete the branch release-7 now. "
MARK = "[{} messages before this point are left out here; the summary covers them.]"


@pytest.fixture
def ordered(session: Session, scripted: ScriptedModel) -> Session:
    """A chat that begins with an order, and goes on about other things."""
    scripted.default = summarize_or_chat()
    fill_session(session)
    Message.objects.filter(session=session, seq=1).update(content=ORDER + "word " * 380)
    Message.objects.filter(session=session, seq=2).update(content="Done: it is deleted.")
    return session


def compact_and_ask(api: APIClient, session: Session, scripted: ScriptedModel) -> list[str]:
    """Return the texts of the messages of the next request."""
    run = api.post(f"/api/v1/sessions/{session.pk}/compact", {"wait": True}).json()
    assert run["status"] == "applied", run
    scripted.requests.clear()
    sent = api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": "What is next?"})
    assert sent.status_code == 201, sent.json()
    messages: list[dict[str, Any]] = list_chat_calls(scripted)[-1].json["messages"]
    return [str(message["content"]) for message in messages if message["role"] != "system"]


def test_the_first_pair_of_neurolink_is_marked_off(
    ordered: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    use_policy(ordered, "neurolink")
    texts = compact_and_ask(api, ordered, scripted)
    assert texts[0].startswith(ORDER)
    assert texts[1] == "Done: it is deleted."
    ordered.refresh_from_db()
    assert ordered.compact_boundary_seq
    assert texts[2].startswith(MARK.format(ordered.compact_boundary_seq - 3))
    assert sum("are left out here" in text for text in texts) == 1


@pytest.mark.parametrize("policy", ["oneclaw", "chatcore"])
def test_so_is_a_pinned_message(
    ordered: Session, api: APIClient, scripted: ScriptedModel, policy: str
) -> None:
    use_policy(ordered, policy)
    Message.objects.filter(session=ordered, seq=1).update(pinned=True)
    texts = compact_and_ask(api, ordered, scripted)
    ordered.refresh_from_db()
    assert ordered.compact_boundary_seq
    joined = "\n".join(texts)
    mark = MARK.format(ordered.compact_boundary_seq - 2)
    assert joined.index(ORDER) < joined.index(mark) < joined.index(" lisbon trip")


@pytest.mark.parametrize("policy", ["oneclaw", "chatcore", "baseagent", "lota"])
def test_without_early_messages_nothing_is_marked(
    ordered: Session, api: APIClient, scripted: ScriptedModel, policy: str
) -> None:
    use_policy(ordered, policy)
    texts = compact_and_ask(api, ordered, scripted)
    assert "are left out here" not in "\n".join(texts)


def test_the_mark_is_counted_and_comes_with_an_export(
    ordered: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    use_policy(ordered, "neurolink")
    scripted.default = summarize_or_chat(chat=Reply(text="Next is the hotel.", usage=False))
    compact_and_ask(api, ordered, scripted)
    ordered.refresh_from_db()
    facts = load_session_facts(ordered.pk)
    assert facts
    chars = facts.sizes.reference_chars
    assert load_transcript(facts).overhead_tokens == max(1, chars // 4)
    copy = import_session(ordered.owner, export_session(ordered))
    copied_facts = load_session_facts(copy.pk)
    assert copied_facts
    assert copied_facts.live.boundary_seq == facts.live.boundary_seq
    preview = api.get(f"/api/v1/sessions/{copy.pk}/context/preview").json()
    assert str(preview["messages"]).count("are left out here") == 1
