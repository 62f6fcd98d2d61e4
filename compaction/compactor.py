"""Answer Chatcore during a conversation: the class that CHATCORE["COMPACTOR"] names."""

import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.core.exceptions import ValidationError

from chatcore.base.truncation import cut_tool_result
from chatcore.context import compactor as context_compactor
from chatcore.context.compactor import (
    CompactionLoad,
    CompactionReport,
    FittedRequest,
    TruncatedOutput,
)
from chatcore.context.recalled import RecalledPassage
from chatcore.models import Session
from chatcore.models.session import MIN_THRESHOLD_TOKENS
from chatcore.providers.base import ChatMessage, Request
from chatcore.providers.errors import ContextOverflow
from compaction import policies
from compaction.core.attachments import FENCE, FENCE_END
from compaction.core.budget import plan
from compaction.core.knobs import PolicyError, get_rule, list_knobs
from compaction.core.policy import Policy
from compaction.core.rules import TEXT
from compaction.core.systems import find_system
from compaction.models import CompactionRun
from compaction.policies.sentences import describe_policy
from compaction.requests import guard, stateless
from compaction.runs import engine, workload
from compaction.runs.queue import RunConflict
from compaction.sessions.memory_app import get_memory
from compaction.sessions.session_context import NoSuchSession
from models_registry.models import AiModel

_NUMBER = r"[\d.,]{1,20}"
_PATH = r"\S{1,300}"


@dataclass(frozen=True)
class AskedPolicy(context_compactor.Policy):
    """A policy by its name."""

    name: str = field()  # no default, although the class above has a name
    policy: Policy

    @property
    def sentence(self) -> str:
        """Return what the policy does, in the reader's language."""
        return describe_policy(self.policy)

    def truncate_output(self, text: str) -> TruncatedOutput:
        """Cut a tool's output as the group `tool_result` says. Never raises.

        An import asks for each of its results, so this takes no query.
        """
        system = find_system(self.policy)
        if system:
            content, original_chars = system.truncate_output(text, self.policy)
        else:
            content, original_chars = cut_tool_result(text, self.policy.tool_result.limit)
        keeps_full_text = self.policy.tool_result.spill and content != text
        return TruncatedOutput(content, original_chars, text if keeps_full_text else None)

    def validate_threshold(self, threshold: float, *, model: AiModel | None = None) -> None:
        """Refuse a session's own threshold if the policy cannot use it.

        Raises ValidationError, which names the field.
        """
        if threshold >= MIN_THRESHOLD_TOKENS:
            self._require_window(int(threshold), model)
            return
        try:
            Policy.parse({"trigger": {"threshold": threshold}}, self.policy)
        except PolicyError as error:
            raise ValidationError({"compact_threshold": str(error)}) from None

    def _require_window(self, token_threshold: int, model: AiModel | None) -> None:
        """Refuse a number of tokens that a request to this model never reaches."""
        if model is None:
            return
        budget = plan(
            self.policy,
            model.context_window_size,
            max_input=model.max_input_tokens,
            output_reserve=model.output_reserve,
            family=model.provider.family,
        )
        most = min(budget.input, budget.request_limit) if budget else None
        if most is not None and token_threshold >= most:
            detail = f"It must be less than the {most} tokens that a request may have."
            raise ValidationError({"compact_threshold": detail})

    def may_have_written(self, text: str, *, original: str = "") -> bool:
        """Return True if the policy could have written this in the place of the original.

        That is one of its texts between the beginning and the end of the original.
        """
        return any(
            original.startswith(text[: match.start()].rstrip().removesuffix(FENCE_END).rstrip())
            and original.endswith(_skip_fence(text[match.end() :].lstrip()))
            for pattern in _list_patterns(self.policy)
            for match in re.finditer(pattern, text)
        )

    def choose_passages(
        self, session: Session, question: ChatMessage, request: Request
    ) -> Sequence[RecalledPassage] | None:
        """Return what memory brings back; None if the policy gives it no room."""
        knobs = self.policy.recall
        if not knobs.tokens:
            return None
        return get_memory().choose_passages(session, question, request, knobs)

    def leave_out_forgotten(
        self, session_id: UUID, texts: Sequence[tuple[int, str, str]]
    ) -> Sequence[str]:
        """Return these texts without what the user wants forgotten, under every policy."""
        return get_memory().leave_out_forgotten(session_id, texts)


