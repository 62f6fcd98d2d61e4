"""Search over everything that was said, compacted or not."""

from typing import Any
from uuid import UUID

from django.db.models import Max
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

from chatcore.api.serializers import HitSerializer, HitsSerializer
from chatcore.api.sessions import get_owned_session
from chatcore.models import Message
from chatcore.rest.pagination import MAX_LIMIT, Cursor, parse_limit
from chatcore.rest.problems import InvalidFieldError
from chatcore.search import query as search_query
from chatcore.sessions.truncation import clean_text

SEARCH_PARAMETERS = [
    OpenApiParameter(
        "q",
        {"type": "string", "minLength": 1},
        required=True,
        description="Words that a message must all hold.",
    ),
    OpenApiParameter("limit", {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT}),
    OpenApiParameter(
        "cursor", {"type": "string"}, description="From `next` or `previous` of another page."
    ),
]


class SessionSearchView(APIView):
    """Search in one session."""

    @extend_schema(
        operation_id="search_session", parameters=SEARCH_PARAMETERS, responses=HitsSerializer
    )
    def get(self, request: Request, session_id: UUID) -> Response:
        """The messages that hold every word, the best first, then the newest."""
        return _respond_with_hits(request, get_owned_session(request, session_id).pk)


class SearchView(APIView):
    """Search in all of the asker's sessions."""

    @extend_schema(
        operation_id="search_all", parameters=SEARCH_PARAMETERS, responses=HitsSerializer
    )
    def get(self, request: Request) -> Response:
        """The messages that hold every word, the best first, then the newest."""
        return _respond_with_hits(request, request.user)


def _respond_with_hits(request: Request, scope: Any) -> Response:
    words = clean_text(request.query_params.get("q", "")).strip()
    if not words:
        raise InvalidFieldError("q", "What to search for.")
    limit, (offset, newest_id) = parse_limit(request), _parse_cursor(request)
    hits = search_query.search_messages(scope, words, limit + 1, skip=offset, up_to_id=newest_id)
    next_link = _build_link(request, offset + limit, newest_id) if len(hits) > limit else None
    previous_link = _build_link(request, max(0, offset - limit), newest_id) if offset else None
    return Response(
        {
            "results": HitSerializer(hits[:limit], many=True).data,
            "next": next_link,
            "previous": previous_link,
        }
    )


def _parse_cursor(request: Request) -> tuple[int, int]:
    """How many hits to skip, and the newest message that counts: what is said after the first page shifts no other."""
    cursor_text = request.query_params.get("cursor")
    if cursor_text is None:
        return 0, Message.objects.aggregate(newest=Max("id"))["newest"] or 0
    values = Cursor.decode(cursor_text).values
    if len(values) != 2 or not all(
        value.isascii() and value.isdigit() and len(value) < 16 for value in values
    ):
        raise InvalidFieldError("cursor", "This is no cursor of this list.")
    return int(values[0]), int(values[1])


def _build_link(request: Request, offset: int, newest_id: int) -> str:
    return replace_query_param(
        request.build_absolute_uri(), "cursor", Cursor([str(offset), str(newest_id)]).encode()
    )
