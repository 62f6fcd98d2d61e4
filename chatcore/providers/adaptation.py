"""Send a refused request once more in the form that its refusal asks for.

A server that is known by no name tells what it needs in its refusal: reasoning or none, a
signature, one call at a time, another field for the limit, no such field at all. Where a refusal
names nothing that is known, forms of the request are tried that leave out a parameter, or ask for a
shorter answer: refused calls are not paid for, and the one that is taken is the answer. What
helped is used for later requests too (`dialects.py`).
"""

import hashlib
import json
import re
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Final

from chatcore.providers import dialects, output_limits, provider_data
from chatcore.providers.base import (
    Connection,
    Request,
    StreamEnd,
    StreamPart,
    Tool,
)
from chatcore.providers.client import TOOL_PARAMS
from chatcore.providers.dialects import find_dialect
from chatcore.providers.error_mapping import TELLING_STATUSES
from chatcore.providers.errors import ProviderError, ProviderRejected, ProviderUnavailable
from chatcore.providers.normal_form import clear_thoughts, list_thoughtful
from chatcore.providers.protocols import load_protocol
from chatcore.providers.sent_images import fit_images
from chatcore.providers.tool_names import fit_tool_names, restore_tool_names

MAX_TRIES = 6
MAX_GUESSES = 10
# Without one of these, an answer is another one in kind, so that they are left out only where a
# refusal names them.
_NEEDED_PARAMS = frozenset(
    {"response_format", "output_config", "tool_choice", "stop", "stop_sequences", "n"}
)
_SAMPLING_PARAMS = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "frequency_penalty",
    "presence_penalty",
    "repetition_penalty",
)
_REFUSED_VALUES: Final = "without_values"
_OUTPUT_SHARES = (2, 4, 8)
_MIN_OUTPUT = 256
_ACCEPTED_SECONDS = 600.0  # a server may refuse later what it has taken
_FRUITLESS_SECONDS = 60.0  # a turn may send several requests that are refused alike
_MAX_REMEMBERED = 1_000
_GATEWAY_STATUSES = (500, 501, 502)
# The fact that names tools which the server has refused.
_REFUSED_TOOLS: Final = "without_tools"
_TOOL_REFUSED = re.compile(r"schema|unknown name|\bparameters\b|\btools?[.\[]|\bfunctions?\b")
_TOOL_INDEX = re.compile(r"\btools?(?:\[|\.)(\d+)")
_REFUSED = r"unsupported|not (?:permitted|allowed|supported)|extra|unexpected|unknown|unrecognized"
# DeepSeek's name of the field; OpenRouter's stands in quotes, because it is also a plain word.
_REASONING_FIELD = r"(?:reasoning_content\b|[\"'`.]reasoning\b)"
# Words of a refusal, in lower case, and what they ask for; the first that match.
_DIALECT_HINTS: tuple[tuple[str, Mapping[str, object]], ...] = (
    (rf"(?:{_REFUSED}).{{0,200}}reasoning", {"reasoning": "none"}),
    (rf"reasoning(?:_content|_details)?\b.{{0,60}}(?:{_REFUSED})", {"reasoning": "none"}),
    (
        rf"{_REASONING_FIELD}.{{0,100}}(?:missing|must be|passed back|required)",
        {"reasoning": "all"},
    ),
    (rf"(?:missing|requires?|must).{{0,100}}{_REASONING_FIELD}", {"reasoning": "all"}),
    (r"(?:missing|requires?|must).{0,40}thought.?signature", {"needs_signatures": True}),
    (
        r"(?:invalid|corrupted?).{0,20}thought.?signature",
        {"needs_signatures": True, "keeps_signatures": False},
    ),
    (r"text content.{0,40}(?:empty|whitespace)", {"has_empty_texts": False}),
    (r"only supports? (?:a )?single tool.?call", {"max_calls": 1}),
)
_IMAGE_COUNT = re.compile(
    r"(?:at most|maximum(?: of)?|up to|limit(?: is|:)?|more than) (\d{1,3}) images?\b"
    r"|images?.{0,40}(?:at most|maximum|limit|up to)\D{0,12}(\d{1,3})\b"
    r"(?!\s*(?:[km]i?b|bytes|px|pixels|megapixels)\b)"
)
_THOUGHTS_REFUSED = re.compile(
    r"signature.{0,60}thinking|thinking.{0,60}(?:signature|cannot be mod)"
)
# DeepSeek's words for blocks of thoughts, which it does not sign.
_THOUGHTS_WANTED = re.compile(
    r"thinking\b.{0,80}(?:(?:passed|sent|given) back|returned|must be (?:included|provided|kept)"
    r"|is (?:missing|required))|missing.{0,40}\bthinking\b"
)
_THOUGHTS_MISSED = re.compile(r"expected .{0,20}thinking.{0,40}but found|thinking.{0,40}must start")

