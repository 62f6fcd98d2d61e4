"""Answer a request that has made a session: created, forked or imported."""

from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.api.serializers.sessions import SessionSerializer
from chatcore.base.rest import conditions
from chatcore.base.rest.routes import build_api_path
from chatcore.models import Session


def build_created_response(request: Request, session: Session) -> Response:
    """Return a new session with its path in the Location header."""
    representation = SessionSerializer(session).data
    response = Response(
        representation,
        status=201,
        headers={
            "Location": build_api_path(request, f"sessions/{session.pk}"),
            **conditions.build_entity_headers(representation),
        },
    )
    response.session_id = session.pk  # type: ignore[attr-defined]  # for a repeated request
    return response
