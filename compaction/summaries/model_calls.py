"""Call the language models of the registry to write summaries."""

import asyncio
import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

from django import db
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import DatabaseError, close_old_connections
from django.utils import timezone

from chatcore.accounts.rights import select_models
from chatcore.accounts.spending import (
    Purpose,
    Reservation,
    end_call,
    expect_use,
    reserve_call,
    settle_call,
)
from chatcore.base.databases.outages import store_patiently
from chatcore.base.token_estimate import estimate_tokens
from chatcore.models import Message, Session
from chatcore.providers import output_limits
from chatcore.providers import registry as provider_registry
from chatcore.providers.base import (
    ChatMessage,
    Connection,
    ReasoningDelta,
    Request,
    StreamEnd,
    TextDelta,
)
from chatcore.providers.errors import (
    ContextOverflow,
    ProviderAuth,
    ProviderError,
    ProviderRateLimited,
    ProviderRejected,
    ProviderTimeout,
)
from chatcore.providers.protocols import load_protocol
from chatcore.providers.registry import build_connection, choose_effort
from chatcore.turns.prepared_calls import build_next_request
from compaction.models import pack_text
from models_registry.models import AiModel

logger = logging.getLogger(__name__)

REPORT_SECONDS = 1.0
FORBIDDEN_STATUSES = (401, 403)  # for the key, the account or the place: not for a moment
# A part of no cached prefix; with them a summary would come in another form, or cut.
ANSWER_PARAMS = ("response_format", "stop", "stop_sequences", "logit_bias", "n")
BUSY_STATUSES = (429, 503, 529)
# Of an account that is to be paid for. With it, a free one may name a time to wait.
NO_CREDIT = re.compile(r"insufficient.quota|exceeded your current quota", re.I)
CACHE_LIFETIME = timedelta(minutes=5)  # without use; the shortest of the providers


@dataclass(eq=False)
class CallFailed(Exception):
    """A call of a language model ended without an answer."""

    detail: str
    _: KW_ONLY
    too_long: bool = False  # the provider refused the request for its length
    tokens: int | None = None  # the provider's numbers then, where it gave them
    window: int | None = None
    temperature: bool = False  # the model does not accept the temperature
    seconds: float | None = None  # how long the call was waited for, where it was stopped
    is_throttled: bool = False  # the provider takes no more requests at the moment
    retry_after: float | None = None  # seconds, where it says so
    is_filtered: bool = False  # the provider refuses the contents of the messages
    needs_room: bool = False  # the answer does not fit the room that it was given
    is_refused: bool = False  # it refuses the request for a reason that is not known
    was_accepted: bool = False  # it was no refusal by a status, so that it may be paid for
    is_final: bool = False  # another call would fail too, as with a refused key


class ModelNotUsable(Exception):
    """A model cannot write the summary that it was chosen for; the text says why, for users."""


