"""What was sent for an answer, over REST."""

from dataclasses import asdict

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore.api.ownership import get_owned_message
from chatcore.api.serializers.context import RequestSerializer
from chatcore.contrib.sent_requests.records import load_request


class SentRequestSerializer(RequestSerializer):
    """What the request of an answer has sent."""

    model = serializers.CharField(help_text="The name that its provider knows.")
    context_version = serializers.IntegerField(
        allow_null=True, help_text="Null if messages were left out."
    )
    tokens = serializers.IntegerField(
        allow_null=True, help_text="The tokens that its provider counted; null if it did not."
    )
    left_out = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="The numbers of the messages that were left out because they did not fit.",
    )
    missing_parts = serializers.IntegerField(
        help_text="How many parts are gone, because a message was deleted since."
    )


class SentRequestView(APIView):
    """The request of an answer."""

    @extend_schema(operation_id="get_sent_request", responses=SentRequestSerializer)
    def get(self, request: Request, message_id: int) -> Response:
        """Return what was sent when this answer was asked for, all forms of messages included.

        404 if it is not known: for messages that no model of this server wrote, for answers whose
        process died, for those of versions before this was stored, and after
        `CHATCORE_REQUEST_RETENTION_DAYS`.
        """
        answer = get_owned_message(request, message_id)
        sent_request = load_request(answer)
        if sent_request is None:
            raise Http404
        fields = asdict(sent_request) | {
            "context_version": answer.context_version,
            "tokens": answer.token_count_input,
        }
        return Response(SentRequestSerializer(fields).data)
