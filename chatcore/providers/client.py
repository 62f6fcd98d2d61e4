"""What both SDKs need for one call: a client, the parameters, and a deadline for its waits.

The option `client` of a provider's row chooses another client of its SDK: `bedrock` or `vertex` in
Anthropic's protocol, `azure` in OpenAI's. The provider's key is Bedrock's API key, Vertex's access
token or Azure's key. Without one, Bedrock and Vertex use the credentials of the machine.
"""

import asyncio
import importlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from chatcore.providers import ollama
from chatcore.providers.answer_reader import AnswerReader
from chatcore.providers.base import Capabilities, Connection, Request, StreamPart
from chatcore.providers.error_mapping import translate_errors
from chatcore.providers.errors import ProviderAuth, ProviderRejected, ProviderUnavailable
from chatcore.providers.server_sent_events import EventSplitter

if TYPE_CHECKING:  # a second to import, and most processes call no model
    import httpx2

_CONNECT_SECONDS = 10.0
_TRAILER_SECONDS = 0.1
# The request itself sets these: a session's params must not.
_RESERVED_PARAMS = {
    "model",
    "messages",
    "system",
    "tools",
    "n",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
}
TOOL_PARAMS = frozenset({"tool_choice", "parallel_tool_calls"})
_loaded_sdks: set[str] = set()


class SdkStream(Protocol):
    """The stream of an answer as an SDK opens it."""

    response: "httpx2.Response"

    def __aiter__(self) -> AsyncIterator[Any]: ...

    async def close(self) -> None:
        """Close the connection."""
        ...


async def load_sdk(name: str) -> Any:
    """Return an SDK, which is imported on another thread.

    The first time that takes seconds of CPU, and other turns stream on this event loop meanwhile.
    """
    if name not in _loaded_sdks:
        await asyncio.to_thread(importlib.import_module, name)
        _loaded_sdks.add(name)
    return importlib.import_module(name)


async def build_client_options(sdk: object, connection: Connection) -> dict[str, Any]:
    """Return the arguments for an SDK's client.

    The client is not to be closed: its HTTP client is kept for further calls. Raises ProviderAuth
    for an unusable key, and if there is none and the address is the vendor's.
    """
    import httpx2

    from chatcore.providers.http_clients import enter_call

    timeout_seconds = connection.timeout_seconds
    http_client = await enter_call(sdk, connection)
    return {
        "api_key": _require_api_key(connection),
        "base_url": connection.base_url or None,
        "max_retries": connection.max_retries,
        "timeout": httpx2.Timeout(timeout_seconds, connect=min(timeout_seconds, _CONNECT_SECONDS)),
        # Compression would cost more than it saves: every piece of an answer comes by itself.
        "default_headers": {
            "Accept-Encoding": "identity",
            **(connection.options.get("headers") or {}),
        },
        "default_query": connection.options.get("query"),
        "http_client": http_client,
    }


