"""Read-only links to what a chat holds: list, make, revoke."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet
from django.http import Http404
from django.urls import reverse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.api import idempotency
from chatcore.api.ownership import get_owned_session
from chatcore.base.rest.auth import CHAT, get_scope
from chatcore.base.rest.fields import StrictBooleanField, StrictIntegerField, StrictSerializer
from chatcore.base.rest.problems import Problem
from chatcore.contrib.sharing.links import (
    MAX_DAYS,
    SharingRefused,
    create_share,
    list_shares,
    revoke_shares,
)
from chatcore.contrib.sharing.models import Share


class NewShareSerializer(StrictSerializer):
    """What a link shows besides the messages, and how long it works."""

    with_tools = StrictBooleanField(default=False, help_text="Tool calls and their results.")
    with_files = StrictBooleanField(default=False, help_text="The files that were attached.")
    expires_in_days = StrictIntegerField(
        min_value=1,
        max_value=MAX_DAYS,
        allow_null=True,
        default=None,
        help_text="Null: until it is revoked.",
    )


class ShareSerializer(serializers.ModelSerializer[Share]):
    """A link to what a session held when the link was made."""

    session = serializers.UUIDField(source="session_id")

    class Meta:
        model = Share
        fields = (
            "id",
            "session",
            "title",
            "last_seq",
            "with_tools",
            "with_files",
            "created_at",
            "expires_at",
        )
        read_only_fields = fields


class CreatedShareSerializer(ShareSerializer):
    """A new link. `url` is returned only now; without a public URL it is a path."""

    url = serializers.CharField()

    class Meta(ShareSerializer.Meta):
        fields = (*ShareSerializer.Meta.fields, "url")  # type: ignore[assignment]


class ShareListView(GenericAPIView[Share]):
    """The user's links."""

    serializer_class = ShareSerializer

    def get_queryset(self) -> QuerySet[Share]:
        """Return the user's links that are not revoked, newest first."""
        return list_shares(self.request.user.pk)

    @extend_schema(operation_id="list_shares", responses=ShareSerializer(many=True))
    def get(self, request: Request) -> Response:
        """Return a page of links, without their secret part."""
        page = self.paginate_queryset(self.get_queryset())
        return self.get_paginated_response(ShareSerializer(page, many=True).data)


class ShareDetailView(GenericAPIView[Share]):
    """One link."""

    serializer_class = ShareSerializer

    @extend_schema(operation_id="revoke_share", request=None, responses={204: None})
    def delete(self, request: Request, share_id: UUID) -> Response:
        """Revoke the link: whoever opens it finds nothing."""
        if not revoke_shares(request.user.pk, pk=share_id):
            raise Http404
        return Response(status=204)


class SessionShareListView(GenericAPIView[Share]):
    """The links to a session."""

    serializer_class = ShareSerializer

    @extend_schema(
        operation_id="create_share",
        request=NewShareSerializer,
        parameters=idempotency.PARAMETERS,
        responses={
            201: CreatedShareSerializer,
            409: OpenApiResponse(description="Sharing is off, or there is nothing to share."),
        }
        | {code: body for code, body in idempotency.RESPONSES.items() if code != 409},
    )
    @idempotency.repeatable()
    def post(self, request: Request, session_id: UUID) -> Response:
        """Make a link under which anybody reads the session as it is now, and nothing later."""
        if get_scope(request) == CHAT:
            raise PermissionDenied(
                "The token's scope is chat: it makes no public links, which would outlive it."
            )
        session = get_owned_session(request, session_id)
        serializer = NewShareSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        choices: dict[str, Any] = dict(serializer.validated_data)
        days = choices.pop("expires_in_days")
        try:
            share = create_share(session, **choices, days=days)
        except SharingRefused as refusal:
            raise Problem(409, "sharing_refused", str(refusal)) from None
        url = f"{settings.PUBLIC_URL}{reverse('shared_chat', args=[share.token])}"
        return Response({**ShareSerializer(share).data, "url": url}, status=201)