class CallTrace:
    """What is noted of a call while it is made, for those who look into the run.

    `answer` is the text that has come so far, word for word.
    """

    def __init__(self) -> None:
        self.answer = ""
        self._request = b""
        self._packing: threading.Thread | None = None

    def keep_request(self, body: bytes) -> None:
        """Keep the body as it was sent. Another thread packs it while the model writes."""
        self._packing = threading.Thread(target=self._pack, args=(body,), daemon=True)
        self._packing.start()

    def take_request(self) -> bytes:
        """Return the body, as it is stored; nothing if none was kept."""
        if self._packing is not None:
            self._packing.join()
        return self._request

    def _pack(self, body: bytes) -> None:
        self._request = pack_text(body)


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A call: a fixed system text, and one message that holds everything else."""

    system: str
    text: str
    max_tokens: int
    temperature: float | None  # None: the model's default
    model: str = ""  # the name of the model to call; empty: the session's own
    timeout: float = 240.0  # seconds, for the whole call
    first_word_seconds: float = 0.0  # that a slow model may need before its first word
    reuses_cache: bool = False  # the text follows what the session's next request sends
    # Called about once a second, in another thread, with what was written so far.
    # What it raises ends the call.
    report: Callable[[str], None] | None = field(default=None, compare=False, repr=False)
    # Takes what was sent and what came.
    trace: CallTrace | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class SummaryModel:
    """The language model that writes a session's summaries; `model` is empty where there is none.

    `echoes_headings` marks a small model that copies explanations of headings into its answer, so
    that its prompt must hold bare headings. `names_lines` is False of one that cannot quote what is
    to last: a small one, or one whose answers have shown it. Sizes are tokens; None is unknown.
    """

    model: str
    echoes_headings: bool = False
    names_lines: bool = True
    timeout: float = 0.0  # seconds that a call of it needs at least, if known
    window: int | None = None
    max_output_tokens: int | None = None
    max_chunk_tokens: int = 0  # of the conversation in one call, if longer ones were refused
    thought_room: int = 0  # that its answers were seen to need
    thoughts_exceed: int = 0  # the most room that its thoughts were seen to take whole
    takes_temperature: bool = True
    # False of one that called tools where the conversation ended with the instruction.
    may_follow_talk: bool = True
    # What it does with the tools that a summary call does not have.
    calls_without_tools: Literal["", "unless told", "always"] = ""
    input_price: Decimal | None = None  # for a million tokens; None is unknown
    cached_input_price: Decimal | None = None


@dataclass(frozen=True, kw_only=True)
class CallResult:
    """A language model's answer and its cost.

    Token counts are the provider's, or estimates where it gave none. `cached_tokens` are those of
    the input that came from a cache. `thought_tokens` are those of the thoughts, as
    far as they came or were counted. `cost` is None where it is unknown. `prompt_seconds` is the
    time to the first word, and `answer_seconds` that from there to the end.
    """

    text: str
    finish: Literal["stop", "length", "tool_calls", "refusal", "unknown"]
    model: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    thought_tokens: int = 0
    prompt_seconds: float = 0.0
    answer_seconds: float = 0.0
    cost: Decimal | None = None


def choose_summary_model(
    session_id: UUID, model_name: str, *, chosen_name: str = ""
) -> SummaryModel:
    """Return the model that writes a session's summaries.

    It is `chosen_name`, which was chosen for one run, else the one that the session's model
    names for this, else `model_name` (`same` names none), else the session's own. A provider
    whose option `summary_headings` is `bare` has models that copy explanations of headings; the
    option `summary_seconds` gives its models more time than the policy does.
    """
    session_model = _load_session_model(session_id)
    model = _find_chosen_model(chosen_name)
    if model is None and session_model is not None:
        model = _find_named_model(session_model, model_name) or session_model
    if model is None:
        return SummaryModel(model="")
    facts = _read_facts(model)
    is_small = model.provider.options.get("summary_headings") == "bare"
    limits = (model.max_output_tokens, facts.get("output_limit"))
    return SummaryModel(
        model=str(model),
        echoes_headings=is_small,
        names_lines=facts.get("summary_names_lines", not is_small),
        timeout=model.provider.options.get("summary_seconds", 0),
        window=model.request_limit,
        max_output_tokens=min((limit for limit in limits if limit), default=None),
        max_chunk_tokens=facts.get("summary_chunk_tokens", 0),
        thought_room=facts.get("thought_room", 0),
        thoughts_exceed=facts.get("thoughts_exceed", 0),
        takes_temperature=facts.get("summary_temperature", True),
        may_follow_talk=facts.get("summary_in_talk", True),
        calls_without_tools=facts.get("summary_without_tools", ""),
        input_price=model.input_price,
        cached_input_price=model.cached_input_price,
    )


def _read_facts(model: AiModel) -> dict[str, Any]:
    """Return what the model's calls have taught; the provider's options go before it."""
    return {**model.provider.list_learned().get(model.name, {}), **model.provider.options}


def keep_fact(model_name: str, **facts: object) -> None:
    """Remember what a model (`provider/name`) needs of the calls that write summaries.

    It stands where the facts stand that answers teach, and is doubted like them.
    """
    model = AiModel.objects.filter_usable().find_by_name(model_name)
    if model is not None:
        model.provider.keep_learned(model.name, facts)


def find_summary_model(user: AbstractBaseUser | AnonymousUser, name: str) -> str:
    """Return the full name of a model that a user may choose. Raises ModelNotUsable.

    To a user no other models exist than those that the rights of the groups allow.
    """
    model = select_models(user.pk).find_by_name(name)
    if model is None:
        raise ModelNotUsable("There is no usable language model of this name.")
    if model.provider.api_key_env and not model.provider.has_key():
        raise ModelNotUsable(
            f"The provider {model.provider} has no key. Choose a model of another provider."
        )
    return str(model)


def load_params(session_id: UUID) -> dict[str, Any]:
    """Return the parameters of a session's answers."""
    return Session.objects.filter(pk=session_id).values_list("params", flat=True).first() or {}


