"""What a user has set for all of their chats."""

from django.core.exceptions import ValidationError
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.accounts.rights import select_models
from chatcore.base.rest.fields import StrictSerializer, StrictTextField
from chatcore.models import UserPreferences
from chatcore.models.user_preferences import MAX_ZONE_NAME, check_time_zone
from models_registry.models import AiModel


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

    default_model = StrictTextField(
        allow_null=True,
        required=False,
        help_text="The model of new sessions, `name` or `provider/name`. Null: the server's.",
    )

    def validate_default_model(self, name: str | None) -> AiModel | None:
        """Return the model. Refuse one that the user cannot choose."""
        model = None
        if name is not None:
            model = select_models(self.context["request"].user.pk).find_by_name(name)
            if model is None:
                raise serializers.ValidationError("There is no usable model of this name.")
        return model

    def validate_time_zone(self, value: str) -> str:
        """Refuse what is not the name of a time zone."""
        try:
            if value:
                check_time_zone(value)
        except ValidationError as error:
            raise serializers.ValidationError(error.messages[0]) from None
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
        if serializer.validated_data and request.user.pk is not None:
            UserPreferences.keep(request.user.pk, **serializer.validated_data)
        return self.get(request)
