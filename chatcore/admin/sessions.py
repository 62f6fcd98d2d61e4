"""The admin page of sessions: their settings, and the context that replaces old messages."""

import copy
from collections.abc import Iterable, Iterator
from datetime import datetime

from django import forms
from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from chatcore.admin.base import ChatcoreAdmin, DeletedObjects, find_people, is_list, read_number
from chatcore.admin.site import list_own_pages
from chatcore.api.serializers.sessions import SessionSerializer
from chatcore.base.keeping import Kept, refuse_lost_words
from chatcore.context import revisions
from chatcore.models import ContextRevision, Message, Session, Turn
from chatcore.sessions.changes import HELD_FIELDS
from chatcore.sessions.deletion import bring_back, delete_session

CHECKED_FIELDS = ("policy", "tools", "params")

MAX_FOUND = 500  # sessions of a search, by owner and by title each


class SessionForm(forms.ModelForm):
    """Refuses what the API would refuse: it would stop every later turn of the session."""

    class Meta:
        model = Session
        fields = (
            "title",
            "model",
            "system_prompt",
            "policy",
            "auto_compact",
            "tools",
            "params",
            "pinned",
            "archived",
        )

    def clean(self) -> dict[str, object]:
        """Check the fields whose values the database cannot check, also those not edited now."""
        form_data = super().clean() or self.cleaned_data
        try:
            texts = {name: form_data[name] for name in HELD_FIELDS if name in form_data}
            refuse_lost_words(self.instance.owner_id, self.instance, texts)
        except Kept as refusal:
            raise forms.ValidationError(str(refusal)) from None
        session = copy.copy(self.instance)
        session.model = form_data.get("model")
        new_values = {name: form_data[name] for name in CHECKED_FIELDS if name in form_data}
        serializer = SessionSerializer(session, data=new_values, partial=True)
        if not serializer.is_valid():
            for name, detail in serializer.errors.items():
                for text in _list_texts(detail):
                    self.add_error(name if name in self.fields else None, text)
        return form_data


def _list_texts(detail: object) -> Iterator[str]:
    """Yield the texts of an error, with the names of the values that they are about."""
    if isinstance(detail, dict):
        for name, part in detail.items():
            yield from (f"{name}: {text}" for text in _list_texts(part))
    elif isinstance(detail, list):
        for part in detail:
            yield from _list_texts(part)
    else:
        yield str(detail)