def load_cached_tokens(session_id: UUID) -> int:
    """Return what the newest answer read from a cache; 0 once the cache may be gone."""
    answers = Message.objects.exclude_superseded().filter(
        session=session_id, role=Message.Role.ASSISTANT
    )
    newest = answers.order_by("-seq").values_list("created_at", "token_count_cache_read")
    for created_at, cached_tokens in newest[:1]:
        if created_at >= timezone.now() - CACHE_LIFETIME:
            return cached_tokens or 0
    return 0


def call_summary_model(session_id: UUID, prompt: Prompt) -> CallResult:
    """Send one request to the prompt's model, and return its answer. Raises CallFailed."""
    model = _choose_model(session_id, prompt)
    request = _build_request(session_id, model, prompt)
    try:
        # The caller counts its calls and pays for them, so the client must not repeat any.
        connection = build_connection(model.provider, max_retries=0, for_summary=True)
        first_wait = max(connection.timeout_seconds, prompt.first_word_seconds)
        connection = replace(
            connection,
            timeout_seconds=first_wait,
            keep_request=_build_request_hook(connection, prompt),
        )
        call = _reserve_call(session_id, model, request)
        # The database connection goes back to the pool while the model writes.
        close_old_connections()
        answer = _ask_model(connection, request, prompt, call)
    except ProviderError as error:
        raise _explain_failure(error, first_wait) from None
    except TimeoutError:
        raise CallFailed(
            f"The summary was not finished within {prompt.timeout:g} seconds.",
            seconds=prompt.timeout,
        ) from None
    cost = store_patiently(lambda: settle_call(call, answer.end.usage))
    return _build_call_result(model, prompt, answer, cost)


def _explain_failure(error: ProviderError, first_wait: float) -> CallFailed:
    """Return what a provider's error says of the next call."""
    failure = _read_failure(error, first_wait)
    failure.was_accepted = error.was_accepted or not error.refused_status
    return failure


def _read_failure(error: ProviderError, first_wait: float) -> CallFailed:
    if isinstance(error, ContextOverflow):
        return CallFailed(error.detail, too_long=True, tokens=error.tokens, window=error.window)
    if error.is_about_contents:
        return CallFailed(error.detail, is_filtered=True)
    if isinstance(error, ProviderRejected):
        return CallFailed(
            error.detail,
            temperature="temperature" in error.detail.lower(),
            needs_room=output_limits.wants_more(error.detail),
            is_refused=True,
            is_final=error.refused_status in FORBIDDEN_STATUSES,
        )
    has_no_credit = error.retry_after is None and bool(NO_CREDIT.search(error.detail))
    is_busy = error.retry_after is not None or error.refused_status in BUSY_STATUSES
    is_busy |= isinstance(error, ProviderRateLimited)
    return CallFailed(
        error.detail,
        seconds=first_wait if isinstance(error, ProviderTimeout) else None,
        is_throttled=is_busy and not has_no_credit,
        retry_after=error.retry_after,
        is_final=has_no_credit or isinstance(error, ProviderAuth),
    )


def _build_request_hook(connection: Connection, prompt: Prompt) -> Callable[[bytes], None] | None:
    """Return what keeps the body of a request, from which a key of the provider's is removed."""
    trace, key = prompt.trace, connection.api_key.strip().encode()
    if trace is None:
        return None
    return lambda body: trace.keep_request(body.replace(key, b"[key]") if key else body)


