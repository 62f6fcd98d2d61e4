"""Responses over a WebSocket at `/v1/responses`: one after the other on one connection.

What is not stored is remembered for as long as the connection is open, so that a client can
continue it by `previous_response_id` and send only what is new.
"""

import asyncio
import contextlib
import json
import sys
from collections import Counter, OrderedDict
from collections.abc import Mapping
from contextlib import aclosing
from functools import partial

from django.contrib.auth.models import User
from django.utils.datastructures import CaseInsensitiveMapping
from knox.models import AuthToken

from chatcore.accounts.senders import find_token_sender
from chatcore.accounts.sign_out_watch import sign_out_watch
from chatcore.base.rest import limits
from chatcore.base.rest.auth import build_sender_problem, find_scope, find_token
from chatcore.base.rest.parsers import (
    StrictDecoder,
    TooManyValues,
    hold_large_body,
    parse_large_json,
)
from chatcore.base.rest.problems import InvalidFieldError, TooLargeProblem
from chatcore.base.slots import ProcessFull, Slot, Slots, UserFull
from chatcore.base.threads import PREPARATION, TOOLS, run_in_thread, run_or_undo
from chatcore.contrib.compat.chat_completions.errors import OpenAIProblem
from chatcore.contrib.compat.models import StoredResponse
from chatcore.contrib.compat.programs import get_keeping
from chatcore.contrib.compat.responses import creation, errors, turn_streams
from chatcore.contrib.compat.responses.origins import build_previous_problem
from chatcore.contrib.compat.responses.request import ResponseRequest
from chatcore.contrib.compat.responses.stateless import Memory, UnstoredResponse
from chatcore.contrib.compat.responses.stream_events import Event
from chatcore.serving.plain_responses import (
    CLOSE_POLICY,
    Receive,
    Scope,
    Send,
    refuse_handshake,
)
from chatcore.turns import capacity

PATHS = ("/v1/responses", "/v1/responses/")
MAX_SECONDS = 60 * 60
MAX_CONNECTIONS = 1000  # of this process
MAX_CONNECTIONS_OF_USER = 50
# Responses of one connection that are not stored: so many, and bytes of them and of a user's.
MAX_MEMORIES = 8
MAX_REMEMBERED = 16 * limits.MB
MAX_REMEMBERED_OF_USER = 32 * limits.MB
# Requests that wait behind the one that is answered, in bytes of text.
MAX_WAITING = limits.MB
MAX_HELD_OF_USER = 8 * limits.MB
MESSAGE_OVERHEAD = 1_000  # bytes that even the shortest one takes
CLOSE_TOO_LARGE = 1009
CLOSE_RETRY = 1013
# Fields that have no meaning here, where everything streams.
STREAM_FIELDS = ("type", "stream", "stream_options", "background")
_slots = Slots()
# Of users, for the event loop alone: not parsed yet, and remembered.
_held_bytes: Counter[object] = Counter()
_remembered_bytes: Counter[object] = Counter()


