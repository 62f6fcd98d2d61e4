"""Pages of what CHATCORE_SETUP_FILE may set: shown as such, and then read-only."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from chatcore.admin.base import ChatcoreAdmin
from chatcore.models import SetupEntry


class SetupFileAdmin(ChatcoreAdmin):
    """A page of rows that the file may set. `setup_section` is their section in it."""

    setup_section = ""

    def find_setup_entry(self, row: Any) -> SetupEntry | None:
        """Return the file's entry of a row, or None. The row, which lives one request, keeps it."""
        if row is None or row.pk is None:
            return None
        if not hasattr(row, "entry_of_file"):
            name = self.get_setup_name(row)
            row.entry_of_file = SetupEntry.objects.find(self.setup_section, name)
        entry: SetupEntry | None = row.entry_of_file
        return entry

    def get_setup_name(self, row: Any) -> str:
        """Return the row's name in the file."""
        return str(row)

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        may_change: bool = super().has_change_permission(request, obj)
        return may_change and self.find_setup_entry(obj) is None

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        may_delete: bool = super().has_delete_permission(request, obj)
        return may_delete and self.find_setup_entry(obj) is None

    def get_readonly_fields(self, request: HttpRequest, obj: object = None) -> Sequence[str]:
        return (*super().get_readonly_fields(request, obj), "setup_file")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Say first where a row comes from, if that is the file."""
        fieldsets = super().get_fieldsets(request, obj)
        if self.find_setup_entry(obj) is None:
            return fieldsets
        return [(None, {"fields": ("setup_file",)}), *fieldsets]

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Model]) -> None:
        """Delete the selected rows but those of the file."""
        names = SetupEntry.objects.list_names(self.setup_section)
        kept = [row.pk for row in queryset if self.get_setup_name(row) in names]
        super().delete_queryset(request, queryset.exclude(pk__in=kept))

    @admin.display(description="Set by")
    def setup_file(self, row: Any) -> str:
        """Say what the file sets of this row."""
        entry = self.find_setup_entry(row)
        return entry.text if entry else ""
