"""The pages of django-allauth that are served here; each has a template of ours."""

from allauth.account import views as account
from allauth.mfa.base import views as second_factor
from allauth.mfa.recovery_codes import views as recovery_codes
from allauth.mfa.totp import views as totp
from allauth.socialaccount import views as sign_on
from allauth.urls import build_provider_urlpatterns
from django.contrib.auth.views import LogoutView
from django.urls import URLPattern, URLResolver, path, re_path
from django.views.generic import RedirectView

urlpatterns: list[URLPattern | URLResolver] = [
    path(
        "login/",
        RedirectView.as_view(pattern_name="login", query_string=True),
        name="account_login",
    ),
    path("logout/", LogoutView.as_view(), name="account_logout"),
    path("inactive/", account.account_inactive, name="account_inactive"),
    path("sign-up/", account.signup, name="account_signup"),
    path("confirm/", account.reauthenticate, name="account_reauthenticate"),
    path("email/", account.email, name="account_email"),
    path("email/sent/", account.email_verification_sent, name="account_email_verification_sent"),
    re_path(r"^email/(?P<key>[-:\w]+)/$", account.confirm_email, name="account_confirm_email"),
    path("password/", account.password_change, name="account_change_password"),
    path("password/set/", account.password_set, name="account_set_password"),
    path("password/reset/", account.password_reset, name="account_reset_password"),
    path("password/reset/sent/", account.password_reset_done, name="account_reset_password_done"),
    re_path(
        r"^password/reset/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>.+)/$",
        account.password_reset_from_key,
        name="account_reset_password_from_key",
    ),
    path(
        "password/reset/done/",
        account.password_reset_from_key_done,
        name="account_reset_password_from_key_done",
    ),
    path("second-factor/", second_factor.index, name="mfa_index"),
    path("second-factor/code/", second_factor.authenticate, name="mfa_authenticate"),
    path("second-factor/confirm/", second_factor.reauthenticate, name="mfa_reauthenticate"),
    path("second-factor/app/", totp.activate_totp, name="mfa_activate_totp"),
    path("second-factor/app/remove/", totp.deactivate_totp, name="mfa_deactivate_totp"),
    path("recovery-codes/", recovery_codes.view_recovery_codes, name="mfa_view_recovery_codes"),
    path(
        "recovery-codes/new/",
        recovery_codes.generate_recovery_codes,
        name="mfa_generate_recovery_codes",
    ),
    path(
        "recovery-codes/download/",
        recovery_codes.download_recovery_codes,
        name="mfa_download_recovery_codes",
    ),
    path("sign-on/", sign_on.connections, name="socialaccount_connections"),
    path("sign-on/cancelled/", sign_on.login_cancelled, name="socialaccount_login_cancelled"),
    path("sign-on/error/", sign_on.login_error, name="socialaccount_login_error"),
    path("sign-on/sign-up/", sign_on.signup, name="socialaccount_signup"),
    *build_provider_urlpatterns(),
]
