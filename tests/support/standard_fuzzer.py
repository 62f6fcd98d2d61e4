"""Send requests that the published standard allows, or nearly so, and check every answer.

The standard describes responses and compactions; conversations and lists are OpenAI's additions,
whose items are those of the standard.
"""

import base64
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx2
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.support.open_responses import (
    MODEL,
    check_event,
    check_stream,
    find_violations,
    parse_events,
)
from tests.support.sample_files import build_png
from tests.support.scripted_model import make_tool_call
from tests.support.scripted_wire import Reply
from tests.support.standard_strategies import build_values, spoil

# docs/openai.md has the same list; 429 and above do not happen here.
DOCUMENTED_ERRORS = {400, 404, 409, 413}
MEDIA_TYPES = {"text/event-stream", "application/json"}
ROUTES = [
    *["create"] * 6,
    *["compact", "follow", "read", "list_items", "add", "begin"] * 2,
    *["count", "cancel", "list_input", "change", "look", "read_item", "remove_item", "delete"],
]
IMAGE_URL = f"data:image/png;base64,{base64.b64encode(build_png(4, 4)).decode()}"
Answer = tuple[int, Any]  # a status and a body
MARK = "known: "
METADATA = st.dictionaries(st.text(max_size=70), st.text(max_size=20) | st.none(), max_size=3)


def answer(request: dict[str, Any]) -> Reply:
    """Think, and call the first tool if there is one and it has no result yet."""
    tools = [tool["function"]["name"] for tool in request.get("tools", ())]
    number = len(request["messages"])
    if tools and request["messages"][-1]["role"] == "user":
        return Reply(tool_calls=(make_tool_call(tools[0], {}, id=f"c{number}"),), usage=(10, 2))
    return Reply(text="Tea, and cake.", reasoning="Hm." * (number % 2), usage=(10, 2))


def name_known(kind: str) -> SearchStrategy[str]:
    """Build a mark for something of this kind that will exist, or an id of nothing.

    What is drawn must not depend on earlier answers, so the mark is replaced when it is sent.
    """
    unknown_ids = [f"{prefix}_{'0' * 32}" for prefix in ("resp", "conv")]
    marks = st.integers(0, 9).map(lambda number: f"{MARK}{kind} {number}")
    # A client resolves these two before it sends anything.
    text = st.text(min_size=1, max_size=8).filter(lambda each: each not in (".", ".."))
    unknown = text | st.sampled_from(unknown_ids)
    return st.one_of([*[marks] * 6, unknown])


@dataclass
class Known:
    """What exists by now, so that requests can name it."""

    responses: list[str] = field(default_factory=list)
    conversations: list[str] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    compactions: list[str] = field(default_factory=list)
    item_paths: list[str] = field(default_factory=list)

    def forget(self, id: str) -> None:
        """Leave out a response or a conversation that was deleted."""
        for ids in (self.responses, self.conversations):
            if id in ids:
                ids.remove(id)

    def fill_in(self, value: Any) -> Any:
        """Return a value with what exists in the place of each mark."""
        if isinstance(value, dict):
            return {key: self.fill_in(part) for key, part in value.items()}
        if isinstance(value, list):
            return [self.fill_in(part) for part in value]
        if not isinstance(value, str) or not value.startswith(MARK):
            return value
        kind, number = value.removeprefix(MARK).split(" ")
        return self.get(kind, int(number))

    def get(self, kind: str, number: int) -> str:
        """Return something of a kind; the newest has the number 0."""
        values: list[str] = getattr(self, kind)
        return values[-1 - number % len(values)] if values else "nothing"

    def add(self, body: dict[str, Any], path: str) -> None:
        """Note what the answer at a path names."""
        id = str(body.get("id", ""))
        if id.startswith("resp_") and id not in self.responses:
            self.responses.append(id)
        if id.startswith("conv_") and id not in self.conversations:
            self.conversations.append(id)
        for item in (*body.get("output", ()), *body.get("data", ())):
            self.items.append(item["id"])
            if path.startswith("/conversations"):
                self.item_paths.append(f"{path}/{item['id']}")
            if item["type"] == "function_call":
                self.calls.append(item["call_id"])
            if item["type"] == "compaction":
                self.compactions.append(item["encrypted_content"])