def _skip_fence(text: str) -> str:
    """Return a text without a fence of a file at its beginning."""
    fence = FENCE.match(text)
    return text[fence.end() :].lstrip() if fence else text


class Compactor(context_compactor.Compactor):
    """Chatcore's way into compaction. It stores nothing between calls and only delegates.

    All methods are synchronous. They run outside any transaction, because they may call a language
    model; `choose_policy` alone may be called inside one.
    """

    def before_request(self, session: Session, request: Request) -> FittedRequest:
        """Return the request that fits the session's context window.

        Raises ContextBudgetExceeded if the request can never fit.
        """
        return guard.fit_request(session, request)

    def preview_request(self, session: Session, request: Request) -> FittedRequest:
        """Return what `before_request` would send now. Nothing is stored, no model is called."""
        return guard.preview_request(session, request)

    def after_overflow(self, session: Session, request: Request, error: ContextOverflow) -> bool:
        """Make room after a refusal for length; return True if sending again is worthwhile."""
        return guard.make_room_after_refusal(session, request, error)

    def estimate_tokens(self, session: Session) -> int:
        """Return the tokens of the session's next request; 0 if the session is deleted."""
        return guard.estimate_next_request(session.pk)

    def compact_session(
        self, session: Session, *, instructions: str = ""
    ) -> CompactionReport | None:
        """Compact the session in this thread; return how that ended, None if it is deleted."""
        try:
            run = engine.compact_now(
                session.pk, trigger=CompactionRun.Trigger.MANUAL, instructions=instructions
            )
        except RunConflict as conflict:  # another run is open for too long: the report is about it
            run = conflict.run
        except NoSuchSession:
            return None
        return CompactionReport(
            run_id=str(run.pk),
            status=run.status,
            input_tokens=run.input_tokens or 0,
            output_tokens=run.output_tokens or 0,
        )

    def fit_request(
        self, model: AiModel, request: Request, *, overflow: ContextOverflow | None = None
    ) -> FittedRequest:
        """Return the request that fits a model and has no session.

        `overflow` is the refusal that this request has just met. Raises
        ContextBudgetExceeded if it can never fit.
        """
        return stateless.fit_stateless_request(model, request, refusal=overflow)

    def shorten_request(
        self, model: AiModel, request: Request, *, limit_tokens: int
    ) -> FittedRequest | None:
        """Return the request without its oldest messages, or None."""
        return stateless.shorten_request(model, request, limit_tokens=limit_tokens)

    def estimate_request(self, model: AiModel, request: Request) -> int:
        """Return the estimated tokens of a request without a session."""
        return stateless.estimate_request(model, request)

    def learn_from_answer(
        self,
        model: AiModel,
        request: Request,
        *,
        counted_tokens: int | None = None,
        window: int | None = None,
    ) -> None:
        """Learn from the provider's count of an answered request, and the window it showed."""
        if counted_tokens is not None:
            stateless.learn_token_count(model, request, counted_tokens)
        if window is not None:
            stateless.learn_window(model, window)

    def list_policies(self) -> Mapping[str, AskedPolicy]:
        """Return all usable policies by their names, presets first."""
        return {
            name: AskedPolicy(name, policy) for name, policy in policies.list_policies().items()
        }

    def choose_policy(self, *names: str) -> AskedPolicy:
        """Return the policy that acts where these are asked for, the first first.

        A preset takes no query.
        """
        return AskedPolicy(*policies.choose_policy(*names))

    def measure_load(self) -> CompactionLoad:
        """Return the work that waits and runs on all machines."""
        return workload.measure_load()


def _list_patterns(policy: Policy) -> Iterator[str]:
    """Yield a pattern for each text that the policy may put in the place of a message."""
    for group in policy.list_groups():
        for knob in list_knobs(type(group)):
            text = str(getattr(group, knob.name)).strip() if knob.name in group.written else ""
            if text:
                yield re.escape(text) if get_rule(knob) is TEXT else _convert_template(text)


def _convert_template(template: str) -> str:
    parts = []
    for text, name, _, _ in string.Formatter().parse(template):
        parts.append(re.escape(text))
        if name is not None:
            parts.append(_PATH if name == "path" else _NUMBER)
    return "".join(parts)