class ProviderClient:
    """One protocol, which is spoken by an SDK. All errors are ProviderErrors (`errors.py`)."""

    capabilities: ClassVar[Capabilities]
    sdk_name: ClassVar[str]
    """The Python package of the SDK, which is loaded before the first call."""
    vendor_host: ClassVar[str]
    """Where an empty address leads."""
    param_names: ClassVar[frozenset[str]]
    """The parameters that users may set (`params.py`)."""
    client_name: ClassVar[str]
    """The SDK's usual client."""
    models_path: ClassVar[str]
    platform_clients: ClassVar[Mapping[str, Callable[[Any, Connection, dict[str, Any]], object]]]
    """The others that the option `client` of a provider's row may choose."""

    async def stream(self, connection: Connection, request: Request) -> AsyncGenerator[StreamPart]:
        """Send the request, and yield its parts as they arrive; StreamEnd is the last.

        Closing the generator early closes the connection.
        """
        sdk = await load_sdk(self.sdk_name)
        with translate_errors(sdk, connection, request):
            client = await self.open_client(sdk, connection)
            reader = self.build_reader(connection, request)
            pending_stream = self.send(client, connection, request)
            parts = stream_parts(pending_stream, reader, connection.timeout_seconds)
            async with aclosing(parts):
                async for part in parts:
                    yield part

    def send(self, client: Any, connection: Connection, request: Request) -> Awaitable[SdkStream]:
        """Return what sends the request and opens the stream of its answer."""
        raise NotImplementedError

    def build_reader(self, connection: Connection, request: Request) -> AnswerReader:
        """Return what reads the answer to the request."""
        raise NotImplementedError

    def normalize(self, request: Request) -> Request:
        """Return a request that every server of this protocol takes, saying the same."""
        raise NotImplementedError

    def translate_params(self, params: Mapping[str, object]) -> dict[str, object]:
        """Return parameters of OpenAI's chat completions in the words of this protocol.

        Raises InvalidParam. Those that the protocol does not know are left out, because it would
        refuse the request.
        """
        return dict(params)

    def list_ignored_params(self, params: Mapping[str, object]) -> list[str]:
        """Return the names of parameters of OpenAI's chat completions that are not translated."""
        return []

    async def fetch_models(self, connection: Connection, *, loaded_name: str = "") -> list[object]:
        """Return the rows of the provider's list of models: objects, each with its name as `id`.

        A server that loads models when they are asked for loads `loaded_name`.
        """
        sdk = await load_sdk(self.sdk_name)
        with translate_errors(sdk, connection):
            client = await self.open_client(sdk, connection)
            answer = await client.get(self.models_path, cast_to=object)
            rows = answer.get("data") if isinstance(answer, dict) else None
            if not isinstance(rows, list):
                return []
            if ollama.is_ollama(rows):
                with suppress(sdk.APIError, TimeoutError):
                    rows = await ollama.describe_models(
                        client, connection, rows, loaded_name=loaded_name
                    )
            return rows

    async def open_client(self, sdk: object, connection: Connection) -> Any:
        """Return the SDK's client that the provider's row chooses, or its usual one.

        It is kept with its HTTP client, because a new one asks in a thread on which platform it is,
        and that takes 3 ms of each call. Raises ProviderRejected for a choice that the protocol has
        not.
        """
        options = await build_client_options(sdk, connection)
        kept_clients = options["http_client"].sdk_clients
        key = repr((connection.options, connection.max_retries, connection.timeout_seconds))
        if key not in kept_clients:
            kept_clients.clear()
            kept_clients[key] = self._build_client(sdk, connection, options)
        return kept_clients[key]

    def _build_client(self, sdk: object, connection: Connection, options: dict[str, Any]) -> object:
        choice = connection.options.get("client")
        if not choice:
            return getattr(sdk, self.client_name)(**options)
        if choice not in self.platform_clients:
            raise ProviderRejected(
                f"This protocol has no client {choice!r}; there are"
                f" {', '.join(self.platform_clients)}."
            )
        return self.platform_clients[choice](sdk, connection, options)


async def stream_parts(
    pending_stream: Awaitable[SdkStream], reader: AnswerReader, timeout_seconds: float
) -> AsyncGenerator[StreamPart]:
    """Yield the parts of an answer as they arrive, and close the connection in every case.

    The body of the SDK's stream is read here, because its own typed events cost four times as much.
    The first bytes must come within the timeout, with all retries and their waits, and further
    ones within the same time again. Raises TimeoutError, and ProviderUnavailable if no event came.
    """
    # One deadline for both waits: headers may come at once, and the first byte never.
    deadline = Deadline(timeout_seconds)
    stream = None
    try:
        with deadline:
            stream = await pending_stream
        if stream.response.request.method != "POST":  # a redirect has made it another request
            raise ProviderUnavailable(_explain_redirect(stream.response))
        async with aclosing(_open_body(stream)) as chunks:
            splitter = EventSplitter()
            is_over = False
            while not (reader.is_done or is_over):
                with deadline:
                    chunk = await anext(chunks, b"")
                # Comments and pings count too: a local server may read a long request for minutes.
                deadline.renew()
                is_over = not chunk
                try:
                    _read_chunk(reader, splitter, chunk)
                finally:
                    # What came before an error is still a part of the answer.
                    for part in reader.take_parts():
                        yield part
            if not (reader.event_count or reader.is_done):
                raise ProviderUnavailable(
                    f"The provider sent an empty stream of {_get_content_type(stream.response)}."
                )
            yield reader.build_stream_end()
            await _read_to_end(chunks)
    finally:
        deadline.close()
        if stream:
            await stream.close()


def _read_chunk(reader: AnswerReader, splitter: EventSplitter, chunk: bytes) -> None:
    """Read the events that a chunk completes; an empty one is the end of the body."""
    if chunk:
        reader.read_events(splitter.feed(chunk))
        if not reader.is_done:
            return
    else:
        # The last event may lack its blank line, or have been cut off anywhere.
        last_events = splitter.finish()
        with suppress(ValueError):
            reader.read_events(last_events)
        if not splitter.has_events:
            # A server that cannot stream answers with JSON, as do many errors.
            reader.read_events([(b"", splitter.take_rest())])
    reader.end()


def _open_body(stream: SdkStream) -> AsyncGenerator[bytes]:
    """Return the body's bytes, decoded if the server compressed them although not asked to."""
    response = stream.response
    if _get_content_type(response) == "application/vnd.amazon.eventstream":
        return _encode_events(stream)
    is_encoded = "content-encoding" in response.headers
    return response.aiter_bytes() if is_encoded else response.aiter_raw()


