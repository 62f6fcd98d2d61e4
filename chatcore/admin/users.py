"""The admin page of users. Deleting one erases the person with everything."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest

from chatcore.models import Hold, Session
from chatcore.sessions.user_erasure import erase_user

admin.site.unregister(User)


@admin.register(User)
class ErasingUserAdmin(UserAdmin):
    """Django's page would load every message of a user before it deletes, and then refuse."""

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Count what goes with the users, and name those on legal hold, who stay."""
        users = list(objs)
        counts = {
            "users": len(users),
            "sessions": Session.all_objects.filter(owner__in=users).count(),
        }
        missing_rights = set() if self.has_delete_permission(request) else {"user"}
        holds = [str(hold) for hold in Hold.objects.filter(user__in=users)]
        return [str(user) for user in users], counts, missing_rights, holds

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        """Erase in short transactions, not in the one long transaction of Django's page."""
        return self._delete_view(request, object_id, extra_context)  # type: ignore[attr-defined]

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        """Erase the user."""
        erase_user(obj, by=request.user)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        """Erase the selected users one by one."""
        for user in list(queryset):
            erase_user(user, by=request.user)
