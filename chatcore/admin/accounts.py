"""The admin pages of accounts: who may come in, and who tried. None shows a secret."""

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from allauth.usersessions.models import UserSession
from axes.admin import AccessAttemptAdmin, AccessFailureLogAdmin, AccessLogAdmin
from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.contrib import admin
from knox.models import AuthToken

from chatcore.admin.base import ChatcoreAdmin, UneditableAdmin

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
