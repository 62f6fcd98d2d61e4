"""The admin pages of users and groups. Deleting a user erases the person with everything."""

from collections.abc import Iterable

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.contrib.auth import get_user_model
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.db.models import ManyToManyField, QuerySet
from django.http import HttpRequest, HttpResponse
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from chatcore.accounts.user_erasure import erase_user
from chatcore.admin.base import ChatcoreAdmin, DeletedObjects
from chatcore.extension import list_keepers
from chatcore.models import Session

# A project that has users of its own may have a page for them, which this one replaces.
for model in (get_user_model(), Group):
    if admin.site.is_registered(model):
        admin.site.unregister(model)


class RightsChoice(ChatcoreAdmin):
    """A page that offers the rights of installed models, not those that absent apps have left."""

    def formfield_for_manytomany(
        self, db_field: ManyToManyField, request: HttpRequest, **options: object
    ) -> object:
        """Return the form's field without rights about models that are not there."""
        field = super().formfield_for_manytomany(db_field, request, **options)
        if field is not None and db_field.related_model is Permission:
            kinds = ContentType.objects.all()
            installed = [kind.pk for kind in kinds if kind.model_class() is not None]
            field.queryset = field.queryset.filter(content_type__in=installed)
        return field


@admin.register(get_user_model())
class UserPage(UserAdmin, RightsChoice):
    """Django's page would load every message of a user before it deletes, and then refuse."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm

    def get_deleted_objects(self, objs: Iterable[User], request: HttpRequest) -> DeletedObjects:
        """Count what goes with the users, and say why some must stay."""
        users = list(objs)
        counts = {
            "users": len(users),
            "sessions": Session.all_objects.filter(owner__in=users).count(),
        }
        missing_rights = set() if self.has_delete_permission(request) else {"user"}
        keepers = list_keepers([user.pk for user in users])
        return [str(user) for user in users], counts, missing_rights, keepers

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, object] | None = None
    ) -> HttpResponse:
        """Ask first; then erase in short transactions, not in the long one of Django's page."""
        user = self.get_object(request, unquote(object_id))
        if request.method != "POST" or user is None or list_keepers([user.pk]):
            return super().delete_view(request, object_id, extra_context)
        if not self.has_delete_permission(request, user):
            raise PermissionDenied
        self.log_deletions(request, get_user_model()._default_manager.filter(pk=user.pk))
        name, pk = str(user), user.pk
        self.delete_model(request, user)
        return self.response_delete(request, name, pk)

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        """Erase the user."""
        erase_user(obj, by=request.user)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        """Erase the selected users one by one."""
        for user in list(queryset):
            erase_user(user, by=request.user)


@admin.register(Group)
class GroupPage(GroupAdmin, RightsChoice):
    """Groups, and what their members may do in the admin."""
