"""Language models, as a client may pick one."""

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.api.serializers import AiModelSerializer
from models_registry.models import AiModel


class AiModelListView(ListAPIView[AiModel]):
    """The language models that can be used."""

    serializer_class = AiModelSerializer

    def get_queryset(self) -> QuerySet[AiModel]:
        """Active models of active providers."""
        return AiModel.objects.filter_usable().order_by("id")

    @extend_schema(operation_id="list_models")
    def get(self, request: Request) -> Response:
        """A page of language models."""
        return self.list(request)
