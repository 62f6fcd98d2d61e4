"""The admin page of responses: what a client of `/v1/responses` reads, and where it is stored."""

import json
from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from chatcore.admin.base import ReadOnlyAdmin
from chatcore.admin.texts import SESSION_TEXTS, render_preformatted
from chatcore.contrib.compat.models import StoredResponse
from chatcore.contrib.compat.responses import resource


@admin.register(StoredResponse)
class StoredResponseAdmin(ReadOnlyAdmin):
    sidebar = ("conversations", "archive")
    content_fields = ("session_link", "system_text", "body")
    list_display = ("__str__", "session", "turn_status", "has_compaction", "created_at")
    list_filter = ("created_at",)
    narrow_filters = ("turn__status",)
    list_select_related = ("session", "turn")
    list_defer = ("request", "system_texts", *SESSION_TEXTS)
    sortable_by = ()
    search_fields = ("=id", "=session__id")
    ordering = ("-created_at",)
    fields = (
        ("name", "created_at"),
        ("session_link", "turn_link", "previous_link"),
        ("after_seq", "input_seq", "after_event_seq"),
        "has_compaction",
        "system_text",
        "body",
    )

    @admin.display(description="Response")
    def name(self, record: StoredResponse) -> str:
        return str(record)

    @admin.display(description="Turn", ordering="turn__status")
    def turn_status(self, record: StoredResponse) -> str:
        return record.turn.status if record.turn else "–"

    @admin.display(description="Compacted", boolean=True)
    def has_compaction(self, record: StoredResponse) -> bool:
        return record.compaction is not None

    @admin.display(description="Session")
    def session_link(self, record: StoredResponse) -> SafeString:
        return _link(record.session)

    @admin.display(description="Turn")
    def turn_link(self, record: StoredResponse) -> SafeString:
        return _link(record.turn)

    @admin.display(description="Continues")
    def previous_link(self, record: StoredResponse) -> SafeString:
        return _link(record.previous)

    @admin.display(description="System texts")
    def system_text(self, record: StoredResponse) -> SafeString:
        return render_preformatted("\n\n".join(record.system_texts))

    @admin.display(description="As its client reads it")
    def body(self, record: StoredResponse) -> SafeString:
        body = resource.load_resource(record)
        return render_preformatted(json.dumps(body, indent=2, ensure_ascii=False))


def _link(row: Model | None) -> SafeString:
    """Link to the page of a row."""
    if row is None:
        return SafeString("–")
    options: Any = row._meta
    address = reverse(f"admin:{options.app_label}_{options.model_name}_change", args=[row.pk])
    return format_html('<a href="{}">{}</a>', address, row)
