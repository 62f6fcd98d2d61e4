"""Read built requests as transcripts, and change them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from chatcore.context import builder
from chatcore.context.clearing import clear_again, list_applied_edits
from chatcore.files.rendering import replace_file_texts
from chatcore.models import Session
from chatcore.projects.system_text import join_texts
from chatcore.providers.base import Request
from chatcore.turns.prepared_calls import build_next_request
from compaction.core import attachments
from compaction.core.estimate import LastUsage, build_counter, estimate_transcript
from compaction.core.systems import describe_traits
from compaction.core.transcript import Transcript, TranscriptEntry
from compaction.sessions.facts import count_tool_rounds
from compaction.sessions.session_context import SessionContext
from compaction.sessions.translation import serialize_tools, to_entry


@dataclass(frozen=True, kw_only=True)
class ParsedRequest:
    """A built request in the core's form.

    Its messages are numbered by their position in the request, from 1; so is the last usage.
    """

    transcript: Transcript
    last_usage: LastUsage | None


def rebuild_request(session: Session, request: Request | None = None) -> Request:
    """Build the next request from storage.

    It has the tools, parameters and clearing of `request`, if given: they may be those of its
    turn alone. This refreshes `session.context_version`, as `builder.build_request` says.
    """
    if request is not None:
        rebuilt_request = builder.build_request(session, tools=request.tools)
        rebuilt_request = replace(rebuilt_request, params=request.params)
        return clear_again(session.model, rebuilt_request, request)
    return build_next_request(session)


def parse_request(
    request: Request, last_usage: LastUsage | None, *, family: str = ""
) -> ParsedRequest:
    """Return the request in the core's form.

    Texts that stand for older messages become its summary, in whatever role they are sent. The
    provider counted the last request with what this one leaves out.
    """
    if list_applied_edits(request):
        last_usage = None
    conversation = [
        (position, message)
        for position, message in enumerate(request.messages, start=1)
        if message.recalled or not message.aside
    ]
    transcript = Transcript(
        entries=tuple(
            [
                to_entry(message, position, images=len(message.images))
                for position, message in conversation
            ]
        ),
        summary=_join_summary_texts(request),
        system=_remove_summary(request),
        tools=serialize_tools(request.tools),
        family=family,
    )
    if last_usage is not None:
        newer_positions = (
            position
            for position, message in conversation
            if (message.seq or 0) > last_usage.after_seq
        )
        first_newer = next(newer_positions, len(request.messages) + 1)
        last_usage = replace(last_usage, after_seq=first_newer - 1)
    return ParsedRequest(transcript=transcript, last_usage=last_usage)


def keep_entries(request: Request, entries: Iterable[TranscriptEntry]) -> Request:
    """Return the request with these messages only, in their texts, and with its summary."""
    texts = {entry.seq: entry.content for entry in entries}
    messages = (
        message
        if texts.get(position, message.content) == message.content
        else replace(message, content=texts[position])
        for position, message in enumerate(request.messages, start=1)
        if position in texts or (message.aside and not message.recalled)
    )
    return replace(request, messages=tuple(messages))


def append_system_text(request: Request, text: str) -> Request:
    """Return the request with a paragraph more at the end of its system text.

    The preface is unchanged, because providers may cache it for longer.
    """
    return replace(request, system=join_texts((request.system, text)))


def _join_summary_texts(request: Request) -> str | None:
    aside_texts = [
        message.content for message in request.messages if message.aside and not message.recalled
    ]
    return join_texts((request.system_summary, request.preface, *aside_texts)) or None


def _remove_summary(request: Request) -> str:
    """Return the system text without the summary that stands in it."""
    if not request.system_summary:
        return request.system
    return request.system.replace(request.system_summary, "", 1)


def fit_attachments(context: SessionContext, request: Request) -> Request:
    """Return the built request with as much of its files as the policy's `files` group allows."""
    sent_files = [file for message in request.messages for file in message.files]
    if not sent_files:
        return request
    token_counter = build_counter(context.policy, context.facts.model.family)
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
    parsed_request = parse_request(bare_request, None, family=context.facts.model.family)
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


HINT_TEMPLATE = (
    "<runtime>\n"
    "Tool rounds in this turn so far: {rounds}\n"
    "Tools called in this turn so far: {calls}\n"
    "When a task asks for one call for each item of a set (every one of N mails, every one of "
    "N pages), make that call for EVERY item before you give a final answer. Make 10 to 15 calls "
    "in one response, and go on with the rest in the next. What a search or a list tells of an "
    "item is no substitute for the call for that item: "
    '"all of them" means all, not a part of them.\n'
    "</runtime>"
)


def add_runtime_hint(context: SessionContext, request: Request) -> Request:
    """Return the request with the hint at the end of its system text.

    It stands in every prompt of a loop, the first one too: there the model decides how many items
    it works on. The request is unchanged if the policy wants no hint, or if there are no tools.
    """
    if not describe_traits(context.policy).has_runtime_hint or not context.facts.sizes.tool_chars:
        return request
    rounds, calls = count_tool_rounds(context.facts)
    return append_system_text(request, HINT_TEMPLATE.format(rounds=rounds, calls=calls))
