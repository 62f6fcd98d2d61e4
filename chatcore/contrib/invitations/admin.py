"""The admin's page of invitations, which shows each link once."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Model
from django.http import HttpRequest

from chatcore.accounts.sign_up import get_sign_up_mode
from chatcore.admin.base import ChatcoreAdmin
from chatcore.contrib.invitations.links import (
    DEFAULT_DAYS,
    MAX_DAYS,
    create_invitation,
    select_givable_groups,
)
from chatcore.contrib.invitations.models import Invitation


class InvitationForm(forms.ModelForm):
    """A new invitation."""

    days = forms.IntegerField(min_value=1, max_value=MAX_DAYS, initial=DEFAULT_DAYS)

    class Meta:
        model = Invitation
        fields = ("note", "groups")


@admin.register(Invitation)
class InvitationAdmin(ChatcoreAdmin):
    """Invitations. The link is shown once, after it was made; deleting withdraws it."""

    sidebar = ("people", "mail")
    form = InvitationForm
    list_display = ("__str__", "made_by", "made_at", "expires_at", "used_at", "used_by")
    list_select_related = ("made_by", "used_by")
    fields = ("note", "groups", "days")

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def formfield_for_manytomany(
        self, db_field: object, request: HttpRequest, **options: object
    ) -> object:
        """Offer the groups that the inviter may give."""
        options["queryset"] = select_givable_groups(request.user)
        return super().formfield_for_manytomany(db_field, request, **options)

    def get_fields(self, request: HttpRequest, obj: object = None) -> Sequence[str]:
        if obj is None:
            return self.fields
        return ("note", "groups", "made_by", "made_at", "expires_at", "used_at", "used_by")

    def save_model(self, request: HttpRequest, obj: Invitation, form: Any, change: bool) -> None:
        """Make the invitation, and show its link this once."""
        invitation, path = create_invitation(
            made_by=request.user,
            note=form.cleaned_data["note"],
            days=form.cleaned_data["days"],
        )
        obj.__dict__.update(invitation.__dict__)
        link = request.build_absolute_uri(path)
        self.message_user(request, f"Copy the link now, it is not shown again: {link}")
        if get_sign_up_mode() == "closed":
            self.message_user(
                request,
                "Sign-up is closed, so the link does not work before the settings allow it.",
                messages.WARNING,
            )
