"""What the admin pages of compaction are made of: the class that the project names."""

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.http import HttpRequest
from django.utils.module_loading import import_string

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin
else:
    ModelAdmin = import_string(
        settings.COMPACTION.get("ADMIN_CLASS", "django.contrib.admin.ModelAdmin")
    )


class UnaddableAdmin(ModelAdmin):
    """A page of rows that runs write; what of them may be edited, somebody may correct."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False


class UneditableAdmin(UnaddableAdmin):
    """A page of rows that runs, or owners of sessions over REST, write."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