StreamFunction = Callable[[Connection, Request], AsyncGenerator[StreamPart]]


async def stream_adapted(
    stream: StreamFunction, connection: Connection, request: Request
) -> AsyncGenerator[StreamPart]:
    """Yield the parts of an answer; a refusal that says what is wrong is followed by a new try.

    The last part names the tools that were left out because they were refused now, and all
    parameters that are left out.
    """
    connection = dialects.apply_facts(connection, request.model)
    refused_marks = connection.options.get(_REFUSED_TOOLS) or ()
    asked_params = request.params
    request, own_names = fit_tool_names(request)
    request = _select_tools(request, lambda tool: _mark_tool(tool) not in refused_marks)
    offered_tools = request.tools
    attempt = _Attempt(connection, request)
    while True:
        has_begun = False
        fitted_request = await attempt.fit_request()
        try:
            async with aclosing(stream(attempt.connection, fitted_request)) as parts:
                async for part in parts:
                    if not has_begun:
                        _note_accepted(attempt.connection, fitted_request)
                    if attempt.learned and not has_begun:
                        await dialects.remember(connection, request.model, attempt.learned)
                    has_begun = True
                    if isinstance(part, StreamEnd):
                        if part.learned:
                            await dialects.remember(connection, request.model, part.learned)
                        part = _name_left_out(part, attempt, offered_tools, asked_params)
                        part = restore_tool_names(part, own_names)
                    yield part
            return
        except (ProviderRejected, ProviderUnavailable) as error:
            if has_begun or not attempt.change(fitted_request, error):
                raise attempt.first_refusal or error from None


@dataclass
class _Attempt:
    """The form in which a request is sent, and what its refusals have said.

    Where a refusal names nothing known, `guesses` are the forms that are still to be tried, each
    beside what was known before; `first_refusal` is the error that remains if none is taken.
    """

    connection: Connection
    request: Request
    learned: dialects.Facts = field(default_factory=dict)
    tries: int = 0
    first_refusal: ProviderError | None = None
    _guesses: Iterator[dialects.Facts] = field(default_factory=lambda: iter(()))
    _known: tuple[Connection, dialects.Facts] | None = None
    _guess_count: int = 0

    async def fit_request(self) -> Request:
        """Return the request as its server takes it, by what is known."""
        options = self.connection.options
        request = await fit_images(self.request, find_dialect(self.connection, self.request.model))
        request = _limit_output(request, options.get("output_limit"))
        refused_values = options.get(_REFUSED_VALUES) or ()
        if not refused_values:
            return request
        params = {
            name: value
            for name, value in request.params.items()
            if _mark_value(name, value) not in refused_values
        }
        return replace(request, params=params)

    def change(self, sent_request: Request, error: ProviderRejected | ProviderUnavailable) -> bool:
        """Choose another form after a refusal; False if there is none."""
        adapted = None
        if self.tries < MAX_TRIES - 1:
            adapted = _adapt_to_error(self.connection, sent_request, error)
        if adapted is None:
            return self._guess(sent_request, error)
        self.tries += 1
        facts, self.request = adapted
        self._use(self.connection, self.learned, facts)
        self.first_refusal = None
        return True

    def _use(self, connection: Connection, learned: dialects.Facts, facts: dialects.Facts) -> None:
        self.learned = dialects.join_facts(learned, facts)
        self.connection = dialects.add_facts(connection, facts)

    def _guess(self, sent_request: Request, error: ProviderRejected | ProviderUnavailable) -> bool:
        if not self._may_guess(error):
            return False
        mark = _mark_refusal(self.connection, sent_request.model, error)
        is_other = self.first_refusal is None or mark != _mark_refusal(
            self.connection, sent_request.model, self.first_refusal
        )
        if is_other:  # the first one, or the form before has helped against another
            if time.monotonic() - _fruitless.get(mark, -_FRUITLESS_SECONDS) < _FRUITLESS_SECONDS:
                return False
            self._known = self.connection, self.learned
            self._guesses = iter(_list_guesses(self.connection, sent_request, error.detail))
            self.first_refusal = error
        facts = next(self._guesses, None) if self._guess_count < MAX_GUESSES else None
        if facts is None and not self._guess_count:
            return False
        if facts is None:
            if len(_fruitless) >= _MAX_REMEMBERED:
                _fruitless.clear()
            _fruitless[mark] = time.monotonic()
            return False
        self._guess_count += 1
        assert self._known is not None
        self._use(*self._known, facts)
        return True

    def _may_guess(self, error: ProviderRejected | ProviderUnavailable) -> bool:
        """Return whether a refusal may be about a parameter although it names none.

        Who counts calls and pays for them looks for that by other means.
        """
        is_bare = type(error) is ProviderRejected and error.refused_status not in TELLING_STATUSES
        return is_bare and not error.is_about_contents and self.connection.max_retries > 0


