"""Shorten the files of a request to their share of the room, before it is measured."""

from dataclasses import replace

from chatcore.files.rendering import replace_file_texts
from chatcore.providers.base import Request
from compaction.core import attachments
from compaction.core.counting import build_counter
from compaction.core.estimate import estimate_transcript
from compaction.requests.editing import parse_request
from compaction.sizing.session_context import SessionContext


def fit_attachments(context: SessionContext, request: Request) -> Request:
    """Return the built request with as much of its files as the policy's `files` group allows."""
    sent_files = [file for message in request.messages for file in message.files]
    if not sent_files:
        return request
    token_counter = build_counter(context.policy, context.facts.family)
    text_files = [
        attachments.FileEntry(file.size, file.text, token_counter.count_text(file.text))
        for file in sent_files
    ]
    bare_request = replace_file_texts(request, [""] * len(text_files))
    file_budget = _calculate_file_budget(context, bare_request)
    texts = attachments.fit_files(text_files, file_budget, context.policy.files)
    if texts == [file.text for file in text_files]:
        return request
    return replace_file_texts(request, texts)


def _calculate_file_budget(context: SessionContext, bare_request: Request) -> int | None:
    """Return the tokens, as the policy counts, that files may take; None without a known window.

    `bare_request` is the request with empty files.
    """
    if context.budget is None:
        return None
    parsed_request = parse_request(bare_request, None, family=context.facts.family)
    # Stored token counts include the files, so every message is counted again by its text.
    uncounted_entries = tuple(
        replace(entry, tokens=0) for entry in parsed_request.transcript.entries
    )
    used_tokens = estimate_transcript(
        replace(parsed_request.transcript, entries=uncounted_entries), context.policy
    )
    # The budget is planned in the provider's tokens; the policy's estimates are converted there and
    # back.
    token_ratio = max(1.0, context.refusal_token_ratio, context.model_calibration.ratio)
    file_budget = attachments.compute_file_budget(
        context.budget.window,
        int(used_tokens * token_ratio),
        context.budget.window - context.budget.input,
        context.policy.files.budget_ratio,
    )
    return int(file_budget / token_ratio)
