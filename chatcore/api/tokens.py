"""API tokens: list, create, change, revoke."""

from datetime import timedelta

from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema
from knox.models import AuthToken
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.accounts.tokens import (
    MAX_NAME_CHARS,
    create_token,
    get_default_expiry,
    keep_conversations,
    list_tokens,
    revoke_tokens,
)
from chatcore.api import idempotency
from chatcore.base.rest.auth import ALL, PREFIXES, find_scope
from chatcore.base.rest.fields import (
    StrictBooleanField,
    StrictIntegerField,
    StrictSerializer,
    StrictTextField,
)
from chatcore.base.truncation import clean_text

KEEPING_HELP = (
    "Whether conversations are stored that its programs name by themselves, or continue by their"
    " whole history."
)


class NewTokenSerializer(StrictSerializer):
    """What a new token is for, and how long it is valid."""

    name = StrictTextField(
        max_length=MAX_NAME_CHARS, allow_blank=True, required=False, help_text="What uses it."
    )
    expires_in_days = StrictIntegerField(
        min_value=1,
        max_value=3650,
        allow_null=True,
        required=False,
        help_text="Null: until it is revoked. Without it: as the server is set, usually 90 days.",
    )

    scope = serializers.ChoiceField(
        choices=list(PREFIXES),
        default=ALL,
        help_text=(
            "read: only reads, all that its user has, the export too. chat: nothing that would"
            " outlive it, as tokens and MCP servers. all: everything."
        ),
    )
    keeps_conversations = StrictBooleanField(default=True, help_text=KEEPING_HELP)


class TokenChangeSerializer(StrictSerializer):
    """What may be changed of a token. It holds for the requests that begin after it."""

    keeps_conversations = StrictBooleanField(required=False, help_text=KEEPING_HELP)


class TokenSerializer(serializers.Serializer[object]):
    """An API token. Only its first characters are stored in readable form."""

    id = serializers.CharField(source="token_key", help_text="The token's first characters.")
    name = serializers.SerializerMethodField(help_text="Empty: it has none.")
    scope = serializers.SerializerMethodField(help_text="What it may do: read, chat or all.")
    keeps_conversations = serializers.BooleanField(help_text=KEEPING_HELP)
    created_at = serializers.DateTimeField(source="created")
    expires_at = serializers.DateTimeField(source="expiry", allow_null=True)
    last_used_at = serializers.DateTimeField(
        source="used_at", allow_null=True, help_text="Right to a minute; null: never."
    )

    def get_scope(self, token: AuthToken) -> str:
        """Return the token's scope."""
        return find_scope(token.token_key)

    def get_name(self, token: AuthToken) -> str:
        """Return the token's name."""
        return token.name or ""


class CreatedTokenSerializer(TokenSerializer):
    """A new token. `token` is shown only this once."""

    token = serializers.CharField()


class TokenListView(GenericAPIView[AuthToken]):
    """The user's tokens."""

    serializer_class = TokenSerializer

    def get_queryset(self) -> QuerySet[AuthToken]:
        """Return the user's tokens, newest first."""
        return list_tokens(self.request.user)

    @extend_schema(operation_id="list_tokens", responses=TokenSerializer(many=True))
    def get(self, request: Request) -> Response:
        """Return a page of tokens, without their secret part."""
        page = self.paginate_queryset(self.get_queryset())
        return self.get_paginated_response(TokenSerializer(page, many=True).data)

    @extend_schema(
        operation_id="create_token",
        request=NewTokenSerializer,
        parameters=idempotency.PARAMETERS,
        responses={201: CreatedTokenSerializer} | idempotency.RESPONSES,
    )
    @idempotency.repeatable()
    def post(self, request: Request) -> Response:
        """Create a token. Only this response shows it."""
        serializer = NewTokenSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        expiry = get_default_expiry()
        if "expires_in_days" in serializer.validated_data:
            days = serializer.validated_data["expires_in_days"]
            expiry = timedelta(days=days) if days else None
        name = clean_text(serializer.validated_data.get("name", "")).strip()
        scope = serializer.validated_data["scope"]
        row, token = create_token(
            request.user,
            name=name,
            expiry=expiry,
            scope=scope,
            keeps_conversations=serializer.validated_data["keeps_conversations"],
        )
        return Response({**TokenSerializer(row).data, "token": token}, status=201)

    @extend_schema(operation_id="revoke_all_tokens", request=None, responses={204: None})
    def delete(self, request: Request) -> Response:
        """Revoke all of the user's tokens, including the one that this request uses."""
        revoke_tokens(request.user)
        return Response(status=204)


class TokenDetailView(GenericAPIView[AuthToken]):
    """One token."""

    serializer_class = TokenSerializer

    @extend_schema(operation_id="update_token", request=TokenChangeSerializer)
    def patch(self, request: Request, token_id: str) -> Response:
        """Change the token that begins with these characters."""
        serializer = TokenChangeSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        row = list_tokens(request.user).filter(token_key=clean_text(token_id)).first()
        if row and "keeps_conversations" in serializer.validated_data:
            is_kept = serializer.validated_data["keeps_conversations"]
            row = keep_conversations(request.user, is_kept, pk=row.pk)
        if row is None:
            raise Http404
        return Response(TokenSerializer(row).data)

    @extend_schema(operation_id="revoke_token", request=None, responses={204: None})
    def delete(self, request: Request, token_id: str) -> Response:
        """Revoke the token that begins with these characters."""
        if not revoke_tokens(request.user, token_key=clean_text(token_id)):
            raise Http404
        return Response(status=204)