async def serve_websocket(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve one connection from its handshake to its end."""
    await receive()  # websocket.connect
    headers = dict(scope["headers"])
    # No cookies: a page of any other site could open a connection with them.
    is_open = bool(headers.get(b"authorization", b"").strip())
    token = await run_in_thread(find_token, headers) if is_open else None
    if token is None:
        await refuse_handshake(scope, send, build_sender_problem())
        return
    try:
        slot = _slots.take(
            token.user_id, process_limit=MAX_CONNECTIONS, user_limit=MAX_CONNECTIONS_OF_USER
        )
    except (ProcessFull, UserFull):
        await send({"type": "websocket.close", "code": CLOSE_RETRY})
        return
    sender = find_token_sender(headers[b"authorization"].decode("latin-1"))
    with slot, sign_out_watch.watch(sender) as sign_out_event:
        await send({"type": "websocket.accept"})
        text_headers = {name.decode(): value.decode("latin-1") for name, value in headers.items()}
        connection = Connection(token, CaseInsensitiveMapping(text_headers), receive, send)
        await connection.run(sign_out_event)


class Connection:
    """One open connection of a user."""

    def __init__(
        self, token: AuthToken, headers: Mapping[str, str], receive: Receive, send: Send
    ) -> None:
        self.user: User = token.user
        self.headers = headers
        self._scope = find_scope(token.token_key)
        self._keeping = get_keeping(token)
        self._receive = receive
        self._send = send
        self._requests: asyncio.Queue[tuple[str, int]] = asyncio.Queue()
        self._is_answering = False  # or about to
        self._waiting_bytes = 0  # behind that
        self._held_bytes = 0  # not parsed yet
        self._memories: OrderedDict[str, Memory] = OrderedDict()
        self._memory_sizes: dict[str, int] = {}

    async def run(self, sign_out_event: asyncio.Event) -> None:
        """Answer requests until the client leaves, is signed out, or the time is over."""
        receiver = asyncio.ensure_future(self._receive_requests())
        worker = asyncio.ensure_future(self._answer_requests())
        sign_out = asyncio.ensure_future(sign_out_event.wait())
        tasks = (receiver, worker, sign_out)
        try:
            finished_tasks, _ = await asyncio.wait(
                tasks, timeout=MAX_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            if not finished_tasks:
                await self._end_late_connection()
            elif sign_out in finished_tasks:
                await self._send({"type": "websocket.close", "code": CLOSE_POLICY})
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._note_held(-self._held_bytes)
            for response_id in list(self._memories):
                self._forget(response_id)

    async def _end_late_connection(self) -> None:
        detail = "This connection is open for 60 minutes: open another one."
        problem = OpenAIProblem(400, "websocket_connection_limit_reached", detail)
        await self._send_event(_build_error(problem))
        await self._send({"type": "websocket.close", "code": 1000})

    async def _receive_requests(self) -> None:
        """Collect requests until the client leaves."""
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                return
            text = message.get("text")
            if text is None:
                text = (message.get("bytes") or b"").decode(errors="replace")
            # One that need not wait may be as large as the server takes them.
            waiting_bytes = _weigh(text) if self._is_answering else 0
            of_user = _held_bytes[self.user.pk]
            if self._waiting_bytes + waiting_bytes > MAX_WAITING or (
                of_user and of_user + _weigh(text) > MAX_HELD_OF_USER
            ):
                await self._send({"type": "websocket.close", "code": CLOSE_TOO_LARGE})
                return
            self._is_answering = True
            self._waiting_bytes += waiting_bytes
            self._note_held(_weigh(text))
            self._requests.put_nowait((text, waiting_bytes))

    def _note_held(self, size: int) -> None:
        self._held_bytes += size
        _held_bytes[self.user.pk] += size
        if not _held_bytes[self.user.pk]:
            del _held_bytes[self.user.pk]

    async def _answer_requests(self) -> None:
        while True:
            text, waiting_bytes = await self._requests.get()
            self._waiting_bytes -= waiting_bytes
            try:
                await self._answer(text)
            except Exception as error:  # noqa: BLE001 - logged where it becomes an event
                await self._send_event(_build_error(error))
            self._is_answering = not self._requests.empty()

    async def _answer(self, text: str) -> None:
        try:
            # In threads of which a person has a few: a large message takes long.
            body = await PREPARATION.run_for(self.user.pk, _parse_message, text, self.user.pk)
        finally:
            self._note_held(-_weigh(text))
        previous_id = body.get("previous_response_id")
        # A continuation that fails takes what it continued with it.
        memory = self._forget(previous_id) if isinstance(previous_id, str) else None
        if memory is not None:
            body = {name: body[name] for name in body if name != "previous_response_id"}
        parse = partial(creation.parse_body, scope=self._scope, keeping=self._keeping)
        request = await run_in_thread(parse, self.user, body, self.headers)
        if memory is not None and request.is_stored:
            raise build_previous_problem(str(previous_id))
        if request.is_stored:
            begin = partial(creation.begin_stored, self, request)
            await self._send_stored(await run_or_undo(begin, turn_streams.cancel_response))
        else:
            await run_in_thread(creation.count_turn, self, request)
            await self._answer_unstored(request, memory, str(previous_id or ""))

    async def _send_stored(self, record: StoredResponse) -> None:
        has_ended = False
        try:
            async with aclosing(turn_streams.follow_response(record)) as events:
                async for event in events:
                    await self._send_event(event)
            has_ended = True
        finally:
            if not has_ended:
                await run_in_thread(turn_streams.cancel_response, record)

    async def _answer_unstored(
        self, request: ResponseRequest, memory: Memory | None, previous_id: str
    ) -> None:
        with await run_or_undo(partial(capacity.take_slot, self.user.pk), Slot.release):
            response = await TOOLS.run_for(
                self.user.pk, UnstoredResponse, self.user, request, memory, previous_id
            )
            async with aclosing(response.follow()) as events:
                async for event in events:
                    await self._send_event(event)
        if memory is not None:
            self._remember(previous_id, memory)
        self._remember(response.id, response.build_memory())

    def _remember(self, response_id: str, memory: Memory) -> None:
        """Keep a memory, and let the oldest ones go while there are too many or too large ones."""
        self._memories[response_id] = memory
        self._memory_sizes[response_id] = size = memory.weigh()
        _remembered_bytes[self.user.pk] += size
        while self._memories and (
            len(self._memories) > MAX_MEMORIES
            or sum(self._memory_sizes.values()) > MAX_REMEMBERED
            or _remembered_bytes[self.user.pk] > MAX_REMEMBERED_OF_USER
        ):
            self._forget(next(iter(self._memories)))

    def _forget(self, response_id: str) -> Memory | None:
        memory = self._memories.pop(response_id, None)
        if memory is not None:
            _remembered_bytes[self.user.pk] -= self._memory_sizes.pop(response_id)
            if not _remembered_bytes[self.user.pk]:
                del _remembered_bytes[self.user.pk]
        return memory

    async def _send_event(self, event: Event) -> None:
        # No heartbeats: the server's own pings keep the connection open.
        text = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
        with contextlib.suppress(OSError):
            await self._send({"type": "websocket.send", "text": text})


def _weigh(text: str) -> int:
    """Return the bytes that a waiting message takes: Python keeps some texts in 4 a character."""
    return sys.getsizeof(text) + MESSAGE_OVERHEAD


def _parse_message(text: str, person: object) -> dict[str, object]:
    """Return the body of a request to create a response. Raises problems."""
    try:
        if len(text) > limits.LARGE_BODY_BYTES:
            with hold_large_body(person):
                message = parse_large_json(text.encode(), max_values=limits.BODY_VALUES)
        else:
            message = json.loads(text, cls=StrictDecoder)
    except TooManyValues as error:
        raise TooLargeProblem(str(error)) from None
    except (ValueError, RecursionError):
        raise OpenAIProblem(400, "invalid_json", "The message is not JSON.") from None
    if not isinstance(message, dict) or message.get("type") != "response.create":
        raise InvalidFieldError("type", "Only response.create.")
    if message.get("background"):
        raise InvalidFieldError("background", "A connection answers in the foreground.")
    return {name: value for name, value in message.items() if name not in STREAM_FIELDS}


def _build_error(error: Exception) -> Event:
    """Return the event for an error, with the status that HTTP would have."""
    status, payload = errors.describe_error(error)
    return {
        "type": "error",
        "status": status,
        "error": payload | {"code": payload["code"] or "invalid_request"},
    }
