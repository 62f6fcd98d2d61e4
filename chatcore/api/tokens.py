"""API tokens: list, make, revoke."""

from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema
from knox.models import AuthToken
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.api.serializers import CreatedTokenSerializer, NewTokenSerializer, TokenSerializer
from chatcore.sessions.truncation import clean_text


class TokenListView(GenericAPIView[Any]):
    """The asker's tokens."""

    serializer_class = TokenSerializer

    def get_queryset(self) -> QuerySet[Any]:
        """The newest first."""
        return AuthToken.objects.filter(user=self.request.user).order_by("-created", "-digest")

    @extend_schema(operation_id="list_tokens", responses=TokenSerializer(many=True))
    def get(self, request: Request) -> Response:
        """A page of tokens, without their secret part."""
        return self.get_paginated_response(
            TokenSerializer(self.paginate_queryset(self.get_queryset()), many=True).data
        )

    @extend_schema(
        operation_id="create_token",
        request=NewTokenSerializer,
        responses={201: CreatedTokenSerializer},
    )
    def post(self, request: Request) -> Response:
        """Make a token. It is shown in this answer and never again."""
        serializer = NewTokenSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        days = serializer.validated_data.get("expires_in_days")
        row, token = AuthToken.objects.create(
            request.user, expiry=timedelta(days=days) if days else None
        )
        return Response({**TokenSerializer(row).data, "token": token}, status=201)

    @extend_schema(operation_id="revoke_all_tokens", request=None, responses={204: None})
    def delete(self, request: Request) -> Response:
        """Revoke every token of the asker's, the one in use too."""
        self.get_queryset().delete()
        return Response(status=204)


class TokenDetailView(GenericAPIView[Any]):
    """One token."""

    serializer_class = TokenSerializer

    @extend_schema(operation_id="revoke_token", request=None, responses={204: None})
    def delete(self, request: Request, token_id: str) -> Response:
        """Revoke one token by its first characters."""
        deleted_count, _ = AuthToken.objects.filter(
            user=request.user, token_key=clean_text(token_id)
        ).delete()
        if not deleted_count:
            raise Http404
        return Response(status=204)
