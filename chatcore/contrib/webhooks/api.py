"""Webhooks: URLs that receive an event when a turn or a compaction ends, and their deliveries."""

from uuid import UUID

import httpx2
from django.db import transaction
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.api import idempotency
from chatcore.base.databases.person_lock import lock_person
from chatcore.base.keeping import refuse_if_kept, refuse_lost_words
from chatcore.base.net import address_guard
from chatcore.base.rest import conditions
from chatcore.base.rest.fields import StrictBooleanField, StrictSerializer, StrictTextField
from chatcore.base.rest.problems import InvalidFieldError
from chatcore.contrib.webhooks import deliveries as outbox
from chatcore.contrib.webhooks.models import Webhook, WebhookDelivery
from models_registry import keys

MAX_URL_CHARS = 2_000
MAX_WEBHOOKS = 20  # of one user
MAX_WEBHOOKS_A_HOST = 5  # each event is sent to each of them


@extend_schema_field(
    {
        "type": "string",
        "format": "uri",
        "minLength": 1,
        "maxLength": MAX_URL_CHARS,
        "pattern": r"^https?://[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+(:(80|443))?(/\S*)?$",
        "description": "Hosts and ports that the operator allows besides may differ from it.",
    }
)
class WebhookUrlField(StrictTextField):
    """An http or https URL with a host and without credentials, as far as its text tells.

    To which address a name leads is checked at each delivery, because that can change.
    """

    def to_internal_value(self, data: object) -> str:
        """Return the URL as it was sent. Raises ValidationError."""
        text = super().to_internal_value(data)
        try:
            address_guard.check_url(httpx2.URL(text))
        except (httpx2.InvalidURL, UnicodeError):
            raise serializers.ValidationError(
                "An http or https address without credentials."
            ) from None
        except address_guard.AddressRefused as refusal:
            raise serializers.ValidationError(str(refusal)) from None
        return text


class WebhookSerializer(StrictSerializer, serializers.ModelSerializer[Webhook]):
    """A webhook. Its secret is shown once, when it is created."""

    url = WebhookUrlField(max_length=MAX_URL_CHARS)
    events = serializers.ListField(
        child=serializers.ChoiceField(choices=outbox.WEBHOOK_EVENTS),
        required=False,
        max_length=len(outbox.WEBHOOK_EVENTS),
        help_text="The events it wants; empty: all.",
    )
    is_active = StrictBooleanField(required=False)

    class Meta:
        model = Webhook
        fields = ("id", "url", "events", "is_active", "created_at")
        read_only_fields = ("id", "created_at")


class CreatedWebhookSerializer(WebhookSerializer):
    """A new webhook, with the secret that signs its deliveries."""

    secret = serializers.CharField(read_only=True)

    class Meta(WebhookSerializer.Meta):
        fields = (*WebhookSerializer.Meta.fields, "secret")  # type: ignore[assignment]


class DeliverySerializer(serializers.ModelSerializer[WebhookDelivery]):
    """An event that was sent to a webhook, or waits to be sent."""

    class Meta:
        model = WebhookDelivery
        fields = (
            "id",
            "event",
            "status",
            "attempts",
            "response_status",
            "error",
            "payload",
            "created_at",
            "delivered_at",
        )
        read_only_fields = fields


class WebhookListView(GenericAPIView[Webhook]):
    """The user's webhooks."""

    serializer_class = WebhookSerializer

    def get_queryset(self) -> QuerySet[Webhook]:
        """Return the user's webhooks, newest first."""
        return Webhook.objects.filter(owner_id=self.request.user.pk).order_by("-created_at", "-id")

    @extend_schema(operation_id="list_webhooks", responses=WebhookSerializer(many=True))
    def get(self, request: Request) -> Response:
        """Return a page of webhooks."""
        page = self.paginate_queryset(self.get_queryset())
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    @extend_schema(
        operation_id="create_webhook",
        parameters=[*idempotency.PARAMETERS, conditions.ENTITY_TAG],
        responses={201: CreatedWebhookSerializer} | idempotency.RESPONSES,
    )
    @idempotency.repeatable()
    def post(self, request: Request) -> Response:
        """Create a webhook. Only this response shows its secret."""
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        secret = outbox.generate_secret()
        with transaction.atomic():
            lock_person(request.user.pk)
            if self.get_queryset().count() >= MAX_WEBHOOKS:
                detail = f"There are already {MAX_WEBHOOKS} addresses, the most."
                raise InvalidFieldError("url", detail)
            _check_host(self.get_queryset(), serializer.validated_data["url"])
            webhook = serializer.save(owner=request.user, secret=keys.encrypt(secret))
        representation = self.get_serializer(webhook).data
        return Response(
            {**representation, "secret": secret},
            status=201,
            headers=conditions.build_entity_headers(representation),
        )


