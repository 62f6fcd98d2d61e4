"""Forks: copy the beginning of a session into a new one."""

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore.api import idempotency
from chatcore.api.new_sessions import build_created_response
from chatcore.api.ownership import get_owned_message, get_owned_session
from chatcore.api.serializers.sessions import SessionSerializer
from chatcore.base.rest import conditions
from chatcore.base.rest.commits import all_or_nothing
from chatcore.turns import forks


class ForkMessageView(APIView):
    """A new session that begins like this one."""

    @extend_schema(
        operation_id="fork_message",
        request=None,
        parameters=[*idempotency.PARAMETERS, conditions.ENTITY_TAG],
        responses={
            201: SessionSerializer,
            409: OpenApiResponse(
                description="The message was superseded, or a request with this key is running."
            ),
            422: idempotency.CONFLICT_RESPONSE,
        },
    )
    @idempotency.repeatable(in_transaction=False)
    def post(self, request: Request, message_id: int) -> Response:
        """Copy all messages up to this one into a new session.

        It gets the newest summary that covers only copied messages.
        """
        message = get_owned_message(request, message_id)
        with all_or_nothing(request):
            new_session = forks.fork_session(
                message,
                on_stored=lambda fork: idempotency.settle(request, session_id=fork.pk),
            )
        return build_created_response(request, get_owned_session(request, new_session.pk))