async def _encode_events(stream: SdkStream) -> AsyncGenerator[bytes]:
    """Yield the SDK's events as server-sent ones. Only the SDK reads Amazon's own format."""
    async for event in stream:
        yield f"event: {event.type}\ndata: {event.to_json(indent=None)}\n\n".encode()


async def _read_to_end(chunks: AsyncGenerator[bytes]) -> None:
    """Read what follows the end of an answer: only then the connection can be used again.

    A server that does not end its response soon, or breaks it off, has lost nothing of the answer.
    """
    import httpx2

    with suppress(TimeoutError, httpx2.HTTPError):
        async with asyncio.timeout(_TRAILER_SECONDS):
            async for _chunk in chunks:
                pass


def _explain_redirect(response: "httpx2.Response") -> str:
    return (
        "The provider's address only redirects; enter the one it leads to:"
        f" {response.url.copy_with(query=None, userinfo=b'')}"
    )


def _get_content_type(response: "httpx2.Response") -> str:
    return response.headers.get("content-type", "").partition(";")[0] or "nothing"


def select_params(connection: Connection, request: Request) -> dict[str, object]:
    """Return the request's params as they are sent.

    Params cannot replace what the request itself sets, such as model, messages and tools. Those
    about tools are refused where there are no tools, and others where the server knows them not.
    """
    left_out = {*_RESERVED_PARAMS, *connection.options.get("without", ())}
    if not request.tools:
        left_out |= TOOL_PARAMS
    return {
        name: value
        for name, value in request.params.items()
        if value is not None and name not in left_out
    }


def _require_api_key(connection: Connection) -> str:
    key = connection.api_key.strip()
    if not (key.isascii() and key.isprintable()):
        raise ProviderAuth(
            "The provider's API key contains characters that keys do not have; enter it again."
        )
    has_own_credentials = connection.options.get("client") in OWN_CREDENTIALS
    if not (key or connection.base_url or has_own_credentials):
        raise ProviderAuth("There is no API key for this provider.")
    return key or "none"  # local servers need no key, but the SDKs require one


class Deadline:
    """Limits every wait inside `with deadline`, and between two `renew` all of them together.

    It is `asyncio.timeout` for a wait that is repeated: one timer runs, which looks at the deadline
    only when it fires, where `asyncio.timeout` would set and cancel one for each wait. Raises
    TimeoutError.
    """

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        self._time = self._loop.time() + seconds
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None
        self._cancel_count = 0
        self._has_expired = False

    def renew(self) -> None:
        """Begin anew to count."""
        self._time = self._loop.time() + self._seconds

    def close(self) -> None:
        """Stop the timer."""
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task, "only a task can be stopped"
        self._task = task
        self._cancel_count = task.cancelling()
        if not self._timer:
            self._timer = self._loop.call_at(self._time, self._check)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        task, self._task = self._task, None
        # A cancellation from outside may have come in the same moment, and then it stays one.
        is_ours = self._has_expired and task and task.uncancel() <= self._cancel_count
        if is_ours and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def _check(self) -> None:
        self._timer = None
        if not self._task:
            return  # nobody waits; the next wait starts the timer again
        if self._loop.time() < self._time:
            self._timer = self._loop.call_at(self._time, self._check)
        elif not self._has_expired:
            self._has_expired = True
            self._task.cancel()


OWN_CREDENTIALS = ("bedrock", "vertex")


def build_bedrock_client(sdk: Any, connection: Connection, options: dict[str, Any]) -> object:
    """Return Anthropic's client of Amazon Bedrock, in the option `region`.

    It needs botocore to read an answer.
    """
    _require_package("botocore", "bedrock")
    return sdk.AsyncAnthropicBedrock(
        **options | {"api_key": connection.api_key.strip() or None},
        aws_region=connection.options.get("region"),
    )


def build_vertex_client(sdk: Any, connection: Connection, options: dict[str, Any]) -> object:
    """Return Anthropic's client of Vertex AI, in the options `region` and `project`.

    It needs google-auth unless the provider has an access token.
    """
    token = connection.api_key.strip() or None
    if token is None:
        _require_package("google", "vertex")
    del options["api_key"]
    return sdk.AsyncAnthropicVertex(
        **options,
        access_token=token,
        region=connection.options.get("region") or "global",
        project_id=connection.options.get("project") or sdk.NOT_GIVEN,
    )


def build_azure_client(sdk: Any, connection: Connection, options: dict[str, Any]) -> object:
    """Return OpenAI's client of Azure, of the version in the option `api_version`.

    The provider's address is the endpoint, and the names of its models are its deployments.
    """
    return sdk.AsyncAzureOpenAI(
        **options | {"base_url": None},
        azure_endpoint=connection.base_url,
        api_version=connection.options.get("api_version"),
    )


def _require_package(module: str, extra: str) -> None:
    if find_spec(module) is None:
        raise ProviderUnavailable(
            f"This provider needs a package that is not installed: pip install 'anthropic[{extra}]'"
        )
