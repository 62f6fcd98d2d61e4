"""The conversation, for operators: what is stored, and what the model sees of it. Originals can be read, not changed."""

import json
from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from chatcore.context import revisions
from chatcore.events import webhooks
from chatcore.models import (
    Attachment,
    ContextRevision,
    Message,
    Session,
    Turn,
    Webhook,
    WebhookDelivery,
)

EXCERPT_CHARS = 120


class ReadOnlyAdmin(admin.ModelAdmin):
    """Rows that only the program writes."""

    list_per_page = 50
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


@admin.register(Session)
class SessionAdmin(admin.ModelAdmin):
    list_display = (
        "__str__",
        "owner",
        "model",
        "message_count",
        "context_version",
        "compact_boundary_seq",
        "updated_at",
    )
    list_filter = ("archived", "pinned", "auto_compact", "updated_at")
    list_select_related = ("owner", "model__provider")
    list_per_page = 50
    show_full_result_count = False
    search_fields = ("=id", "title", "owner__username")
    actions = ("clear_summary",)
    readonly_fields = (
        "owner",
        "related",
        "compacted_summary",
        "compact_boundary_seq",
        "compact_boundary_timestamp",
        "context_version",
        "message_count",
        "created_at",
        "updated_at",
    )
    fieldsets = (
        (None, {"fields": ("title", "owner", "model", "system_prompt", "related")}),
        (
            "Context",
            {
                "fields": (
                    "compacted_summary",
                    "compact_boundary_seq",
                    "compact_boundary_timestamp",
                    "context_version",
                ),
                "description": "What the model sees instead of the messages before the boundary.",
            },
        ),
        (
            "Options",
            {"fields": ("policy", "auto_compact", "tools", "params", "pinned", "archived")},
        ),
        ("Times", {"fields": ("message_count", "created_at", "updated_at")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Session]:
        return super().get_queryset(request).select_related("owner", "model__provider")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    @admin.display(description="Look into")
    def related(self, session: Session) -> SafeString:
        """Links to the lists of the session's rows; a long conversation does not fit below a form."""
        changelists = (("messages", "message"), ("turns", "turn"), ("revisions", "contextrevision"))
        links = [
            (reverse(f"admin:chatcore_{model}_changelist"), session.pk, label)
            for label, model in changelists
        ]
        return format_html_join(" · ", '<a href="{}?session__id__exact={}">{}</a>', links)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Count what goes with a session instead of listing each message."""
        sessions = list(objs)
        counts = {
            "sessions": len(sessions),
            "messages": Message.objects.filter(session__in=sessions).count(),
        }
        missing_permissions = (
            set() if self.has_delete_permission(request) else {self.opts.verbose_name}
        )
        return [str(session) for session in sessions], counts, missing_permissions, []

    @admin.action(description="Clear summary: send the full history again", permissions=["change"])
    def clear_summary(self, request: HttpRequest, queryset: QuerySet[Session]) -> None:
        """Reset the context of each selected session; its revisions stay."""
        compacted_sessions = list(
            queryset.exclude(compacted_summary=None, compact_boundary_seq=None)
        )
        for session in compacted_sessions:
            revisions.reset_context(session.pk)
        self.message_user(
            request, f"{len(compacted_sessions)} sessions send their full history again."
        )


class AttachmentInline(admin.TabularInline):
    """Names and sizes; the bytes stay where they are."""

    model = Attachment
    fields = readonly_fields = ("name", "media_type", "size")
    extra = 0
    can_delete = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Attachment]:
        return super().get_queryset(request).defer("data", "text")

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


@admin.register(Message)
class MessageAdmin(ReadOnlyAdmin):
    list_display = ("seq", "session", "role", "excerpt", "status", "tokens", "created_at")
    list_filter = ("role", "status", "is_error", "created_at")
    list_select_related = ("session",)
    search_fields = ("content",)
    ordering = ("-id",)
    inlines = (AttachmentInline,)
    fields = (
        ("session", "seq", "role", "status"),
        "words",
        "thoughts",
        "calls",
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
        rows = super().get_queryset(request).annotate(head=Left("content", EXCERPT_CHARS + 1))
        return rows.defer("content", "reasoning", "tool_calls", "provider_data")

    @admin.display(description="Text")
    def excerpt(self, message: Any) -> SafeString:
        return _render_excerpt(message.head)

    @admin.display(description="Tokens in / out")
    def tokens(self, message: Message) -> str:
        counts = (message.token_count_input, message.token_count_output)
        return " / ".join("–" if count is None else f"{count:,}" for count in counts)

    @admin.display(description="Text")
    def words(self, message: Message) -> SafeString:
        return _render_preformatted(message.content)

    @admin.display(description="Reasoning")
    def thoughts(self, message: Message) -> SafeString:
        return _render_preformatted(message.reasoning)

    @admin.display(description="Tool calls")
    def calls(self, message: Message) -> SafeString:
        return _render_preformatted(
            json.dumps(message.tool_calls, indent=2, ensure_ascii=False)
            if message.tool_calls
            else ""
        )


@admin.register(Turn)
class TurnAdmin(ReadOnlyAdmin):
    list_display = ("id", "session", "status", "started_at", "finished_at", "lease_until")
    list_filter = ("status", "started_at")
    list_select_related = ("session",)
    ordering = ("-started_at",)


@admin.register(ContextRevision)
class RevisionAdmin(ReadOnlyAdmin):
    list_display = ("version", "session", "source", "boundary_seq", "excerpt", "created_at")
    list_filter = ("source", "created_at")
    list_select_related = ("session",)
    ordering = ("-id",)
    fields = (
        ("session", "version", "source", "restores"),
        ("boundary_seq", "boundary_timestamp"),
        "words",
        ("run", "created_at"),
    )

    @admin.display(description="Summary")
    def excerpt(self, revision: ContextRevision) -> SafeString:
        return _render_excerpt(revision.summary or "")

    @admin.display(description="Summary")
    def words(self, revision: ContextRevision) -> SafeString:
        return _render_preformatted(revision.summary or "")


@admin.register(Webhook)
class WebhookAdmin(admin.ModelAdmin):
    list_display = ("url", "owner", "is_active", "created_at")
    list_filter = ("is_active",)
    list_select_related = ("owner",)
    fields = ("url", "owner", "events", "is_active", "created_at")
    readonly_fields = ("owner", "created_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Made over the API, which shows the secret once."""
        return False


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnlyAdmin):
    list_display = (
        "event",
        "webhook",
        "status",
        "attempts",
        "response_status",
        "error",
        "created_at",
        "delivered_at",
    )
    list_filter = ("status", "event", "created_at")
    list_select_related = ("webhook",)
    actions = ("send_again",)

    @admin.action(description="Send again", permissions=["view"])
    def send_again(self, request: HttpRequest, deliveries: QuerySet[WebhookDelivery]) -> None:
        self.message_user(request, f"{webhooks.retry_deliveries(deliveries)} will be sent again.")


def _render_excerpt(text: str) -> SafeString:
    """The beginning, escaped, in a column wide enough to be read."""
    return format_html(
        '<div style="min-width: 20em">{}</div>', Truncator(text).chars(EXCERPT_CHARS)
    )


def _render_preformatted(text: str) -> SafeString:
    """Escaped, with its own line breaks."""
    return format_html('<div style="white-space: pre-wrap; max-width: 60em">{}</div>', text or "–")