def _reserve_call(session_id: UUID, model: AiModel, request: Request) -> Reservation:
    """Hold what the call may cost; no app refuses a summary."""
    owner_ids = Session.objects.filter(pk=session_id).values_list("owner_id", flat=True)
    return store_patiently(
        lambda: reserve_call(
            owner_ids.first(),
            model,
            Purpose.SUMMARY,
            expect_use(model, request),
            session_id=session_id,
            may_refuse=False,
        )
    )


def _ask_model(
    connection: Connection, request: Request, prompt: Prompt, call: Reservation
) -> "_Answer":
    text_parts: list[str] = []
    try:
        return asyncio.run(_write_watched(connection, request, prompt, text_parts))
    except BaseException as error:
        call.output_chars = sum(map(len, text_parts))
        end_call(call, error)
        raise
    finally:
        if prompt.trace is not None:
            prompt.trace.answer = "".join(text_parts)


def _build_request(session_id: UUID, model: AiModel, prompt: Prompt) -> Request:
    message = ChatMessage(role="user", content=prompt.text)
    if not prompt.reuses_cache:
        return Request(
            model=model.name,
            system=prompt.system,
            messages=(message,),
            max_tokens=prompt.max_tokens,
            params=_build_params(model, prompt, {}),
        )
    session = Session.objects.select_related("model__provider").get(pk=session_id)
    talk = build_next_request(session)
    if not model.may_call_tools:
        talk = replace(talk, tools=())
    talk = replace(talk, params=_select_params(talk.params))
    params = _build_params(model, prompt, talk.params)
    # Where requests mark what is cached, another choice of tools would make the cache useless.
    if talk.tools and not load_protocol(model.provider.protocol).capabilities.has_cache_marks:
        params["tool_choice"] = "none"
    return replace(
        talk,
        messages=(*talk.messages, message),
        max_tokens=prompt.max_tokens + _count_budget(talk.params),
        params={**talk.params, **params},
    )


def wants_schema(params: Mapping[str, Any]) -> bool:
    """Return whether a chat wants its answers in the form of a schema, which its cache holds."""
    form = params.get("response_format") or {}
    return form.get("type") == "json_schema" or bool(
        (params.get("output_config") or {}).get("format")
    )


def _select_params(params: Mapping[str, object]) -> dict[str, object]:
    """Return a chat's parameters without those that say what its answers look like."""
    return {name: value for name, value in params.items() if name not in ANSWER_PARAMS}


def _count_budget(params: Mapping[str, Any]) -> int:
    """Return the tokens of a chat's thoughts, which the room of an answer includes."""
    thinking = params.get("thinking") or {}
    return int(thinking.get("budget_tokens") or 0)


def _build_params(
    model: AiModel, prompt: Prompt, talk_params: Mapping[str, object]
) -> dict[str, object]:
    """Return little effort for a model that takes a word for it, else a temperature it may have.

    A call that follows the conversation keeps its effort where requests mark what is cached: it is
    part of the cache.
    """
    has_marks = load_protocol(model.provider.protocol).capabilities.has_cache_marks
    is_cached = prompt.reuses_cache and has_marks
    effort = choose_effort(model)
    if effort and not is_cached:
        return {"reasoning_effort": effort}
    sent_params = {**model.provider.options.get("body", {}), **talk_params}
    thinks = sent_params.get("thinking", {"type": "disabled"}) != {"type": "disabled"}
    if prompt.temperature is None or thinks or not model.reasoning.temperature:
        return {}
    return {"temperature": prompt.temperature}


def _choose_model(session_id: UUID, prompt: Prompt) -> AiModel:
    """Return the prompt's model if it is usable, else the session's. Raises CallFailed."""
    model = None
    if prompt.model:
        model = AiModel.objects.filter_usable().find_by_name(prompt.model)
    model = model or _load_session_model(session_id)
    if model is None:
        raise CallFailed("The session has no language model.")
    return model


@dataclass(frozen=True, kw_only=True)
class _Answer:
    """A complete answer; its two times are in seconds."""

    text: str
    end: StreamEnd
    thought_tokens: int
    prompt_seconds: float
    answer_seconds: float