@admin.register(Session)
class SessionAdmin(ChatcoreAdmin):
    content_fields = ("title", "system_prompt", "compacted_summary")
    form = SessionForm
    list_display = (
        "__str__",
        "owner",
        "model",
        "message_count",
        "context_version",
        "first_sent",
        "visibility",
        "updated_at",
    )
    list_filter = ("auto_compact", "updated_at")
    list_select_related = ("owner", "model__provider")
    list_defer = ("system_prompt", "compacted_summary", "tools", "params", "metadata")
    sortable_by = ()
    search_fields = ("=id", "title", "owner__username")
    search_help_text = "Words of a title, the beginning of an owner's name, an address, a number."
    actions = ("clear_summary", "bring_back")
    readonly_fields = (
        "owner",
        "links",
        "compacted_summary",
        "first_sent",
        "summarized_until",
        "context_version",
        "message_count",
        "created_at",
        "updated_at",
    )
    fieldsets = (
        (None, {"fields": ("title", "owner", "model", "system_prompt", "links")}),
        (
            "Context",
            {
                "fields": (
                    "compacted_summary",
                    "first_sent",
                    "summarized_until",
                    "context_version",
                ),
                "description": "What the model sees in place of the older messages.",
            },
        ),
        (
            "Options",
            {"fields": ("policy", "auto_compact", "tools", "params", "pinned", "archived")},
        ),
        ("Times", {"fields": ("message_count", "created_at", "updated_at")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Session]:
        """Return all sessions, also those that their owners do not see."""
        rows = Session.all_objects.select_related("owner", "model__provider")
        return rows.defer(*self.list_defer) if is_list(request) else rows

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Session], search_term: str
    ) -> tuple[QuerySet[Session], bool]:
        """Find by number, owner or title; each by its own index, the newest first."""
        if not search_term:
            return queryset, False
        number = read_number(search_term)
        if number is not None:
            return queryset.filter(pk=number), False
        matches = [Q(owner__in=find_people(search_term))]
        if "title" in self.get_search_fields(request):
            matches.append(Q(title__icontains=search_term))
        rows = Session.all_objects.order_by("-updated_at", "-id").values_list("pk", flat=True)
        keys = [key for match in matches for key in rows.filter(match)[:MAX_FOUND]]
        return queryset.filter(pk__in=keys), False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False  # users begin sessions; an empty one of another user would help nobody

    @admin.display(description="First message sent as it is")
    def first_sent(self, session: Session) -> str:
        """Return the number of the first message that no summary stands for."""
        return str(session.compact_boundary_seq or "–")

    @admin.display(description="Summarized until")
    def summarized_until(self, session: Session) -> datetime | None:
        return session.compact_boundary_timestamp

    @admin.display(description="Visibility")
    def visibility(self, session: Session) -> str:
        """Say of a hidden session why nobody sees it."""
        if session.discard_at is None:
            return "visible"
        if session.expired_at is not None:
            return f"over, until {session.discard_at:%Y-%m-%d}"
        return "being written" if session.discard_at > timezone.now() else "being deleted"

    def delete_model(self, request: HttpRequest, obj: Session) -> None:
        """Delete the session as its owner would, which never stops other writers for long."""
        delete_session(obj.pk)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Session]) -> None:
        """Delete the selected sessions one by one."""
        for pk in list(queryset.values_list("pk", flat=True)):
            delete_session(pk)

    @admin.display(description="Look into")
    def links(self, session: Session) -> SafeString:
        """Link to the lists of the session's rows, which may be too long to show below a form."""
        pages = {Message: "messages", Turn: "turns", ContextRevision: "revisions"}
        for page in list_own_pages(self.admin_site, "conversations"):  # of apps
            if hasattr(page.model, "session"):
                pages[page.model] = str(page.opts.verbose_name_plural)
        links = [
            (
                reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"),
                session.pk,
                label,
            )
            for model, label in pages.items()
        ]
        rows = format_html_join(" · ", '<a href="{}?session__id__exact={}">{}</a>', links)
        try:
            timeline = reverse("admin:compaction_session_timeline", args=[session.pk])
        except NoReverseMatch:  # without the app that compacts
            return rows
        return format_html('<a href="{}">timeline</a> · {}', timeline, rows)

    def get_deleted_objects(self, objs: Iterable[Session], request: HttpRequest) -> DeletedObjects:
        """Count the messages that go with the sessions, instead of listing each of them.

        Django's own answer collects every related row, for a long session hundreds of thousands.
        """
        sessions = list(objs)
        counts = {
            "sessions": len(sessions),
            "messages": Message.objects.filter(session__in=sessions).count(),
        }
        titles = [str(session) for session in sessions]
        missing_permissions: set[str] = set()
        if not self.has_delete_permission(request):
            missing_permissions.add(self.opts.verbose_name)
        return titles, counts, missing_permissions, []

    @admin.action(description="Bring back what retention has hidden", permissions=["change"])
    def bring_back(self, request: HttpRequest, queryset: QuerySet[Session]) -> None:
        """Show the selected sessions to their owners again."""
        count = bring_back(list(queryset.values_list("pk", flat=True)))
        self.message_user(request, f"{count} sessions are back.")

    @admin.action(description="Clear summary: send the full history again", permissions=["change"])
    def clear_summary(self, request: HttpRequest, queryset: QuerySet[Session]) -> None:
        """Reset the context of each selected session. Its revisions stay, so it can be rewound."""
        compacted_sessions = list(
            queryset.filter(discard_at=None).exclude(
                compacted_summary=None, compact_boundary_seq=None
            )
        )
        for session in compacted_sessions:
            revisions.reset_context(session.pk)
        count = len(compacted_sessions)
        self.message_user(request, f"{count} sessions send their full history again.")