@conditions.answers_unchanged
class WebhookDetailView(GenericAPIView[Webhook]):
    """One webhook."""

    serializer_class = WebhookSerializer

    @extend_schema(operation_id="read_webhook", parameters=[conditions.ENTITY_TAG])
    def get(self, request: Request, webhook_id: UUID) -> Response:
        """Return the webhook."""
        return self._respond(_get_owned_webhook(request, webhook_id))

    @extend_schema(
        operation_id="change_webhook",
        parameters=[conditions.IF_UNCHANGED, conditions.ENTITY_TAG],
        responses={200: WebhookSerializer} | conditions.CHANGED_RESPONSES,
    )
    @transaction.atomic
    def patch(self, request: Request, webhook_id: UUID) -> Response:
        """Change the given fields only."""
        webhook = _get_owned_webhook(request, webhook_id, is_locked=True)
        serializer = self.get_serializer(webhook, data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        conditions.check_entity_tag(request, self.get_serializer(webhook).data)
        if "url" in serializer.validated_data:
            texts = {"url": serializer.validated_data["url"]}
            refuse_lost_words(webhook.owner_id, webhook, texts)
            others = Webhook.objects.filter(owner=webhook.owner_id).exclude(pk=webhook.pk)
            _check_host(others, serializer.validated_data["url"])
            webhook.paused_until = None  # that of the address before
        return self._respond(serializer.save())

    @extend_schema(
        operation_id="delete_webhook",
        parameters=[conditions.IF_UNCHANGED],
        responses={204: None} | conditions.CHANGED_RESPONSES,
    )
    @transaction.atomic
    def delete(self, request: Request, webhook_id: UUID) -> Response:
        """Delete the webhook and the record of its deliveries."""
        webhook = _get_owned_webhook(request, webhook_id, is_locked=True)
        conditions.check_entity_tag(request, self.get_serializer(webhook).data)
        refuse_if_kept(webhook.owner_id)
        webhook.delete()
        return Response(status=204)

    def _respond(self, webhook: Webhook) -> Response:
        representation = self.get_serializer(webhook).data
        return Response(representation, headers=conditions.build_entity_headers(representation))


class WebhookDeliveryListView(GenericAPIView[WebhookDelivery]):
    """The deliveries of a webhook."""

    serializer_class = DeliverySerializer

    @extend_schema(operation_id="list_webhook_deliveries", responses=DeliverySerializer(many=True))
    def get(self, request: Request, webhook_id: UUID) -> Response:
        """Return a page of deliveries, newest first."""
        webhook = _get_owned_webhook(request, webhook_id)
        rows = WebhookDelivery.objects.filter(webhook=webhook).order_by("-created_at", "-id")
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(self.get_serializer(page, many=True).data)


def _get_owned_webhook(request: Request, webhook_id: UUID, *, is_locked: bool = False) -> Webhook:
    rows = Webhook.objects.filter(owner_id=request.user.pk)
    return get_object_or_404(rows.select_for_update() if is_locked else rows, pk=webhook_id)


def _check_host(others: QuerySet[Webhook], text: str) -> None:
    """Refuse an address of a host that gets much already. Raises the 400 problem."""
    hosts = [httpx2.URL(url).host for url in others.values_list("url", flat=True)]
    if hosts.count(httpx2.URL(text).host) >= MAX_WEBHOOKS_A_HOST:
        raise InvalidFieldError(
            "url", f"There are already {MAX_WEBHOOKS_A_HOST} addresses of this host, the most."
        )
