"""Prompts in the REST API."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.api import idempotency
from chatcore.api.serializers.projects import ProjectField
from chatcore.base.rest import conditions
from chatcore.base.rest.fields import StrictSerializer, StrictTextField
from chatcore.base.rest.problems import InvalidFieldError
from chatcore.contrib.prompts.changes import (
    NameTaken,
    TextsTooLong,
    TooManyPrompts,
    delete_prompt,
    save_prompt,
)
from chatcore.contrib.prompts.models import (
    MAX_NAME_CHARS,
    MAX_PROMPTS,
    MAX_TEXT_CHARS,
    MAX_TOTAL_CHARS,
    NAME,
    Prompt,
    lower_name,
)


class PromptSerializer(StrictSerializer, serializers.ModelSerializer[Prompt]):
    """A text that `/name` puts into the composer; with a project, in its chats alone."""

    name = StrictTextField(min_length=1, max_length=MAX_NAME_CHARS, validators=[NAME])
    text = StrictTextField(min_length=1, max_length=MAX_TEXT_CHARS)
    project = ProjectField(allow_null=True, required=False)

    class Meta:
        model = Prompt
        fields = ("id", "name", "text", "project", "created_at")
        read_only_fields = ("id", "created_at")
        validators: list[object] = []  # a name that is taken is said by the field

    def validate_name(self, name: str) -> str:
        """Return the name in lower case."""
        return lower_name(name)


class PromptListView(GenericAPIView[Prompt]):
    """The user's prompts."""

    serializer_class = PromptSerializer

    def get_queryset(self) -> QuerySet[Prompt]:
        """Return the user's prompts by name."""
        return Prompt.objects.filter(owner_id=self.request.user.pk)

    @extend_schema(operation_id="list_prompts", responses=PromptSerializer(many=True))
    def get(self, request: Request) -> Response:
        """Return a page of prompts."""
        page = self.paginate_queryset(self.get_queryset())
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    @extend_schema(
        operation_id="create_prompt",
        parameters=[*idempotency.PARAMETERS, conditions.ENTITY_TAG],
        responses={201: PromptSerializer} | idempotency.RESPONSES,
    )
    @idempotency.repeatable()
    def post(self, request: Request) -> Response:
        """Store a prompt."""
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        owner_id: Any = request.user.pk
        prompt = _save(Prompt(owner_id=owner_id), serializer.validated_data)
        representation = self.get_serializer(prompt).data
        return Response(
            representation, status=201, headers=conditions.build_entity_headers(representation)
        )


@conditions.answers_unchanged
class PromptDetailView(GenericAPIView[Prompt]):
    """One prompt."""

    serializer_class = PromptSerializer

    @extend_schema(operation_id="read_prompt", parameters=[conditions.ENTITY_TAG])
    def get(self, request: Request, prompt_id: UUID) -> Response:
        """Return the prompt."""
        return self._respond(_get_owned_prompt(request, prompt_id))

    @extend_schema(
        operation_id="change_prompt",
        parameters=[conditions.IF_UNCHANGED, conditions.ENTITY_TAG],
        responses={200: PromptSerializer} | conditions.CHANGED_RESPONSES,
    )
    def patch(self, request: Request, prompt_id: UUID) -> Response:
        """Change the given fields only."""
        prompt = _get_owned_prompt(request, prompt_id)
        serializer = self.get_serializer(prompt, data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        conditions.check_entity_tag(request, self.get_serializer(prompt).data)
        return self._respond(_save(prompt, serializer.validated_data))

    @extend_schema(
        operation_id="delete_prompt",
        parameters=[conditions.IF_UNCHANGED],
        responses={204: None} | conditions.CHANGED_RESPONSES,
    )
    def delete(self, request: Request, prompt_id: UUID) -> Response:
        """Delete the prompt."""
        prompt = _get_owned_prompt(request, prompt_id)
        conditions.check_entity_tag(request, self.get_serializer(prompt).data)
        delete_prompt(prompt)
        return Response(status=204)

    def _respond(self, prompt: Prompt) -> Response:
        representation = self.get_serializer(prompt).data
        return Response(representation, headers=conditions.build_entity_headers(representation))


def _save(prompt: Prompt, values: Mapping[str, object]) -> Prompt:
    """Store the values. Raises the 400 problem."""
    try:
        return save_prompt(prompt, values)
    except NameTaken:
        raise InvalidFieldError("name", "Another prompt has this name.") from None
    except TooManyPrompts:
        raise InvalidFieldError("name", f"There are already {MAX_PROMPTS}, the most.") from None
    except TextsTooLong:
        detail = f"All prompts together have at most {MAX_TOTAL_CHARS:,} characters."
        raise InvalidFieldError("text", detail) from None


def _get_owned_prompt(request: Request, prompt_id: UUID) -> Prompt:
    return get_object_or_404(Prompt.objects.filter(owner_id=request.user.pk), pk=prompt_id)
