"""A conversation with a server elsewhere, over REST and its events. No database is opened here."""

import json
import os
import sys
import time
import uuid
from argparse import ArgumentParser
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TextIO

import httpx2
from rich.console import Console

from chatcore.contrib.terminal import arguments
from chatcore.contrib.terminal.screen import (
    EXIT_PROVIDER,
    EXIT_SIGN_IN,
    EXIT_USAGE,
    NOTHING_TO_REWIND_TEXT,
    ChatUnavailable,
    Screen,
    TurnResult,
)
from chatcore.events.types import PAUSE_EVENTS, Event, EventType

TIMEOUTS = httpx2.Timeout(60.0, connect=10.0, read=600.0)  # heartbeats come more often
RECONNECTIONS = 5  # of a stream that breaks, each after a second
NO_SENDER = (
    "The server needs a token: --token or CHATCORE_TOKEN."
    " `chatcore create_token USER` makes one there."
)
EVENT_NAMES = {str(name) for name in EventType}


def run_command(words: Sequence[str]) -> int:
    """Read the words behind `chatcore chat`, talk, and return the exit code."""
    parser = ArgumentParser(prog="chatcore chat", description=arguments.HELP)
    arguments.add_arguments(parser)
    options = arguments.add_server(vars(parser.parse_args(words)), os.environ)
    return run_chat(options, sys.stdin)


def run_chat(options: dict[str, Any], stdin: TextIO | None) -> int:
    """Talk with the server that the options name, and return the exit code."""
    notices = Console(stderr=True)
    try:
        text = arguments.build_text(options["text"], stdin)
        with open_server(options) as server:
            screen = RemoteTerminal(
                server, _open_session(server, options), Console(), notices, options["json"]
            )
            return screen.send_message(text) if text else screen.run_loop()
    except ChatUnavailable as refusal:
        sentence, code = refusal.args
        sys.stderr.write(f"{sentence}\n")
        return int(code)


class Server:
    """The REST API of a server, with the errors of a conversation."""

    def __init__(self, client: httpx2.Client, url: str) -> None:
        self.client = client
        self.url = url

    def call(self, method: str, path: str, **options: Any) -> Any:
        """Return the JSON of an answer. Raises ChatUnavailable."""
        try:
            response = self.client.request(method, path, **options)
        except httpx2.HTTPError as error:
            raise self.build_outage(error) from None
        if response.is_error:
            raise build_refusal(response)
        return response.json() if response.content else None

    @contextmanager
    def open_stream(self, method: str, path: str, **options: Any) -> Iterator[httpx2.Response]:
        """Yield the answer before its body is read. Raises ChatUnavailable for a refusal."""
        with self.client.stream(method, path, **options) as response:
            if response.is_error:
                response.read()
                raise build_refusal(response)
            yield response

    def build_outage(self, error: Exception) -> ChatUnavailable:
        """Build the error of a server that cannot be reached."""
        reason = str(error) or type(error).__name__
        return ChatUnavailable(f"{self.url} cannot be reached: {reason}", EXIT_PROVIDER)


@contextmanager
def open_server(options: dict[str, Any]) -> Iterator[Server]:
    """Yield the server of the options. Raises ChatUnavailable for an address that is none."""
    url = options["url"].rstrip("/")
    if options["user"]:
        sentence = "--user is for this machine's database; on a server the token says who you are."
        raise ChatUnavailable(sentence, EXIT_USAGE)
    if not url.startswith(("http://", "https://")):
        sentence = f"--url is {url!r}; it must be an address such as https://chat.example.com."
        raise ChatUnavailable(sentence, EXIT_USAGE)
    if not options["token"]:
        raise ChatUnavailable(NO_SENDER, EXIT_SIGN_IN)
    try:
        client = httpx2.Client(
            base_url=f"{url}/api/v1/",
            headers={"Authorization": f"Bearer {options['token']}"},
            timeout=TIMEOUTS,
        )
    except (httpx2.InvalidURL, ValueError) as error:
        raise ChatUnavailable(f"--url or --token cannot be used: {error}", EXIT_USAGE) from None
    with client:
        yield Server(client, url)


