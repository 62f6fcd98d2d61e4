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
from chatcore.api.sessions import owned
from chatcore.models import Message
from chatcore.rest.pagination import MAX_LIMIT, Cursor, limit_of
from chatcore.rest.problems import Invalid
from chatcore.search import query as search_query
from chatcore.sessions.truncation import clean_text

PARAMETERS = [
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


class SearchSession(APIView):
    """Search in one session."""

    @extend_schema(operation_id="search_session", parameters=PARAMETERS, responses=HitsSerializer)
    def get(self, request: Request, session_id: UUID) -> Response:
        """The messages that hold every word, the best first, then the newest."""
        return _found(request, owned(request, session_id).pk)


class SearchAll(APIView):
    """Search in all of the asker's sessions."""

    @extend_schema(operation_id="search_all", parameters=PARAMETERS, responses=HitsSerializer)
    def get(self, request: Request) -> Response:
        """The messages that hold every word, the best first, then the newest."""
        return _found(request, request.user)


def _found(request: Request, scope: Any) -> Response:
    words = clean_text(request.query_params.get("q", "")).strip()
    if not words:
        raise Invalid("q", "What to search for.")
    limit, (skip, up_to_id) = limit_of(request), _place(request)
    hits = search_query.search(scope, words, limit + 1, skip=skip, up_to_id=up_to_id)
    rest = _link(request, skip + limit, up_to_id) if len(hits) > limit else None
    before = _link(request, max(0, skip - limit), up_to_id) if skip else None
    return Response(
        {"results": HitSerializer(hits[:limit], many=True).data, "next": rest, "previous": before}
    )


def _place(request: Request) -> tuple[int, int]:
    """How many hits to skip, and the newest message that counts: what is said after the first page shifts no other."""
    given = request.query_params.get("cursor")
    if given is None:
        return 0, Message.objects.aggregate(newest=Max("id"))["newest"] or 0
    values = Cursor.decode(given).values
    if len(values) != 2 or not all(
        value.isascii() and value.isdigit() and len(value) < 16 for value in values
    ):
        raise Invalid("cursor", "This is no cursor of this list.")
    return int(values[0]), int(values[1])


def _link(request: Request, skip: int, up_to_id: int) -> str:
    return replace_query_param(
        request.build_absolute_uri(), "cursor", Cursor([str(skip), str(up_to_id)]).encode()
    )
