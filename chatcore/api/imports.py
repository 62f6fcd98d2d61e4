"""Many chats at once: what people export from ChatGPT and Claude."""

import io
from collections.abc import Mapping
from functools import partial
from typing import IO, Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore.api.import_places import OneImportAtATime
from chatcore.models import Session
from chatcore.rest import limits
from chatcore.rest.parsers import SessionBodyParser, hold_large_body, parse_large_json
from chatcore.rest.problems import TooLargeProblem
from chatcore.transfer import importer, other_products, reader

MAX_CHATS = 2_000


class ArchiveParser(BaseParser):
    """A parser of ZIP files, up to the size of an import."""

    media_type = "application/zip"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the parsed `conversations.json`. Raises TooLargeProblem and InvalidImport."""
        with hold_large_body((parser_context or {})["request"].user.pk):
            return self._read(stream)

    def _read(self, stream: IO[Any]) -> Any:
        content = stream.read(limits.IMPORT_BODY_BYTES + 1)
        if len(content) > limits.IMPORT_BODY_BYTES:
            megabytes = limits.IMPORT_BODY_BYTES // limits.MB
            raise TooLargeProblem(f"A request body may have at most {megabytes} MB.")
        parse = partial(parse_large_json, max_values=limits.IMPORT_VALUES)
        return other_products.read_archive(io.BytesIO(content), parse)


class ImportedChatSerializer(serializers.ModelSerializer[Session]):
    """A chat that was imported."""

    class Meta:
        model = Session
        fields = ("id", "title", "message_count")
        read_only_fields = fields


class RefusedChatSerializer(serializers.Serializer[Any]):
    """A chat that could not be imported."""

    title = serializers.CharField()
    detail = serializers.CharField()


class ImportedChatsSerializer(serializers.Serializer[Any]):
    """What became of each chat."""

    sessions = ImportedChatSerializer(many=True)
    refusals = RefusedChatSerializer(many=True)


class ImportListView(OneImportAtATime, APIView):
    """Chats of another product."""

    parser_classes = (SessionBodyParser, ArchiveParser)

    @extend_schema(
        operation_id="import_chats",
        request={"application/json": OpenApiTypes.ANY, "application/zip": OpenApiTypes.BINARY},
        responses={201: ImportedChatsSerializer},
    )
    def post(self, request: Request) -> Response:
        """Create a session from each chat of an export of ChatGPT or Claude.

        Send its `conversations.json`, or the whole ZIP file. Each chat is imported whole or not at
        all; one that cannot be is named with the reason, and the others are imported.
        """
        chats = list(other_products.convert_chats(request.data))
        if len(chats) > MAX_CHATS:
            raise TooLargeProblem(f"An import has at most {MAX_CHATS:,} chats.")
        sessions: list[Session] = []
        refusals = []
        for chat in chats:
            try:
                sessions.append(importer.import_session(request.user, chat))
            except reader.InvalidImport as error:
                title = chat["session"]["title"]
                refusals.append({"title": title, "detail": str(error)})
        body = {"sessions": sessions, "refusals": refusals}
        return Response(ImportedChatsSerializer(body).data, status=201)
