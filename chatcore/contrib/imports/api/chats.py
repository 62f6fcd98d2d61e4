"""Many chats at once: the exports of other products, and Chatcore's own archive."""

import io
from collections.abc import Mapping
from typing import IO, Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.parsers import BaseParser
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore.api.import_places import OneImportAtATime
from chatcore.base.rest import limits
from chatcore.base.rest.auth import SignedInRequest
from chatcore.base.rest.parsers import (
    TooManyValues,
    hold_large_body,
    name_sender,
    require_few_values,
)
from chatcore.base.rest.problems import TooLargeProblem
from chatcore.contrib.imports import runs as import_runs
from chatcore.contrib.imports.chat_storing import count_projects
from chatcore.contrib.imports.export_files import UnreadableExport, open_export
from chatcore.contrib.imports.models import Import
from chatcore.models import Session
from chatcore.transfer import reader

DEFAULT_NAME = "export.json"
NAME_PARAMETER = OpenApiParameter(
    "name", str, description="The file's name, which in some exports is a chat's title."
)


class ExportParser(BaseParser):
    """A parser that leaves a file as it is, up to the size of an import."""

    media_type = "*/*"

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, object] | None = None,
    ) -> Any:
        """Return the bytes of the body. Raises TooLargeProblem."""
        with hold_large_body(name_sender((parser_context or {})["request"])):
            content = stream.read(limits.IMPORT_BODY_BYTES + 1)
        if len(content) > limits.IMPORT_BODY_BYTES:
            megabytes = limits.IMPORT_BODY_BYTES // limits.MB
            raise TooLargeProblem(
                f"A request body may have at most {megabytes} MB."
                " Larger exports come in by `POST /imports/uploads`, or by `chatcore import`."
            )
        if media_type == "application/json":
            try:
                require_few_values(content, limits.IMPORT_VALUES)
            except TooManyValues as error:
                raise TooLargeProblem(str(error)) from None
        return content


class ImportedChatSerializer(serializers.ModelSerializer[Session]):
    """A chat that was imported."""

    class Meta:
        model = Session
        fields = ("id", "title", "message_count")
        read_only_fields = fields


class RefusedChatSerializer(serializers.Serializer[dict[str, str]]):
    """A chat that did not come in, or not whole, with the reasons in words."""

    title = serializers.CharField()
    detail = serializers.CharField()


class ImportedChatsSerializer(serializers.Serializer[dict[str, object]]):
    """What became of each chat."""

    id = serializers.UUIDField(help_text="The import's.")
    came = serializers.IntegerField()
    partly = serializers.IntegerField()
    refused = serializers.IntegerField()
    known = serializers.IntegerField(help_text="Those that were here already.")
    projects = serializers.IntegerField(help_text="Projects that have something new.")
    sessions = ImportedChatSerializer(many=True)
    incomplete = RefusedChatSerializer(many=True)
    refusals = RefusedChatSerializer(many=True)


class ImportListView(OneImportAtATime, APIView):
    """Chats of another product."""

    parser_classes = (ExportParser,)

    @extend_schema(
        operation_id="import_chats",
        parameters=[NAME_PARAMETER],
        request={
            "application/json": OpenApiTypes.ANY,
            "application/zip": OpenApiTypes.BINARY,
            "application/octet-stream": OpenApiTypes.BINARY,
        },
        responses={201: ImportedChatsSerializer},
    )
    def post(self, request: SignedInRequest) -> Response:
        """Create a session from each chat of an export, and wait for all of them.

        Send a file as ChatGPT, Claude, Gemini and the others of docs/import.md export it, or the
        archive of Chatcore. A chat that cannot be imported is named with the reason, and the
        others are. The same export again adds only what is new.
        """
        content: Any = request.data or b""
        name = request.query_params.get("name", "")[-200:] or DEFAULT_NAME
        try:
            row = import_runs.import_export(
                request.user, open_export([(name, io.BytesIO(content))])
            )
        except UnreadableExport as error:
            raise reader.InvalidImport("file", str(error)) from None
        has_come = row.came or row.partly or row.known or count_projects(row)
        if not has_come and (reason := _find_odd_reason(row)):
            row.delete()
            raise reader.InvalidImport("file", reason)
        return Response(build_result(row), status=201)


def _find_odd_reason(row: Import) -> str:
    """Return why nothing came in, where that is the file's fault and not that it is empty."""
    reasons = row.problems.values_list("reasons", flat=True)
    return next((words[-1] for words in reasons if words[-1] != import_runs.NOTHING_SAID), "")


def build_result(row: Import) -> dict[str, object]:
    """Return what became of the chats of an import."""
    sessions = Session.objects.filter(imported_as__belongs_to=row).order_by("imported_as__pk")
    problems = row.problems.defer("original").order_by("pk")
    told = [
        (problem.session_id, {"title": problem.title, "detail": " ".join(problem.reasons)})
        for problem in problems
    ]
    body = {
        "id": row.pk,
        "came": row.came,
        "partly": row.partly,
        "refused": row.refused,
        "known": row.known,
        "projects": count_projects(row),
        "sessions": sessions,
        "incomplete": [entry for session_id, entry in told if session_id],
        "refusals": [entry for session_id, entry in told if not session_id],
    }
    return dict(ImportedChatsSerializer(body).data)
