"""Search in all messages, compacted ones included."""

from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import Max
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

from chatcore.api.ownership import get_owned_session
from chatcore.base.rest.pagination import MAX_LIMIT, Cursor, parse_limit
from chatcore.base.rest.problems import InvalidFieldError
from chatcore.base.truncation import clean_text
from chatcore.models import Message
from chatcore.search import query as search_query
from models_registry import keys

SEARCH_PARAMETERS = [
    OpenApiParameter(
        "q",
        {"type": "string", "minLength": 1},
        required=True,
        description=(
            "A question in ordinary words, or any words; those between quotation marks must stand"
            " in a message as they are."
        ),
    ),
    OpenApiParameter("limit", {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT}),
    OpenApiParameter(
        "cursor", {"type": "string"}, description="From `next` or `previous` of another page."
    ),
]


class HitSerializer(serializers.Serializer[object]):
    """A message that may answer the question, with the best place of its text.

    `marks` are the start and end of the question's words in the snippet, in code points, and
    `score` is the share of the question, weighted by rarity, that the message and those next to it
    hold.
    """

    session = serializers.UUIDField(source="session_id")
    message = serializers.IntegerField(source="message_id")
    seq = serializers.IntegerField()
    role = serializers.ChoiceField(Message.Role.choices)
    snippet = serializers.CharField()
    marks = serializers.ListField(
        child=serializers.ListField(child=serializers.IntegerField(), min_length=2, max_length=2)
    )
    score = serializers.FloatField(min_value=0, max_value=1)
    created_at = serializers.DateTimeField()


class HitsSerializer(serializers.Serializer[object]):
    """A page of hits, best first."""

    results = HitSerializer(many=True)
    next = serializers.CharField(allow_null=True)
    previous = serializers.CharField(allow_null=True)


class SessionSearchView(APIView):
    """Search in one session."""

    @extend_schema(
        operation_id="search_session", parameters=SEARCH_PARAMETERS, responses=HitsSerializer
    )
    def get(self, request: Request, session_id: UUID) -> Response:
        """Return the messages that answer the question: the best first, then the newest."""
        return _respond_with_hits(request, get_owned_session(request, session_id).pk)


class SearchView(APIView):
    """Search in all of the user's sessions."""

    @extend_schema(
        operation_id="search_all", parameters=SEARCH_PARAMETERS, responses=HitsSerializer
    )
    def get(self, request: Request) -> Response:
        """Return the messages that answer the question: the best first, then the newest."""
        return _respond_with_hits(request, request.user)


def _respond_with_hits(
    request: Request, scope: UUID | AbstractBaseUser | AnonymousUser
) -> Response:
    """Return a page of hits in one session, by its id, or in all sessions of a user."""
    words = clean_text(request.query_params.get("q", "")).strip()
    if not words:
        raise InvalidFieldError("q", "The words to search for.")
    limit = parse_limit(request)
    offset, newest_id = _parse_cursor(request)
    hits = search_query.search_messages(scope, words, limit + 1, skip=offset, up_to_id=newest_id)
    has_next = len(hits) > limit
    return Response(
        {
            "results": HitSerializer(hits[:limit], many=True).data,
            "next": _build_link(request, offset + limit, newest_id) if has_next else None,
            "previous": _build_link(request, max(0, offset - limit), newest_id) if offset else None,
        }
    )


def _parse_cursor(request: Request) -> tuple[int, int]:
    """Return the number of hits to skip, and the id of the newest message to search.

    Hits are ordered by how well they match, so a page begins at a number. Messages that are added
    after the first page are left out, because they would shift that number. The id is encrypted: it
    would tell how much all users write.
    """
    cursor_text = request.query_params.get("cursor")
    if cursor_text is None:
        return 0, Message.objects.aggregate(newest=Max("id"))["newest"] or 0
    values = Cursor.decode(cursor_text).values
    try:
        offset, newest_id = values[0], keys.decrypt(values[1])
    except (IndexError, keys.UnreadableKey):
        raise InvalidFieldError("cursor", "This is not a cursor of this list.") from None
    if not _is_number(offset) or not _is_number(newest_id):
        raise InvalidFieldError("cursor", "This is not a cursor of this list.")
    return int(offset), int(newest_id)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 16


def _build_link(request: Request, offset: int, newest_id: int) -> str:
    cursor_text = Cursor([str(offset), keys.encrypt(str(newest_id))]).encode()
    return replace_query_param(request.build_absolute_uri(), "cursor", cursor_text)
