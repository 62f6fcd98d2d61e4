"""Search over everything that was said, compacted or not."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore import recall
from chatcore.api.pages import MAX_LIMIT, limit_of, whole
from chatcore.api.problems import Invalid
from chatcore.api.serializers import HitSerializer, HitsSerializer
from chatcore.api.sessions import owned
from chatcore.truncation import clean_text

PARAMETERS = [
    OpenApiParameter("q", {"type": "string", "minLength": 1}, required=True, description="Words that a message must all hold."),
    OpenApiParameter("limit", {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT}),
]


class SearchSession(APIView):
    """Search in one session."""

    @extend_schema(operation_id="search_session", parameters=PARAMETERS, responses=HitsSerializer)
    def get(self, request: Request, session_id: UUID) -> Response:
        """The newest messages that hold every word."""
        return _found(request, owned(request, session_id).pk)


class SearchAll(APIView):
    """Search in all of the asker's sessions."""

    @extend_schema(operation_id="search_all", parameters=PARAMETERS, responses=HitsSerializer)
    def get(self, request: Request) -> Response:
        """The newest messages that hold every word."""
        return _found(request, request.user)


def _found(request: Request, scope: Any) -> Response:
    words = clean_text(request.query_params.get("q", "")).strip()
    if not words:
        raise Invalid("q", "What to search for.")
    hits = recall.search(scope, words, limit_of(request))
    return whole(HitSerializer(hits, many=True).data)