KNOWN_VALUES: dict[str, SearchStrategy[Any]] = {
    "model": st.just(MODEL),
    "id": name_known("items"),
    "previous_response_id": name_known("responses"),
    "call_id": st.sampled_from(["c1", "c2", "c3"]) | name_known("calls"),
    "name": st.sampled_from(["weather", "calendar"]),
    "encrypted_content": name_known("compactions"),
    "image_url": st.just(IMAGE_URL),
    "file_data": st.just("data:text/plain;base64,SGVsbG8="),
    "top_logprobs": st.just(0),
    "file_url": st.none(),
}
BODIES = {
    name: build_values(name, KNOWN_VALUES)
    for name in ("CreateResponseBody", "CompactResponseMethodPublicBody")
}
ITEMS = st.lists(build_values("ItemParam", KNOWN_VALUES), max_size=4)


class Fuzzer:
    """Sends one request after the other, and checks each answer."""

    def __init__(self, client: httpx2.Client) -> None:
        self.client = client
        self.known = Known()
        self.statuses: Counter[int] = Counter()

    def begin(self) -> None:
        """Create one of each, so that the first requests can name it."""
        tool = {"type": "function", "name": "weather"}
        items = [{"type": "message", "role": "user", "content": "Hi"}]
        self._request("POST", "/responses", json={"model": MODEL, "input": "Hi", "tools": [tool]})
        self._request("POST", "/responses/compact", json={"model": MODEL, "input": items})
        conversation = self._request("POST", "/conversations", json={"items": items})[1]["id"]
        self._request("GET", f"/conversations/{conversation}/items")

    def send(self, draw: Any) -> None:
        """Send a request to a route that is drawn, as the standard has it or nearly so."""
        getattr(self, f"_{draw(st.sampled_from(ROUTES))}")(draw)

    def _create(self, draw: Any) -> None:
        self._check_answer(*self._post(draw, "/responses", "CreateResponseBody"))

    def _compact(self, draw: Any) -> None:
        answer = self._post(draw, "/responses/compact", "CompactResponseMethodPublicBody")
        _check(*answer, "CompactResource")

    def _count(self, draw: Any) -> None:
        status, body = self._post(draw, "/responses/input_tokens", "CreateResponseBody")
        assert status >= 400 or body["input_tokens"] >= 0

    def _read(self, draw: Any) -> None:
        _check(*self._request("GET", self._draw_response(draw)), "ResponseResource")

    def _follow(self, draw: Any) -> None:
        query = {"stream": "true"} | draw(_choose(starting_after=st.integers(-1, 30)))
        answer = self._request("GET", self._draw_response(draw), params=query)
        self._check_answer(*answer, starting_after=query.get("starting_after"))

    def _cancel(self, draw: Any) -> None:
        answer = self._request("POST", f"{self._draw_response(draw)}/cancel")
        _check(*answer, "ResponseResource")

    def _list_input(self, draw: Any) -> None:
        self._list(draw, f"{self._draw_response(draw)}/input_items")

    def _list_items(self, draw: Any) -> None:
        self._list(draw, f"{self._draw_conversation(draw)}/items")

    def _list(self, draw: Any, path: str) -> None:
        limit = st.integers(0, 120) | st.text(max_size=3)
        order = st.sampled_from(["asc", "desc", "up"])
        query = draw(_choose(limit=limit, order=order, after=name_known("items")))
        _check_page(*self._request("GET", path, params=query))

    def _begin(self, draw: Any) -> None:
        body = draw(_choose(items=ITEMS, metadata=METADATA))
        _check_conversation(*self._request("POST", "/conversations", json=body))

    def _change(self, draw: Any) -> None:
        body = draw(_choose(metadata=METADATA))
        _check_conversation(*self._request("POST", self._draw_conversation(draw), json=body))

    def _look(self, draw: Any) -> None:
        _check_conversation(*self._request("GET", self._draw_conversation(draw)))

    def _add(self, draw: Any) -> None:
        path = f"{self._draw_conversation(draw)}/items"
        _check_page(*self._request("POST", path, json={"items": draw(ITEMS)}))

    def _read_item(self, draw: Any) -> None:
        _check(*self._request("GET", self._draw_item(draw)), "ItemField")

    def _remove_item(self, draw: Any) -> None:
        _check_conversation(*self._request("DELETE", self._draw_item(draw)))

    def _delete(self, draw: Any) -> None:
        draw_path = draw(st.sampled_from([self._draw_response, self._draw_conversation]))
        status, body = self._request("DELETE", draw_path(draw))
        if status == 200:
            assert body["deleted"] is True
            self.known.forget(body["id"])

    def _draw_id(self, draw: Any, kind: str) -> str:
        return quote(self.known.fill_in(draw(name_known(kind))), safe="")

    def _draw_response(self, draw: Any) -> str:
        return f"/responses/{self._draw_id(draw, 'responses')}"

    def _draw_conversation(self, draw: Any) -> str:
        return f"/conversations/{self._draw_id(draw, 'conversations')}"

    def _draw_item(self, draw: Any) -> str:
        if draw(st.booleans()):
            return self.known.get("item_paths", draw(st.integers(0, 9)))
        return f"{self._draw_conversation(draw)}/items/{self._draw_id(draw, 'items')}"

    def _post(self, draw: Any, path: str, schema_name: str) -> Answer:
        body = draw(BODIES[schema_name])
        body = {"model": MODEL, "input": "Hi"} | body
        if draw(st.integers(0, 4)) == 0:
            body = spoil(draw, body)
        return self._request("POST", path, json=body)

    def _request(self, method: str, path: str, **options: Any) -> Answer:
        """Return the status and the body; it is the text of a stream."""
        options = self.known.fill_in(options)
        response = self.client.request(method, path, **options)
        status = response.status_code
        self.statuses[status] += 1
        media_type = response.headers["Content-Type"].partition(";")[0]
        sent = f"{method} {path} {json.dumps(options)[:2000]}: {status} {response.text[:2000]}"
        assert media_type in MEDIA_TYPES, sent
        if media_type == "text/event-stream":
            assert status == 200, sent
            return status, response.text
        body = response.json()
        if status == 200:
            self.known.add(body, path)
            return status, body
        assert status in DOCUMENTED_ERRORS, sent
        assert find_violations("ErrorPayload", body["error"]) == [], sent
        assert body["error"]["type"] == "invalid_request_error", sent
        return status, body

    def _check_answer(self, status: int, body: Any, starting_after: int | None = None) -> None:
        """Check a response, or its stream."""
        if not isinstance(body, str):
            return _check(status, body, "ResponseResource")
        events = parse_events(body)
        if starting_after is None:
            check_stream(events)
        else:
            for event in events:
                check_event(event)
                assert event["sequence_number"] > starting_after
        if events and "response" in events[-1]:
            self.known.add(events[-1]["response"], "")
        return None


def _check(status: int, body: Any, schema_name: str) -> None:
    if status == 200:
        assert find_violations(schema_name, body) == []


def _check_page(status: int, body: Any) -> None:
    if status == 200:
        assert body.keys() == {"object", "data", "first_id", "last_id", "has_more"}
        for item in body["data"]:
            _check(status, item, "ItemField")


def _check_conversation(status: int, body: Any) -> None:
    if status == 200:
        assert body.keys() == {"id", "object", "created_at", "metadata"}
        assert body["object"] == "conversation"


def _choose(**members: SearchStrategy[Any]) -> SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=members)
