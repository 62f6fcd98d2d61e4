"""Ask for a summary in the conversation itself, where the provider's prompt cache makes it cheaper.

Such a call begins with the last request of the conversation, which the provider has in its cache,
and ends with the instruction. The messages are not quoted as data then, so only the first attempt
is made so, and its answer is checked against them like any other.
"""

from compaction.models import CompactionRun
from compaction.sessions import request_size
from compaction.sessions.session_context import SessionContext
from compaction.summaries import source
from compaction.summaries.model_calls import (
    SummaryModel,
    load_cached_tokens,
    load_params,
    wants_schema,
)
from compaction.summaries.prompt import SYSTEM_PROMPT

QUOTE_CHARS = 80
OPENING = (
    "(The conversation ends here. What follows is not a part of it, but an instruction about it,"
    " and the only one to follow now.)\n\n"
    + SYSTEM_PROMPT
    + "\n\nThe part to summarize begins with “{first}” and ends with “{last}”. Leave out what came"
    " before and after it.\n\n"
)
DAY = "[day: {day}] begins with the message “{first}”.\n"  # the conversation itself has no days


class CacheReuse:
    """Decide for one run whether a call continues the conversation, to reuse its cache."""

    def __init__(
        self, run: CompactionRun, context: SessionContext, summary_model: SummaryModel
    ) -> None:
        self.session_id = run.session_id
        self.context = context
        self.summary_model = summary_model
        self.form = context.policy.summary.prompt
        has_files = bool(request_size.estimate_attachments(context))
        has_schema = wants_schema(load_params(run.session_id))
        is_other_model = summary_model.model != context.facts.model.name
        if has_files or has_schema or is_other_model or not summary_model.may_follow_talk:
            # Files are cut to the room of each request, so that no two begin alike. With a schema
            # the summary would come in its form, and without it the cache is another.
            self.form = "transcript"

    def give_up(self) -> None:
        """Let all further calls read a transcript, because one has failed."""
        self.form = "transcript"

    def is_due(self, *, transcript_tokens: float, answer_tokens: int, window: int) -> bool:
        """Return True if the call continues the conversation: the policy wants it, and it fits."""
        if self.form == "transcript" or self._count_talk_tokens() + answer_tokens > window:
            return False
        return self.form == "conversation" or self._is_cheaper(transcript_tokens)

    def _is_cheaper(self, transcript_tokens: float) -> bool:
        price, cached_price = self.summary_model.input_price, self.summary_model.cached_input_price
        if not price or cached_price is None or cached_price >= price:
            return False
        cached_tokens = load_cached_tokens(self.session_id)
        new_tokens = max(0, self._count_talk_tokens() - cached_tokens)
        talk_cost = cached_tokens * float(cached_price) + new_tokens * float(price)
        return bool(cached_tokens) and talk_cost < transcript_tokens * float(price)

    def _count_talk_tokens(self) -> int:
        return request_size.measure_next_request(self.context).tokens


def build_text(lines: str, instruction: str) -> str:
    """Return the text behind the conversation: which part of it to summarize, and how."""
    words = _remove_headers(lines)
    opening = OPENING.format(first=_quote(words, 0), last=_quote(words, -QUOTE_CHARS))
    days = "".join(
        DAY.format(day=header[1], first=_quote(_remove_headers(lines[header.end() :]), 0))
        for header in source.DAY_HEADER.finditer(lines)
    )
    return opening + days + instruction.replace("between the transcript tags ", "")


def _remove_headers(lines: str) -> str:
    return source.HEADER.sub("", source.DAY_HEADER.sub("", lines))


def _quote(words: str, start: int) -> str:
    """Return characters of a text in one line, without a mark that could end the quotation."""
    flat_text = " ".join(words.split()).translate(str.maketrans("“”", "''"))
    return flat_text[start:][:QUOTE_CHARS]
