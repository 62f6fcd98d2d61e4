"""What a user has set for all of their chats."""

from django.core.exceptions import ValidationError
from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.base.rest.fields import StrictSerializer, StrictTextField
from chatcore.base.rest.problems import InvalidFieldError
from chatcore.models import UserPreferences
from chatcore.models.user_preferences import MAX_ZONE_NAME, check_time_zone


class PreferencesSerializer(StrictSerializer):
    """The user's preferences."""

    time_zone = StrictTextField(
        max_length=MAX_ZONE_NAME,
        allow_blank=True,
        required=False,
        help_text=(
            "The zone in which summaries and memory name the days of messages, as Europe/Berlin. "
            "The page sets it from the browser. Empty: the server's."
        ),
    )

    def validate_time_zone(self, value: str) -> str:
        """Refuse what is not the name of a time zone."""
        try:
            if value:
                check_time_zone(value)
        except ValidationError as error:
            raise InvalidFieldError("time_zone", error.messages[0]) from None
        return value


class PreferencesView(GenericAPIView[UserPreferences]):
    """The user's preferences."""

    serializer_class = PreferencesSerializer

    @extend_schema(operation_id="read_preferences")
    def get(self, request: Request) -> Response:
        """Return the preferences."""
        row = UserPreferences.objects.filter(pk=request.user.pk).first() or UserPreferences()
        return Response(self.get_serializer(row).data)

    @extend_schema(operation_id="update_preferences")
    def patch(self, request: Request) -> Response:
        """Change preferences. What was summarized keeps its days."""
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        if "time_zone" in serializer.validated_data and request.user.pk is not None:
            UserPreferences.keep_time_zone(request.user.pk, serializer.validated_data["time_zone"])
        return self.get(request)
