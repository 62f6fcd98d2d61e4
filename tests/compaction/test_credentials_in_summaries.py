"""Credentials that tools returned reach no summarizer, no summary and no ledger."""

import pytest
from rest_framework.test import APIClient

from chatcore.models import Message, Session
from compaction.runs import engine
from tests.support.compaction_sessions import read_prompt
from tests.support.frozen_talk import use_policy
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)

ENV = (
    "MAIL_PASSWORD=winter-84-lake\nSTRIPE_SECRET=sk_live_abcdefgh12345678\nDB_PORT=5432\n"
    "AWS_ID: AKIAIOSFODNN7EXAMPLE"
)
SECRETS = (
    "winter-84-lake",
    "sk_live_abcdefgh12345678",
    "AKIAIOSFODNN7EXAMPLE",
    "hunter22",
    "glpat-abcdefghij123456",
)


@pytest.mark.parametrize("policy", ["oneclaw", "chatcore"])
def test_what_a_tool_returned_is_replaced_and_what_the_user_wrote_is_not(
    session: Session, scripted: ScriptedModel, api: APIClient, policy: str
) -> None:
    use_policy(session, policy)
    arguments = '{"url": "postgres://app:hunter22@db/app"}'
    calls = [{"id": "c1", "name": "run", "arguments": arguments}]
    session.messages.create(seq=1, role="user", content="My key is glpat-mine567890123456. " * 60)
    session.messages.create(seq=2, role="assistant", tool_calls=calls)
    session.messages.create(
        seq=3, role="tool", tool_call_id="c1", tool_name="run", content=f"{ENV}\n{SECRETS[-1]}"
    )
    session.messages.create(
        seq=4, role="assistant", content=f"It says {SECRETS[1]} and winter-84-lake. " * 60
    )
    Message.objects.bulk_create(
        Message(session=session, seq=seq, role="user", content="x" * 4000) for seq in range(5, 9)
    )
    # A model that has them from elsewhere is not let through either.
    written = f"The user has the key glpat-mine567890123456; Stripe has {SECRETS[1]} as its secret."
    scripted.default = Reply(text=written)
    run = engine.compact_now(session.pk, trigger="manual", up_to_seq=4)
    assert run.status == "applied", run.reason
    prompt = read_prompt(scripted)
    preview = str(api.get(f"/api/v1/sessions/{session.pk}/context/preview").json())
    for secret in SECRETS:
        assert secret not in prompt
        assert secret not in preview
    assert "glpat-mine567890123456" in preview
    assert "STRIPE_SECRET=[credential removed]" in prompt
    assert "glpat-mine567890123456" in prompt
    assert "Keep no credentials" in prompt
