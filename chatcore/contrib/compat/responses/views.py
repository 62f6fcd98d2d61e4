"""The views of responses: create, read, follow, cancel and delete them."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace

from django.db import close_old_connections
from django.http.response import HttpResponseBase
from rest_framework.response import Response

from chatcore.api import event_streams
from chatcore.api.errors import build_turn_problem
from chatcore.api.long_responses import call_at_end, run_for_client
from chatcore.api.turn_requests import wait_for_end
from chatcore.base.rest import turn_rate
from chatcore.base.rest.auth import SignedInRequest, get_scope
from chatcore.base.rest.problems import InvalidFieldError
from chatcore.contrib.compat.chat_completions.errors import OpenAIProblem
from chatcore.contrib.compat.chat_completions.streams import (
    BegunStream,
    ClientWatch,
    hand_over,
    hand_over_late,
)
from chatcore.contrib.compat.models import StoredResponse
from chatcore.contrib.compat.programs import get_keeping
from chatcore.contrib.compat.responses import (
    compaction_answers,
    creation,
    item_lists,
    records,
    resource,
    storage,
    turn_streams,
)
from chatcore.contrib.compat.responses.errors import ResponsesAPIView
from chatcore.contrib.compat.responses.request import ResponseRequest
from chatcore.contrib.compat.responses.stateless import UnstoredResponse
from chatcore.models import Turn
from chatcore.turns import capacity


class ResponsesView(ResponsesAPIView):
    """Responses."""

    def post(self, request: SignedInRequest) -> HttpResponseBase:
        """Answer the input, as a whole, as a stream, or in the background."""
        response_request = creation.parse_body(
            request.user,
            request.data,
            request.headers,
            scope=get_scope(request),
            keeping=get_keeping(request.auth),
        )
        if not response_request.is_stored:
            return self._answer_unstored(request, response_request)
        if not response_request.stream:
            return _answer_whole(request, response_request)
        if response_request.compacts_first:
            return hand_over_late(request, lambda: _begin_stream(request, response_request))
        begun = _begin_stream(request, response_request)
        return hand_over(request, begun.chunks, begun.build_headers, on_end=begun.on_end)

    def _answer_unstored(
        self, request: SignedInRequest, response_request: ResponseRequest
    ) -> HttpResponseBase:
        """Answer without storing. A stream takes over the slot until the end of the answer."""
        with ExitStack() as held:
            held.enter_context(capacity.take_slot(request.user.pk))
            creation.count_turn(request, response_request)
            response = UnstoredResponse(request.user, response_request)
            if response_request.stream:
                stream = turn_streams.encode_events(response.follow())
                on_end = held.pop_all().close
                return hand_over(request, stream, response.build_headers, on_end=on_end)
            close_old_connections()
            run_for_client(request, response.collect())
            return Response(response.build_final_resource(), headers=response.build_headers())


class ResponseDetailView(ResponsesAPIView):
    """One stored response."""

    def get(self, request: SignedInRequest, response_id: str) -> HttpResponseBase:
        """Return the response as it is now, or its events from a number on."""
        record = records.get_owned_response(request.user, response_id)
        if request.query_params.get("stream") != "true":
            return _build_response(record)
        starting_after = _parse_number(request, "starting_after")
        slot = event_streams.take_slot(request)
        stream = turn_streams.stream_response(record, starting_after=starting_after)
        return hand_over(
            request, stream, lambda: resource.load_headers(record), on_end=slot.release
        )

    def delete(self, request: SignedInRequest, response_id: str) -> Response:
        """Forget the response. Its messages stay in their session, for what follows them."""
        record = records.get_owned_response(request.user, response_id)
        turn_streams.cancel_response(record)
        storage.delete_response(record)
        return Response({"id": response_id, "object": "response", "deleted": True})


class CancelView(ResponsesAPIView):
    """Stopping a response in the background."""

    def post(self, request: SignedInRequest, response_id: str) -> Response:
        """Stop the answer, keep what was said, and return the response."""
        record = records.get_owned_response(request.user, response_id)
        if not record.request.get("background"):
            detail = (
                "Only a response in the background can be cancelled; leave the stream of others."
            )
            raise OpenAIProblem(400, "not_in_background", detail)
        turn_streams.cancel_response(record)
        if record.turn:
            wait_for_end(record.turn)
        return _build_response(record)


class InputItemsView(ResponsesAPIView):
    """The input of a response."""

    def get(self, request: SignedInRequest, response_id: str) -> Response:
        """Return a page of the items that the client sent for this response."""
        record = records.get_owned_response(request.user, response_id)
        page = item_lists.list_input_items(record, request.query_params)
        return Response(page, headers=resource.load_headers(record))


class InputTokensView(ResponsesAPIView):
    """Counting the tokens of an input."""

    def post(self, request: SignedInRequest) -> Response:
        """Return how many tokens a request would send. Nothing is stored or sent."""
        response_request = creation.parse_body(
            request.user,
            request.data,
            request.headers,
            scope=get_scope(request),
            keeping=get_keeping(request.auth),
        )
        count = creation.count_tokens(request.user, response_request)
        return Response({"object": "response.input_tokens", "input_tokens": count})


class CompactView(ResponsesAPIView):
    """Compacting a conversation."""

    def post(self, request: SignedInRequest) -> Response:
        """Return the conversation in a form that takes less room."""
        body = request.data
        if not isinstance(body, Mapping) or not body.get("model"):
            raise InvalidFieldError("model", "The name of a model.")
        response_request = creation.parse_body(
            request.user,
            body,
            request.headers,
            scope=get_scope(request),
            keeping=replace(get_keeping(request.auth), is_on=False),
        )
        turn_rate.count_turn(request)
        answer, headers = compaction_answers.compact(request.user, response_request)
        return Response(answer, headers=headers)


def _begin_stream(request: SignedInRequest, response_request: ResponseRequest) -> BegunStream:
    """Begin a stored response. Unless it is in the background, it stops when its client leaves."""
    record = creation.begin_stored(request, response_request)
    headers = resource.load_headers(record) | response_request.ignored_header
    chunks = turn_streams.stream_response(record)
    if record.turn is None or response_request.is_background:
        return BegunStream(chunks=chunks, build_headers=lambda: headers)
    watch = ClientWatch(record.turn)
    call_at_end(request, watch.stop_unless_over)
    return BegunStream(
        chunks=watch.watch_parts(chunks),
        build_headers=lambda: headers,
        on_end=watch.stop_unless_over,
    )


def _answer_whole(request: SignedInRequest, response_request: ResponseRequest) -> Response:
    """Answer, and wait for the end unless the response is in the background."""
    record = creation.begin_stored(request, response_request)
    if record.turn is None or response_request.is_background:
        return _build_response(record, response_request.ignored_header)
    watch = ClientWatch(record.turn)
    call_at_end(request, watch.stop_unless_over)
    with watch:
        turn = wait_for_end(record.turn)
    if turn.status in (Turn.Status.FAILED, Turn.Status.INTERRUPTED):
        raise build_turn_problem(turn)
    return _build_response(record, response_request.ignored_header)


def _build_response(
    record: StoredResponse, ignored_header: dict[str, str] | None = None
) -> Response:
    """Return a stored response as it is now."""
    body = resource.load_resource(record)
    headers = resource.load_headers(record) | resource.build_trimmed_header(body)
    return Response(body, headers=headers | (ignored_header or {}))


def _parse_number(request: SignedInRequest, name: str) -> int | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise InvalidFieldError(name, "The number of an event.")
    return int(text)
