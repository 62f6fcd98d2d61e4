"""The admin page of the audit log, to read."""

from typing import Any

from django.apps import apps
from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from chatcore.admin.base import ReadOnlyAdmin, find_people
from chatcore.contrib.audit.models import AuditEntry

# The beginnings of the names of acts. Asking the log itself for all names would read all of it.
KINDS = {
    "sign_in.": _("signing in and out"),
    "content.": _("reading contents"),
    "admin.": _("acts in the admin"),
    "session.": _("sessions"),
    "user.": _("people: exported, erased"),
    "account.": _("accounts"),
    "token.": _("tokens"),
    "key.": _("keys of providers"),
    "password.": _("passwords"),
    "second_factor.": _("second factors"),
}


class KindFilter(admin.SimpleListFilter):
    """What an act is about."""

    title = _("kind of act")
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: object) -> Any:
        return list(KINDS.items())

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[AuditEntry]
    ) -> QuerySet[AuditEntry]:
        kind = self.value()
        return queryset.filter(act__startswith=kind) if kind in KINDS else queryset


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    sidebar = ("people", "file")
    list_display = ("at", "act", "person", "object_type", "object_id", "detail", "address")
    list_filter = ("at", KindFilter)
    list_select_related = ("actor",)
    sortable_by = ()
    search_fields = ("=object_id", "=address", "=actor__username")
    search_help_text = _("A person, an act as sign_in.failed, an address, or an object's number.")
    ordering = ("-pk",)
    fields = ("at", "act", "person", "object_type", "object_id", "detail", "address", "request_id")
    actions = None

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[AuditEntry], search_term: str
    ) -> tuple[QuerySet[AuditEntry], bool]:
        """Find by what an index knows: who, which act, from where, on which object."""
        if not search_term:
            return queryset, False
        # Entries of before have the name that a model had in the core.
        types = [model._meta.label_lower for model in apps.get_models()]
        types += [f"chatcore.{name.rpartition('.')[2]}" for name in types]
        matches = Q(act=search_term) | Q(address=search_term)
        matches |= Q(object_type__in=types, object_id=search_term)
        return queryset.filter(matches | Q(actor__in=find_people(search_term))), False

    @admin.display(description="Who")
    def person(self, entry: AuditEntry) -> str:
        """Name the person, or the number of one who is erased."""
        if entry.actor_id is None:
            return "–"
        return entry.actor.get_username() if entry.actor else f"user {entry.actor_id}, erased"