# By address and model, when a request with a mark was last answered: such a one is not blamed soon.
_accepted: dict[tuple[str, str], dict[str, float]] = {}
# When all forms were refused alike.
_fruitless: dict[tuple[str, str, str], float] = {}


def _note_accepted(connection: Connection, request: Request) -> None:
    if len(_accepted) >= _MAX_REMEMBERED:
        _accepted.clear()
    times = _accepted.setdefault((connection.base_url, request.model), {})
    if len(times) >= _MAX_REMEMBERED:
        times.clear()
    marks = [*_list_marks(connection, request).values(), f"max_tokens={request.max_tokens}"]
    times.update(dict.fromkeys(marks, time.monotonic()))


def _list_accepted(connection: Connection, model: str) -> set[str]:
    times = _accepted.get((connection.base_url, model), {})
    start = time.monotonic() - _ACCEPTED_SECONDS
    return {mark for mark, accepted_at in times.items() if accepted_at > start}


def _mark_refusal(connection: Connection, model: str, error: ProviderError) -> tuple[str, str, str]:
    """Return what a refusal says, without numbers, which may be those of requests."""
    words = re.sub(r"\S*\d\S*", "", error.detail)
    return connection.base_url, model, words[:200]


def _mark_value(name: str, value: object) -> str:
    """Return a parameter with its value if that is a number, else its name."""
    is_number = isinstance(value, int | float)
    return f"{name}={json.dumps(value)}" if is_number else name


def _list_marks(connection: Connection, request: Request) -> dict[str, str]:
    """Return the mark of each field that a request can do without, those of sampling first."""
    left_out = {*_NEEDED_PARAMS, *connection.options.get("without", ())}
    if not request.tools:
        left_out |= TOOL_PARAMS
    marks = {
        name: _mark_value(name, value)
        for name, value in request.params.items()
        if value is not None and name not in left_out
    }
    return dict(sorted(marks.items(), key=lambda item: item[0] not in _SAMPLING_PARAMS))


