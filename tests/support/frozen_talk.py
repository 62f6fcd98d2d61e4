"""Talks with facts that can be counted, and a summarizer that loses a known share of them."""

import hashlib
import re
from collections.abc import Iterable
from typing import Any

from django.db.models import F

from chatcore.models import Message, Session
from tests.support.scripted_wire import Reply

KEEP_RATIO = 0.8
FILLER = " and so the talk went on about nothing much"
_FACT = re.compile(r"Fact \d+ \d+ is \d+\.")


def use_policy(session: Session, policy: str) -> None:
    Session.objects.filter(pk=session.pk).update(policy=policy)
    session.refresh_from_db()


def add_facts(session: Session, *, messages: int = 8, facts: int = 3) -> list[list[str]]:
    """Store messages of about 500 tokens with some facts each; return the facts of each."""
    session.refresh_from_db()
    start = session.last_seq
    facts_by_message = [
        [f"Fact {seq} {number} is {seq * 7919 + number * 104729}." for number in range(facts)]
        for seq in range(start + 1, start + messages + 1)
    ]
    Message.objects.bulk_create(
        Message(
            session=session,
            seq=seq,
            role="user" if seq % 2 else "assistant",
            content=" ".join(texts) + FILLER * 45,
        )
        for seq, texts in enumerate(facts_by_message, start=start + 1)
    )
    Session.objects.filter(pk=session.pk).update(
        last_seq=start + messages, message_count=F("message_count") + messages
    )
    session.refresh_from_db()
    return facts_by_message


def keep_most(request: dict[str, Any]) -> Reply:
    """Answer a summary call with 80 % of the facts of its transcript, by their hash."""
    text = str(request["messages"][-1]["content"])
    if "<transcript>" not in text:
        return Reply(text="Noted.")
    transcript = text.split("</transcript>")[0]
    facts = _FACT.findall(transcript)
    kept_facts = [fact for fact in facts if _survives(fact, facts)]
    return Reply(text=" ".join(kept_facts) or "Nothing was said.")


def count_facts(summary: str, facts: Iterable[str]) -> int:
    return sum(fact in summary for fact in facts)


def _survives(fact: str, facts: Iterable[str]) -> bool:
    # All facts of the call are part of the hash, because each call of a model loses other ones.
    # Nothing else is: what is lost must not depend on the day of the test.
    digest = hashlib.sha256(" ".join((fact, *facts)).encode()).digest()
    return digest[0] < KEEP_RATIO * 256
