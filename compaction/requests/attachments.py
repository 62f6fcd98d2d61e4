"""Attached files in a request: cut to their share of the room that is left, before the request is measured."""

from dataclasses import replace
from typing import Any

from compaction.backends import registry as backend_registry
from compaction.core import attachments
from compaction.core.counting import counter
from compaction.core.estimate import estimated
from compaction.sizing.session_context import Situation


def fitted(now: Situation, request: Any) -> Any:
    """The host's built request with as much of its files as the policy's `files` allow; the same one when that is all of them."""
    backend = backend_registry.get()
    attached = backend.files_of(request)
    if not attached:
        return request
    count = counter(now.policy, now.subject.family)
    found = [attachments.File(size, text, count.text(text)) for size, text in attached]
    texts = attachments.fitted(
        found, _room(now, backend.with_files(request, [""] * len(found))), now.policy.files
    )
    return request if texts == [file.text for file in found] else backend.with_files(request, texts)


def _room(now: Situation, rest: Any) -> int | None:
    """Tokens, as the policy counts, for the files of a request of which `rest` is all else. None: the window is unknown."""
    if now.budget is None:
        return None
    transcript = backend_registry.get().read(rest, None, family=now.subject.family).transcript
    used = estimated(
        replace(
            transcript, entries=tuple(replace(entry, tokens=0) for entry in transcript.entries)
        ),
        now.policy,
    )
    scale = max(1.0, now.refused_scale, now.experience.ratio)
    reserve = now.budget.window - now.budget.input
    return int(
        attachments.file_token_budget(
            now.budget.window, int(used * scale), reserve, now.policy.files.budget_ratio
        )
        / scale
    )
