"""The admin page of messages. It shows the original texts and changes none."""

import json
from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest
from django.utils.safestring import SafeString

from chatcore.admin.base import ChatcoreInline, ReadOnlyAdmin, read_number
from chatcore.admin.texts import EXCERPT_CHARS, SESSION_TEXTS, render_excerpt, render_preformatted
from chatcore.models import Attachment, Message
from chatcore.search.query import MAX_HITS, search_messages


class AttachmentInline(ChatcoreInline):
    """The files of a message: names and sizes, without their bytes."""

    model = Attachment
    fields = readonly_fields = ("name", "media_type", "size")
    extra = 0
    can_delete = False
    is_content = True  # a file's name says what is in it

    def get_queryset(self, request: HttpRequest) -> QuerySet[Attachment]:
        return super().get_queryset(request).defer("data", "text")

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


@admin.register(Message)
class MessageAdmin(ReadOnlyAdmin):
    content_fields = (
        "content",
        "excerpt",
        "full_text",
        "reasoning_text",
        "tool_call_list",
    )
    list_display = ("seq", "session", "role", "excerpt", "status", "tokens", "created_at")
    narrow_filters = ("role", "status", "is_error")
    narrow_ordering = ("-seq",)
    sortable_by = ()
    list_select_related = ("session",)
    list_defer = SESSION_TEXTS
    search_fields = ("content",)
    search_help_text = (
        "Words of a session's messages: open the list from the session. Or a session's number."
    )
    ordering = ("-id",)
    inlines = (AttachmentInline,)
    fields = (
        ("session", "seq", "role", "status"),
        ("finish_reason", "finish_detail"),
        "full_text",
        "reasoning_text",
        "tool_call_list",
        ("tool_name", "tool_call_id", "is_error"),
        (
            "token_count_input",
            "token_count_output",
            "token_count_cache_read",
            "token_count_cache_write",
            "token_estimate",
        ),
        ("original_chars", "context_version", "pinned"),
        ("model", "created_at"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Message]:
        # A list shows only the beginnings of texts, so the database sends no more than these.
        rows = super().get_queryset(request).annotate(head=Left("content", EXCERPT_CHARS + 1))
        return rows.defer("content", "reasoning", "tool_calls", "provider_data")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Message], search_term: str
    ) -> tuple[QuerySet[Message], bool]:
        """Search a session as its owner would; reading all messages for a word takes too long."""
        if not search_term:
            return queryset, False
        number = read_number(search_term)
        if number is not None:
            return queryset.filter(session=number), False
        session_id = read_number(request.GET.get("session__id__exact", ""))
        if session_id is None or not self.get_search_fields(request):
            return queryset.none(), False
        hits = search_messages(session_id, search_term, MAX_HITS)
        return queryset.filter(pk__in=[hit.message_id for hit in hits]), False

    @admin.display(description="Text")
    def excerpt(self, message: Any) -> SafeString:  # annotated
        return render_excerpt(message.head)

    @admin.display(description="Tokens in / out")
    def tokens(self, message: Message) -> str:
        counts = (message.token_count_input, message.token_count_output)
        return " / ".join("–" if count is None else f"{count:,}" for count in counts)

    @admin.display(description="Text")
    def full_text(self, message: Message) -> SafeString:
        return render_preformatted(message.content)

    @admin.display(description="Reasoning")
    def reasoning_text(self, message: Message) -> SafeString:
        return render_preformatted(message.reasoning)

    @admin.display(description="Tool calls")
    def tool_call_list(self, message: Message) -> SafeString:
        if not message.tool_calls:
            return render_preformatted("")
        return render_preformatted(json.dumps(message.tool_calls, indent=2, ensure_ascii=False))
