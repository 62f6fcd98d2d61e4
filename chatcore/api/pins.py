"""Pins: messages that are always sent unchanged."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore.api.ownership import get_owned_message
from chatcore.base.rest.fields import StrictBooleanField, StrictSerializer
from chatcore.turns.messages import pin_message


class PinSerializer(StrictSerializer):
    """True to pin the message, false to unpin it."""

    pinned = StrictBooleanField(default=True)


class PinnedSerializer(serializers.Serializer[object]):
    """A message, and whether it is pinned now."""

    id = serializers.IntegerField()
    pinned = serializers.BooleanField()


class PinMessageView(APIView):
    """A message that is always sent unchanged."""

    @extend_schema(operation_id="pin_message", request=PinSerializer, responses=PinnedSerializer)
    def post(self, request: Request, message_id: int) -> Response:
        """Pin the message, or unpin it with `pinned: false`."""
        message = get_owned_message(request, message_id)
        serializer = PinSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        pin_message(message, pinned=serializer.validated_data["pinned"])
        return Response(PinnedSerializer(message).data)
