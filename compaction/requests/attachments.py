"""Attached files in a request: cut to their share of the room that is left, before the request is measured."""

from dataclasses import replace
from typing import Any

from compaction.backends import registry as backend_registry
from compaction.core import attachments
from compaction.core.counting import build_counter
from compaction.core.estimate import estimate_transcript
from compaction.sizing.session_context import SessionContext


def fit_attachments(context: SessionContext, request: Any) -> Any:
    """The host's built request with as much of its files as the policy's `files` allow; the same one when that is all of them."""
    backend = backend_registry.get_backend()
    sizes_and_texts = backend.list_text_files(request)
    if not sizes_and_texts:
        return request
    token_counter = build_counter(context.policy, context.facts.family)
    text_files = [
        attachments.FileEntry(size, text, token_counter.count_text(text))
        for size, text in sizes_and_texts
    ]
    texts = attachments.fit_files(
        text_files,
        _calculate_room(context, backend.replace_file_texts(request, [""] * len(text_files))),
        context.policy.files,
    )
    return (
        request
        if texts == [file.text for file in text_files]
        else backend.replace_file_texts(request, texts)
    )


def _calculate_room(context: SessionContext, bare_request: Any) -> int | None:
    """Tokens, as the policy counts, for the files of a request of which `rest` is all else. None: the window is unknown."""
    if context.budget is None:
        return None
    transcript = (
        backend_registry.get_backend()
        .parse_request(bare_request, None, family=context.facts.family)
        .transcript
    )
    used_tokens = estimate_transcript(
        replace(
            transcript, entries=tuple(replace(entry, tokens=0) for entry in transcript.entries)
        ),
        context.policy,
    )
    token_ratio = max(1.0, context.refusal_token_ratio, context.model_calibration.ratio)
    reserve = context.budget.window - context.budget.input
    return int(
        attachments.compute_file_budget(
            context.budget.window,
            int(used_tokens * token_ratio),
            reserve,
            context.policy.files.budget_ratio,
        )
        / token_ratio
    )
