"""What the model will read of files that are not sent yet, so that a person knows it before."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any
from uuid import UUID

from django.db import transaction

from chatcore.context.compactor import get_compactor
from chatcore.files.rendering import MessageFiles, fence_text
from chatcore.models import Attachment, Session
from chatcore.providers.base import ChatMessage, File
from chatcore.turns.prepared_calls import build_next_request
from models_registry.models import AiModel

PAGE_END = "\f"


@dataclass(frozen=True, kw_only=True)
class Excerpt:
    """The first part of a file that the model will read, in pages or characters.

    `total` is None for a file without a text, as a scan; then `shown` is 0.
    """

    unit: str
    shown: int
    total: int | None


def describe_excerpts(session: Session, files: Sequence[Attachment]) -> dict[UUID, Excerpt]:
    """Return by file what the model will read, if all of them are sent together now.

    Files that it reads whole, and images, are left out.
    """
    text_files = [file for file in files if not file.media_type.startswith("image/")]
    excerpts = {
        file.pk: Excerpt(unit="page", shown=0, total=None) for file in text_files if not file.text
    }
    read_files = [file for file in text_files if file.text]
    if not read_files:
        return excerpts
    sent_texts = _fit_texts(session, read_files)
    for file, text in zip(read_files, sent_texts, strict=True):
        if text != file.text:
            excerpts[file.pk] = _compare(file.text, text)
    return excerpts


def describe_first_message(
    owner: Any, model: AiModel | None, files: Sequence[Attachment]
) -> dict[UUID, Excerpt]:
    """Return what `describe_excerpts` returns for a session that does not exist yet."""
    with transaction.atomic():
        session = Session.objects.create(owner=owner, model=model)
        excerpts = describe_excerpts(session, files)
        transaction.set_rollback(True)
    return excerpts


def _fit_texts(session: Session, files: Sequence[Attachment]) -> list[str]:
    parts = tuple(File(name=file.name, size=file.size, text=file.text) for file in files)
    contents = MessageFiles(text="\n\n".join(map(fence_text, parts)), files=parts)
    message = contents.add_to_message(ChatMessage(role="user", seq=session.last_seq + 1))
    request = build_next_request(session)
    request = replace(request, messages=[*request.messages, message])
    fitted_request = get_compactor().preview_request(session, request).request
    newest = next(
        (sent for sent in reversed(fitted_request.messages) if sent.seq == message.seq), message
    )
    return [file.text for file in newest.files]


def _compare(text: str, sent_text: str) -> Excerpt:
    pairs = zip(text, sent_text, strict=False)
    shown_text = text[: sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))]
    if PAGE_END not in text:
        return Excerpt(unit="character", shown=len(shown_text), total=len(text))
    pages = shown_text.count(PAGE_END)
    return Excerpt(
        unit="page",
        shown=max(pages, 1) if shown_text.strip() else 0,
        total=text.count(PAGE_END) + 1,
    )