async def _write_watched(
    connection: Connection, request: Request, prompt: Prompt, text_parts: list[str]
) -> _Answer:
    """Return the answer, and report meanwhile what there is of it."""
    collecting = _collect_answer(connection, request, prompt.timeout, text_parts)
    if prompt.report is None:
        return await collecting
    answer = asyncio.create_task(collecting)
    reports = asyncio.create_task(_report_regularly(text_parts, prompt.report))
    try:
        # The reports end only by an error, for example because the run was stopped by hand.
        await asyncio.wait({answer, reports}, return_when=asyncio.FIRST_COMPLETED)
        if reports.done():
            reports.result()
        return await answer
    finally:
        for task in (answer, reports):
            task.cancel()
        await asyncio.gather(answer, reports, return_exceptions=True)


async def _report_regularly(text_parts: list[str], report: Callable[[str], None]) -> None:
    while True:
        await asyncio.sleep(REPORT_SECONDS)
        await asyncio.to_thread(_report_once, report, "".join(text_parts))


def _report_once(report: Callable[[str], None], text: str) -> None:
    try:
        report(text)
    except DatabaseError:
        logger.warning("the progress of a summary was not written", exc_info=True)
    finally:
        db.connection.close()  # this thread's own


async def _collect_answer(
    connection: Connection, request: Request, deadline: float, text_parts: list[str]
) -> _Answer:
    stream_end = None
    thought_chars = 0
    start = first_word = time.perf_counter()
    async with asyncio.timeout(deadline):
        async with aclosing(provider_registry.stream(connection, request)) as parts:
            async for part in parts:
                if first_word == start:
                    first_word = time.perf_counter()
                if isinstance(part, TextDelta):
                    text_parts.append(part.text)
                elif isinstance(part, ReasoningDelta):
                    thought_chars += len(part.text)
                elif isinstance(part, StreamEnd):
                    stream_end = part
    if stream_end is None:
        raise CallFailed("The summary broke off.")
    counted = stream_end.usage.thoughts if stream_end.usage else None
    return _Answer(
        text="".join(text_parts),
        end=stream_end,
        thought_tokens=max(counted or 0, estimate_tokens(thought_chars)),
        prompt_seconds=first_word - start,
        answer_seconds=time.perf_counter() - first_word,
    )


def _build_call_result(
    model: AiModel, prompt: Prompt, answer: _Answer, cost: Decimal | None
) -> CallResult:
    usage = answer.end.usage
    if usage is None:
        input_tokens = estimate_tokens(len(prompt.system) + len(prompt.text))
        output_tokens = estimate_tokens(len(answer.text))
    else:
        input_tokens = usage.input
        output_tokens = usage.output
    return CallResult(
        text=answer.text,
        finish="tool_calls" if answer.end.tool_calls else answer.end.reason,
        model=str(model),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_tokens=(usage.cache_read or 0) if usage else 0,
        thought_tokens=answer.thought_tokens,
        prompt_seconds=answer.prompt_seconds,
        answer_seconds=answer.answer_seconds,
        cost=cost,
    )


def _load_session_model(session_id: UUID) -> AiModel | None:
    sessions = Session.objects.select_related("model__provider", "model__summary_model__provider")
    return sessions.get(pk=session_id).model


def _find_chosen_model(name: str) -> AiModel | None:
    """Return the model that was chosen for a run, if one was and it can still be used."""
    model = AiModel.objects.find_by_name(name) if name else None
    if name and model is None:
        logger.warning("%s was chosen to write a summary and cannot: it is not active", name)
    return model


def _find_named_model(session_model: AiModel, model_name: str) -> AiModel | None:
    """Return the model that is named for summaries, or None if none is named or none can be used.

    The registry may name one for the session's model; otherwise the policy may. A model that cannot
    be used is skipped with a warning in the log.
    """
    summary_model = session_model.summary_model
    if summary_model is not None and summary_model.is_active and summary_model.provider.is_active:
        return summary_model
    policy_model = None
    if model_name != "same":
        policy_model = AiModel.objects.find_by_name(model_name)
    is_policy_model_missing = model_name != "same" and policy_model is None
    if summary_model is not None or is_policy_model_missing:
        logger.warning(
            "%s cannot write summaries for %s: it is unknown or not active",
            summary_model or model_name,
            session_model,
        )
    return policy_model