def _list_guesses(connection: Connection, request: Request, refusal: str) -> list[dialects.Facts]:
    """Return what may be wrong with a request: one field, several of them, or its output.

    Nothing, if the refusal names a field of the request: the error says then which value is wrong.
    """
    accepted = _list_accepted(connection, request.model)
    marks = _list_marks(connection, request)
    if dialects.names_field(refusal, (*request.params, "max_tokens", "max_completion_tokens")):
        return []
    suspects = [name for name, mark in marks.items() if mark not in accepted]
    sampling = [name for name in suspects if name in _SAMPLING_PARAMS]
    groups = [[name] for name in suspects]
    groups += [group for group in (sampling, suspects) if len(group) > 1]
    known_values = connection.options.get(_REFUSED_VALUES) or []
    guesses = [
        _leave_out(connection, [marks[name] for name in group], known_values)
        for place, group in enumerate(groups)
        if group not in groups[:place]
    ]
    if request.max_tokens and f"max_tokens={request.max_tokens}" not in accepted:
        limits = [request.max_tokens // share for share in _OUTPUT_SHARES]
        limits = [limit for limit in limits if limit >= _MIN_OUTPUT]
        guesses += [{"output_limit": limit} for limit in limits]
        if suspects and limits:  # the server may refuse several things in the same words
            everything = _leave_out(connection, [marks[name] for name in suspects], known_values)
            guesses.append({**everything, "output_limit": limits[-1]})
    # A refusal that does not come again was no refusal of the request.
    return guesses and [{}, *guesses]


def _leave_out(
    connection: Connection, marks: Sequence[str], known_values: Sequence[str]
) -> dialects.Facts:
    """Return the facts of refused fields: single values, and names of which two were refused."""
    known_names = {mark.partition("=")[0] for mark in known_values}
    names = {mark for mark in marks if "=" not in mark}
    names |= {name for name in (mark.partition("=")[0] for mark in marks) if name in known_names}
    values = [mark for mark in marks if mark.partition("=")[0] not in names]
    facts: dialects.Facts = {}
    if names:
        facts["without"] = sorted({*connection.options.get("without", ()), *names})
    if values:
        facts[_REFUSED_VALUES] = sorted({*known_values, *values})
    return facts


def _name_left_out(
    end: StreamEnd,
    attempt: _Attempt,
    offered_tools: Sequence[Tool],
    asked_params: Mapping[str, object],
) -> StreamEnd:
    """Return the end of an answer with the names of what its request was sent without."""
    tools = attempt.request.tools
    names: list[str] = []
    if tools is not offered_tools:
        names = [tool.name for tool in offered_tools if tool not in tools]
    refused_params = _list_left_out(attempt, asked_params) if asked_params else ()
    return replace(end, refused_tools=tuple(names), refused_params=refused_params)


def _list_left_out(attempt: _Attempt, asked_params: Mapping[str, object]) -> tuple[str, ...]:
    """Return the names of parameters without which a request was sent."""
    refused = list_refused_params(attempt.connection.options, asked_params)
    left_out = (
        name
        for name, value in asked_params.items()
        if (name in refused and (attempt.request.tools or name not in TOOL_PARAMS))
        or (value is not None and name not in attempt.request.params)
    )
    return tuple(sorted(left_out))


def list_refused_params(facts: Mapping[str, Any], params: Mapping[str, object]) -> list[str]:
    """Return the names of parameters that a server is known to refuse."""
    refused = {*facts.get("without", ()), *(facts.get(_REFUSED_VALUES) or ())}
    return [
        name
        for name, value in params.items()
        if value is not None and {name, _mark_value(name, value)} & refused
    ]


def _adapt_to_error(
    connection: Connection, request: Request, error: ProviderRejected | ProviderUnavailable
) -> tuple[dialects.Facts, Request] | None:
    """Return what a failed attempt shows, as `_adapt` does.

    A gateway may report the refusal of the server behind it as a breakdown of its own. That is read
    only where it names something of the history, or a field that is not known.
    """
    if isinstance(error, ProviderUnavailable):
        facts = None
        if error.refused_status:
            facts = _find_dialect_changes(connection, request, error.detail.lower())
        if not facts and error.refused_status in _GATEWAY_STATUSES:
            facts = dialects.find_unknown_field(
                connection, request, error.detail, only_unknown=True
            )
        return (facts, request) if facts else None
    if type(error) is not ProviderRejected:
        return None
    return _adapt(connection, request, error.detail)


def _adapt(
    connection: Connection, request: Request, refusal: str
) -> tuple[dialects.Facts, Request] | None:
    """Return what a refusal tells, and what is sent instead; None if it says nothing of use."""
    limit = output_limits.find_limit(refusal, request.max_tokens)
    if limit is not None:
        return {"output_limit": limit}, request
    facts = dialects.find_unknown_field(connection, request, refusal)
    refusal = refusal.lower()
    facts = facts or _limit_images(connection, request, refusal)
    facts = facts or _find_dialect_changes(connection, request, refusal)
    if facts:
        return facts, request
    thoughtless_request = _adapt_thoughts(request, refusal)
    if thoughtless_request:
        return {}, thoughtless_request
    return _adapt_tools(connection, request, refusal)


def _limit_output(request: Request, limit: int | None) -> Request:
    """Return the request with no more room for its answer than the model is known to take."""
    if not limit or request.max_tokens is None or request.max_tokens <= limit:
        return request
    return replace(request, max_tokens=limit)


def _find_dialect_changes(
    connection: Connection, request: Request, refusal: str
) -> dialects.Facts | None:
    dialect = find_dialect(connection, request.model)
    for pattern, hint in _DIALECT_HINTS:
        changes = dict(hint)
        if changes == {"reasoning": "all"}:
            changes["reasoning_field"] = _choose_reasoning_field(request, refusal)
        is_new = any(getattr(dialect, name) != value for name, value in changes.items())
        if is_new and re.search(pattern, refusal, re.DOTALL):
            return {"dialect": changes}
    has_blocks = load_protocol(connection.protocol).capabilities.has_signed_thoughts
    is_wanted = _THOUGHTS_WANTED.search(refusal) and not _THOUGHTS_MISSED.search(refusal)
    if has_blocks and is_wanted and not dialect.needs_thoughts and "signature" not in refusal:
        return {"dialect": {"needs_thoughts": True}}
    return None


def _choose_reasoning_field(request: Request, refusal: str) -> str:
    """Return the name under which a server wants its reasoning back.

    It is the one under which reasoning came, else the one that the refusal names: a gateway repeats
    the refusal of the server behind it, which may name the field otherwise.
    """
    stored = (provider_data.select_reasoning(each.provider_data) for each in request.messages)
    named = "reasoning_content" if "reasoning_content" in refusal else "reasoning"
    return next((reasoning.field for reasoning in stored if reasoning.field), named)


def _adapt_tools(
    connection: Connection, request: Request, refusal: str
) -> tuple[dialects.Facts, Request] | None:
    """Return simpler schemas first; then the tools without those that a refusal names."""
    if not request.tools or not _TOOL_REFUSED.search(refusal):
        return None
    if not find_dialect(connection, request.model).has_simple_schemas:
        return {"dialect": {"has_simple_schemas": True}}, request
    numbers = {int(number) for number in _TOOL_INDEX.findall(refusal)}
    refused_tools = [tool for number, tool in enumerate(request.tools) if number in numbers]
    if not refused_tools:
        words = set(re.findall(r"[\w-]+", refusal))
        refused_tools = [tool for tool in request.tools if tool.name.lower() in words]
    if not refused_tools:
        return None
    old_marks = connection.options.get(_REFUSED_TOOLS) or ()
    marks = sorted({*old_marks, *map(_mark_tool, refused_tools)})
    smaller_request = _select_tools(request, lambda tool: tool not in refused_tools)
    return {_REFUSED_TOOLS: marks}, smaller_request


def _select_tools(request: Request, is_taken: Callable[[Tool], bool]) -> Request:
    tools = [tool for tool in request.tools if is_taken(tool)]
    return request if len(tools) == len(request.tools) else replace(request, tools=tools)


def _mark_tool(tool: Tool) -> str:
    """Return the name of a tool with a mark of its description: another one is tried again."""
    return f"{tool.name} {hashlib.blake2b(tool.text.encode(), digest_size=4).hexdigest()}"


def _limit_images(connection: Connection, request: Request, refusal: str) -> dialects.Facts | None:
    """Return the number of images that a refusal names, if there are more."""
    count = sum(len(message.images) for message in request.messages)
    found = _IMAGE_COUNT.search(refusal)
    limit = int(found[1] or found[2]) if found else count
    is_new = limit < min(count, find_dialect(connection, request.model).max_images)
    return {"dialect": {"max_images": limit}} if is_new else None


def _adapt_thoughts(request: Request, refusal: str) -> Request | None:
    """Return the request without the signed thoughts that were refused.

    Older models want some in the running turn while they think; then they think not.
    """
    if _THOUGHTS_MISSED.search(refusal) and "thinking" in request.params:
        params = {name: value for name, value in request.params.items() if name != "thinking"}
        return replace(request, params=params)
    thoughtful = list_thoughtful(request.messages)
    if not (thoughtful and _THOUGHTS_REFUSED.search(refusal)):
        return None
    return clear_thoughts(request, thoughtful)