class RemoteTerminal(Screen):
    """A session of another server at a console."""

    def __init__(
        self,
        server: Server,
        session: Mapping[str, object],
        console: Console,
        notices: Console,
        as_json: bool = False,
    ) -> None:
        super().__init__(console, notices=notices, as_json=as_json)
        self.server = server
        self.session = session
        self.path = f"sessions/{session['id']}"
        self._load_usage()

    def _describe_session(self) -> str:
        model = self.session["model"] or "no model"
        return f"{model} · {self.session['id']} · {self.server.url}"

    def _get_session_id(self) -> str:
        return str(self.session["id"])

    def _follow_message(self, text: str) -> TurnResult:
        result = TurnResult()
        events = self._stream_turn(text)
        try:
            self._follow_events(events, result)
        except KeyboardInterrupt:
            events.close()
            self.server.call("POST", f"{self.path}/cancel")
            self._follow_events(self._resume_turn(), result)
            self._show_stop()
        self._load_usage()
        if self.as_json:
            result.content = self._load_answer(result.turn)
        return result

    def _follow_events(self, events: Iterator[Event], result: TurnResult) -> None:
        for event in events:
            self._show_event(event)
            _note_event(result, event)

    def _stream_turn(self, text: str) -> Generator[Event, None, None]:
        """Send the message, and yield the events of its turn, also when the connection breaks."""
        self.last_seq: int | None = None
        key = {"Idempotency-Key": str(uuid.uuid4())}
        body = {"content": text, "stream": True}
        try:
            with self.server.open_stream(
                "POST", f"{self.path}/messages", json=body, headers=key
            ) as response:
                for event in self._read_events(response):
                    yield event
                    if event.name in PAUSE_EVENTS:
                        return
        except httpx2.HTTPError as error:
            if self.last_seq is None:
                raise self.server.build_outage(error) from None
        yield from self._resume_turn()

    def _resume_turn(self) -> Iterator[Event]:
        """Yield the rest of a turn's events. Raises ChatUnavailable if the server stays away."""
        for _ in range(RECONNECTIONS):
            try:
                with self.server.open_stream(
                    "GET", f"{self.path}/events", params={"after": self.last_seq or 0}
                ) as response:
                    for event in self._read_events(response):
                        yield event
                        if event.name in PAUSE_EVENTS:
                            return
            except httpx2.HTTPError:
                pass
            time.sleep(1)
        sentence = "The connection broke. The message is stored and is being answered."
        raise ChatUnavailable(sentence, EXIT_PROVIDER)

    def _read_events(self, response: httpx2.Response) -> Iterator[Event]:
        for frame in read_frames(response.iter_lines()):
            if frame.get("id", "").isdecimal():
                self.last_seq = int(frame["id"])
            if frame.get("event") in EVENT_NAMES:  # a newer server may know others
                yield build_event(frame)

    def _load_usage(self) -> None:
        self.usage = self.server.call("GET", f"{self.path}/context")

    def _load_answer(self, turn: str) -> str:
        query = {"order": "desc", "limit": 10}
        messages = self.server.call("GET", f"{self.path}/messages", params=query)["results"]
        for message in messages:
            if message["role"] == "user":
                break
            if message["role"] == "assistant":
                return str(message["content"])
        return ""

    def _compact(self, instructions: str) -> str:
        body = {"wait": True, **({"instructions": instructions} if instructions else {})}
        run = self.server.call("POST", f"{self.path}/compact", json=body)
        lines = [f"policy     {run['policy']}", f"status     {run['status']}"]
        if run["reason"]:
            lines.append(f"reason     {run['reason']}")
        if run["stages_used"]:
            lines.append(f"stages     {', '.join(run['stages_used'])}")
        if run["tokens_before"] is not None:
            lines.append(f"tokens     {run['tokens_before']:,} → {run['tokens_after']:,}")
        self._load_usage()
        return "\n".join(lines)

    def _rewind(self, version: int | None) -> int:
        if version is None:
            newest_version = self.server.call("GET", self.path)["context_version"]
            if not newest_version:
                raise ChatUnavailable(NOTHING_TO_REWIND_TEXT, EXIT_USAGE)
            version = newest_version - 1
        self.server.call("POST", f"{self.path}/context/rewind", json={"version": version})
        self._load_usage()
        return version

    def _list_models(self) -> Iterable[str]:
        path: str | None = "models"
        while path:
            page = self.server.call("GET", path)
            yield from (model["id"] for model in page["results"])
            path = page["next"]

    def _export(self) -> str:
        document = self.server.call("GET", f"{self.path}/export")
        return json.dumps(document, ensure_ascii=False, indent=1)


def _open_session(server: Server, options: dict[str, Any]) -> dict[str, Any]:
    """Create a session, or change the one that is named, as the options say."""
    fields = {
        "model": options["model"],
        "system_prompt": options["system"],
        "policy": options["policy"],
        "compact_threshold": options["compact_threshold"],
        "auto_compact": False if options["disable_compaction"] else None,
    }
    body = {name: value for name, value in fields.items() if value not in (None, "")}
    session_id = options["session"]
    if not session_id:
        created: dict[str, object] = server.call("POST", "sessions", json=body)
        return created
    try:
        path = f"sessions/{uuid.UUID(session_id)}"
    except ValueError:
        raise ChatUnavailable(f"You have no session {session_id}.", EXIT_USAGE) from None
    session: dict[str, object] = server.call("PATCH" if body else "GET", path, json=body or None)
    return session


def read_frames(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Yield the fields of each server-sent event. Comments, as heartbeats, are left out."""
    frame: dict[str, str] = {}
    for line in lines:
        if not line:
            if "data" in frame:
                yield frame
            frame = {}
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data" and "data" in frame:
            frame["data"] += f"\n{value}"
        elif name:
            frame[name] = value


def build_event(frame: dict[str, str]) -> Event:
    """Return a frame as an event of the log."""
    data = json.loads(frame["data"])
    at = data.pop("at", None)
    return Event(
        session=uuid.UUID(data.pop("session")),
        seq=data.pop("seq"),
        name=EventType(frame["event"]),
        data=data,
        at=datetime.fromisoformat(at) if at else datetime.now(UTC),
    )


def build_refusal(response: httpx2.Response) -> ChatUnavailable:
    """Return a problem of the server as one sentence and an exit code."""
    try:
        problem = response.json()
        detail = str(problem.get("detail") or problem.get("title"))
    except (ValueError, AttributeError):
        detail = f"The server answered {response.status_code}."
    codes = {401: EXIT_SIGN_IN, 403: EXIT_SIGN_IN, 429: EXIT_PROVIDER}
    code = EXIT_PROVIDER if response.is_server_error else EXIT_USAGE
    if response.status_code == 404:
        detail = "There is no such session, or it is not yours."
    return ChatUnavailable(detail, codes.get(response.status_code, code))


def _note_event(result: TurnResult, event: Event) -> None:
    """Record what an event says about the turn's result."""
    if event.name == EventType.TURN_STARTED:
        result.turn = event.data["turn"]
    elif event.name == EventType.CONTEXT_TRIMMED:
        result.notices.append(event.data["notice"])
    elif event.name in PAUSE_EVENTS:
        result.status = str(event.name).removeprefix("turn.")
    if event.name == EventType.TURN_FAILED:
        result.error = {name: event.data[name] for name in event.data if name != "turn"}
