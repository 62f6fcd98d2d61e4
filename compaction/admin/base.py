"""What the admin pages of compaction are made of."""

from django.http import HttpRequest

from chatcore.admin.base import ChatcoreAdmin


class UnaddableAdmin(ChatcoreAdmin):
    """A page of rows that runs write; what of them may be edited, somebody may correct."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False


class UneditableAdmin(UnaddableAdmin):
    """A page of rows that runs, or owners of sessions over REST, write."""

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False
