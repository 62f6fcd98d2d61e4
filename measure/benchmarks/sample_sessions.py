"""Long conversations in the database, each compacted up to its last messages."""

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User

from chatcore.context import revisions
from chatcore.models import Message, Session
from models_registry.models import AiModel, Provider

TAIL = 40  # messages after the summary, however long the history is
BATCH = 5_000
WORDS = "The quick brown fox jumps over the lazy dog, and then it writes a report about it. " * 5
EXCHANGE = ({"role": "user", "content": WORDS}, {"role": "assistant", "content": WORDS})


def create_model(base_url: str, *, window: int = 200_000) -> AiModel:
    """Create a model with a window of so many tokens at the provider of this address."""
    provider = Provider.objects.create(
        name=f"bench-{Provider.objects.count()}",
        protocol=Provider.Protocol.OPENAI,
        base_url=base_url,
    )
    return AiModel.objects.create(
        provider=provider, name="test-model", context_window_size=window, supports_tools=True
    )


def get_user() -> User:
    """Return the user that owns all sample sessions."""
    return User.objects.get_or_create(username="bench")[0]


def create_conversation(
    messages: int,
    using: AiModel,
    exchange: Sequence[dict[str, Any]] = EXCHANGE,
    *,
    is_compacted: bool = True,
) -> Session:
    """Create a session of that many messages, which repeat `exchange`.

    A summary stands for all messages but the last TAIL, unless `is_compacted` is False.
    """
    is_compacted = is_compacted and messages > TAIL
    session = Session.objects.create(
        owner=get_user(), model=using, message_count=messages, last_seq=messages
    )
    for first in range(1, messages + 1, BATCH):
        last = min(first + BATCH, messages + 1)
        Message.objects.bulk_create(
            _build_message(session, seq, using, exchange) for seq in range(first, last)
        )
    if is_compacted:
        revisions.install_revision(
            session.pk,
            base_version=0,
            summary=WORDS * 4,
            boundary_seq=messages - TAIL + 1,
            source="compaction",
            run="benchmark",
        )
    Message.objects.filter(session=session, seq=messages).update(
        token_count_input=9_000, token_count_output=90, context_version=int(is_compacted)
    )
    session.refresh_from_db()
    return session


def _build_message(
    session: Session, seq: int, using: AiModel, exchange: Sequence[dict[str, Any]]
) -> Message:
    fields = exchange[(seq - 1) % len(exchange)]
    content = f"{seq}\n\n{fields['content']}"
    return Message(
        session=session,
        seq=seq,
        model=str(using) if fields["role"] == "assistant" else "",
        **fields | {"content": content},
    )
