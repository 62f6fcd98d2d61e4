"""The installation as one document, for staff: providers, models, policies and groups."""

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.accounts import audit
from chatcore.base.rest import turn_rate
from chatcore.base.rest.fields import StrictSerializer, StrictTextField
from chatcore.base.rest.problems import Problem
from chatcore.models import SetupEntry
from chatcore.setup.connection_test import call_provider
from chatcore.setup.documents import (
    DEFAULT_MODEL,
    PERSON,
    SetByFile,
    apply_document,
    describe_installation,
)
from chatcore.setup.registry import load_sections
from chatcore.setup.sections import SetupRefused
from models_registry.models import Provider
from models_registry.provider_form import CONNECT_PERMISSION

ROWS = "By name, each with the values to set; docs/setup.md lists them. Others stay as they are."


class TableField(serializers.DictField):
    """Things by their names, each with its values."""

    child = serializers.DictField(child=serializers.JSONField(allow_null=True))


class SetupSerializer(StrictSerializer):
    """What an installation is set to. Keys are written and never read."""

    providers = TableField(required=False, help_text=f"{ROWS} `api_key` is stored encrypted.")
    models = TableField(required=False, help_text=f"{ROWS} A name is provider/model.")
    policies = TableField(required=False, help_text=ROWS)
    groups = TableField(required=False, help_text=ROWS)
    default_model = StrictTextField(
        required=False, allow_null=True, help_text="New sessions start with it."
    )
    from_file = serializers.ListField(
        child=serializers.CharField(),
        read_only=True,
        help_text="What CHATCORE_SETUP_FILE sets, as providers.vllm: it is changed there only.",
    )


class ProviderTestSerializer(serializers.Serializer[object]):
    """Whether a provider answered."""

    model = serializers.CharField(allow_null=True, help_text="The model that was asked.")
    seconds = serializers.FloatField(allow_null=True, help_text="Null: it did not answer.")
    problem = serializers.CharField(allow_null=True)
    offered = serializers.ListField(
        child=serializers.CharField(), help_text="Models of its list that are not added."
    )


class SetupView(GenericAPIView[SetupEntry]):
    """The installation."""

    serializer_class = SetupSerializer

    @extend_schema(operation_id="get_setup")
    def get(self, request: Request) -> Response:
        """Return what is in use, as far as the user may set it."""
        sections = [
            name
            for name, section in load_sections().items()
            if request.user.has_perms(section.permissions)
        ]
        entries = [
            str(entry)
            for entry in SetupEntry.objects.order_by("id")
            if entry.section in (*sections, DEFAULT_MODEL)
        ]
        return Response({**describe_installation(sections), "from_file": entries})

    @extend_schema(operation_id="change_setup")
    def patch(self, request: Request) -> Response:
        """Set what the body names, all of it or nothing. The same body again changes nothing."""
        serializer = SetupSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        document = {
            name: value for name, value in serializer.validated_data.items() if value is not None
        }
        for name in document:
            section = load_sections().get("models" if name == DEFAULT_MODEL else name)
            if section is None or not request.user.has_perms(section.permissions):
                raise PermissionDenied(f"Only staff with the rights for it may set {name}.")
        try:
            changes = apply_document(document, PERSON)
        except SetByFile as error:
            raise Problem(409, "set_by_file", str(error)) from None
        except SetupRefused as error:
            section_name, _, rest = error.place.partition(".")
            detail = {rest: [error.text]} if rest else [error.text]
            raise ValidationError({section_name: detail}) from None
        for change in changes:
            audit.record("setup.changed", request=request, detail=change)
        return self.get(request)


class ProviderTestView(GenericAPIView[Any]):
    """A call to one provider."""

    serializer_class = ProviderTestSerializer

    @extend_schema(operation_id="test_provider", request=None)
    def post(self, request: Request, name: str) -> Response:
        """Ask the provider for its list, and one of its models for a word."""
        provider = Provider.objects.filter(name=name).first()
        if provider is None or not request.user.has_perm(CONNECT_PERMISSION):
            raise Http404
        turn_rate.count_turn(request)
        result = call_provider(provider, user=request.user)
        model = result.get("model")
        return Response(
            {
                "model": str(model) if model else None,
                "seconds": result.get("seconds"),
                "problem": result.get("problem"),
                "offered": [f"{provider}/{offered.name}" for offered in result["offered"]],
            }
        )
