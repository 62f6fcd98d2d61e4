"""The admin pages of accounts: who may come in, and who tried. None shows a secret."""

from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from allauth.usersessions.models import UserSession
from axes.admin import AccessAttemptAdmin, AccessFailureLogAdmin, AccessLogAdmin
from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.db.models import Model
from django.http import HttpRequest
from knox.models import AuthToken

from chatcore.accounts.invitations import (
    DEFAULT_DAYS,
    MAX_DAYS,
    create_invitation,
    select_givable_groups,
)
from chatcore.admin.base import ChatcoreAdmin, UneditableAdmin
from chatcore.models import Invitation

# Of the packages' own pages some show or take secrets, or rows that only the program writes.
for model in (
    AccessAttempt,
    AccessFailureLog,
    AccessLog,
    Authenticator,
    AuthToken,
    EmailAddress,
    SocialAccount,
    SocialApp,
    SocialToken,
    UserSession,
):
    if admin.site.is_registered(model):
        admin.site.unregister(model)


@admin.register(AccessAttempt)
class AccessAttemptPage(AccessAttemptAdmin, ChatcoreAdmin):
    """Attempts to sign in that failed, and still count."""


@admin.register(AccessFailureLog)
class AccessFailureLogPage(AccessFailureLogAdmin, ChatcoreAdmin):
    """All attempts to sign in that failed."""


@admin.register(AccessLog)
class AccessLogPage(AccessLogAdmin, ChatcoreAdmin):
    """Who signed in, and signed out."""


@admin.register(Authenticator)
class AuthenticatorAdmin(UneditableAdmin):
    """Second factors. Deleting lets somebody in who has lost the phone."""

    list_display = ("user", "type", "created_at", "last_used_at")
    list_filter = ("type",)
    list_select_related = ("user",)
    search_fields = ("user__username",)
    fields = ("user", "type", "created_at", "last_used_at")


@admin.register(AuthToken)
class AuthTokenAdmin(UneditableAdmin):
    """API tokens: whose they are and until when. Deleting revokes."""

    list_display = ("token_key", "user", "created", "expiry")
    list_select_related = ("user",)
    search_fields = ("=token_key", "user__username")
    fields = ("token_key", "user", "created", "expiry")


@admin.register(SocialAccount)
class SocialAccountAdmin(UneditableAdmin):
    """Which accounts sign on by an identity provider."""

    list_display = ("user", "provider", "uid", "last_login")
    list_filter = ("provider",)
    list_select_related = ("user",)
    search_fields = ("user__username", "=uid")
    fields = ("user", "provider", "uid", "date_joined", "last_login")


@admin.register(EmailAddress)
class EmailAddressAdmin(ChatcoreAdmin):
    """Addresses of people. A verified one signs in and gets links for new passwords."""

    list_display = ("email", "user", "verified", "primary")
    list_filter = ("verified",)
    list_select_related = ("user",)
    search_fields = ("email", "user__username")
    raw_id_fields = ("user",)


class InvitationForm(forms.ModelForm):
    """A new invitation."""

    days = forms.IntegerField(min_value=1, max_value=MAX_DAYS, initial=DEFAULT_DAYS)

    class Meta:
        model = Invitation
        fields = ("note", "groups")


@admin.register(Invitation)
class InvitationAdmin(ChatcoreAdmin):
    """Invitations. The link is shown once, after it was made; deleting withdraws it."""

    form = InvitationForm
    list_display = ("__str__", "made_by", "made_at", "expires_at", "used_at", "used_by")
    list_select_related = ("made_by", "used_by")
    fields = ("note", "groups", "days")

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        """Offer the groups that the inviter may give."""
        options["queryset"] = select_givable_groups(request.user)
        return super().formfield_for_manytomany(db_field, request, **options)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
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
        if settings.SIGN_UP == "closed":
            self.message_user(
                request,
                "Sign-up is closed, so the link does not work before CHATCORE_SIGN_UP=invitation.",
                messages.WARNING,
            )
