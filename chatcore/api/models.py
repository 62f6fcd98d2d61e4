"""Language models that a client may choose."""

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.accounts.rights import select_models
from models_registry.models import AiModel


class AiModelSerializer(serializers.ModelSerializer[AiModel]):
    """A language model. An unknown context window is null; prices are per million tokens."""

    id = serializers.CharField(source="__str__", help_text="provider/name")
    provider = serializers.CharField(source="provider.name")
    input_price = serializers.FloatField(allow_null=True)
    cached_input_price = serializers.FloatField(allow_null=True)
    cache_write_price = serializers.FloatField(allow_null=True)
    output_price = serializers.FloatField(allow_null=True)

    supports_tools = serializers.BooleanField(
        source="may_call_tools",
        help_text="Also true while it is unknown; the provider's first refusal settles it.",
    )

    supports_images = serializers.BooleanField(
        source="may_see_images",
        help_text="Also true while it is unknown; the provider's first refusal settles it.",
    )

    class Meta:
        model = AiModel
        fields = (
            "id",
            "name",
            "provider",
            "context_window_size",
            "max_output_tokens",
            "input_price",
            "cached_input_price",
            "cache_write_price",
            "output_price",
            "price_tiers",
            "supports_tools",
            "supports_images",
            "policy",
            "is_default",
        )
        read_only_fields = fields


class AiModelListView(ListAPIView[AiModel]):
    """The language models that can be used."""

    serializer_class = AiModelSerializer

    def get_queryset(self) -> QuerySet[AiModel]:
        """Return the active models of active providers."""
        return select_models(self.request.user.pk).filter_usable().order_by("id")

    @extend_schema(operation_id="list_models")
    def get(self, request: Request) -> Response:
        """Return a page of language models."""
        return self.list(request)
