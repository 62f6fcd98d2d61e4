"""The settings of accounts: who may make one, e-mail, second factors and single sign-on.

django-allauth reads most of them; docs/accounts.md describes those that operators set.
"""

from typing import Any

from django.core.exceptions import ImproperlyConfigured

from chatcore.base.environment import (
    is_safe_address,
    read_choice,
    read_email,
    read_number,
    read_text,
)
from chatcore.base.extras import has_extra, require_extra
from chatcore.base.installed_apps import get_app_setting

ACCOUNT_APPS = [
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    *(["chatcore.accounts.openid"] if has_extra("sign-on") else []),
    "allauth.usersessions",
]

# Days that an entry of the audit log is stored; 0 keeps them for good.
AUDIT_DAYS = read_number("CHATCORE_AUDIT_DAYS", 365, minimum=0, maximum=36_500)

# closed: only administrators make accounts. open: all. Apps add choices. Empty: what is set in the
# admin, otherwise closed (chatcore/accounts/sign_up.py).
SIGN_UP_CHOICES = get_app_setting("SIGN_UP_CHOICES", ["closed", "open"])
SIGN_UP = read_choice("CHATCORE_SIGN_UP", ["", *SIGN_UP_CHOICES])

EMAIL = read_email("CHATCORE_EMAIL_URL")
# Without an address of a mail server nothing is sent, and the pages say so. Links that sign people
# in are never written to a log.
SENDS_EMAIL = bool(EMAIL)
EMAIL_BACKEND = EMAIL.get("EMAIL_BACKEND", "django.core.mail.backends.dummy.EmailBackend")
EMAIL_HOST = EMAIL.get("EMAIL_HOST") or "localhost"
EMAIL_PORT = EMAIL.get("EMAIL_PORT") or 25
EMAIL_HOST_USER = EMAIL.get("EMAIL_HOST_USER") or ""
EMAIL_HOST_PASSWORD = EMAIL.get("EMAIL_HOST_PASSWORD") or ""
EMAIL_USE_TLS = bool(EMAIL.get("EMAIL_USE_TLS"))
EMAIL_USE_SSL = bool(EMAIL.get("EMAIL_USE_SSL"))
EMAIL_FILE_PATH = EMAIL.get("EMAIL_FILE_PATH") or None
EMAIL_TIMEOUT = 10  # seconds
DEFAULT_FROM_EMAIL = read_text("CHATCORE_EMAIL_FROM", "chatcore@localhost")

ACCOUNT_ADAPTER = get_app_setting("ACCOUNT_ADAPTER", "chatcore.accounts.adapters.AccountAdapter")
ACCOUNT_LOGIN_METHODS = {"username", "email"}
# Who signs up by themselves proves an address, if mail can be sent.
IS_EMAIL_REQUIRED = SENDS_EMAIL and SIGN_UP == "open"
ACCOUNT_SIGNUP_FIELDS = ["username*", "email*" if IS_EMAIL_REQUIRED else "email", "password1*"]
_VERIFICATIONS = {(False, False): "none", (True, False): "optional", (True, True): "mandatory"}
ACCOUNT_EMAIL_VERIFICATION = _VERIFICATIONS[SENDS_EMAIL, IS_EMAIL_REQUIRED]
ACCOUNT_CHANGE_EMAIL = True
ACCOUNT_EMAIL_NOTIFICATIONS = SENDS_EMAIL
ACCOUNT_EMAIL_SUBJECT_PREFIX = ""
ACCOUNT_LOGOUT_ON_PASSWORD_CHANGE = False
# Whoever finds an open browser must not be able to take the account over.
ACCOUNT_REAUTHENTICATION_REQUIRED = True

MFA_ADAPTER = "chatcore.accounts.adapters.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
MFA_FORMS = {"activate_totp": "chatcore.accounts.second_factor.ActivateForm"}
# Who has to have a second factor to use the pages after signing in with a password.
SECOND_FACTOR = read_choice("CHATCORE_REQUIRE_SECOND_FACTOR", ["nobody", "staff", "everybody"])
MFA_TOTP_ISSUER = "Chatcore"

USERSESSIONS_TRACK_ACTIVITY = False  # chatcore/accounts/devices.py does, less often

SOCIALACCOUNT_ADAPTER = get_app_setting(
    "SOCIALACCOUNT_ADAPTER", "chatcore.accounts.adapters.SignOnAdapter"
)
SOCIALACCOUNT_AUTO_SIGNUP = True
# The pages' policy allows forms to lead to this server only, and a browser applies it to redirects
# too. So a link begins the sign-on; chatcore/accounts/sign_on.py refuses links of other sites.
SOCIALACCOUNT_LOGIN_ON_GET = True
SOCIALACCOUNT_STORE_TOKENS = False


def _read_identity_provider() -> dict[str, Any]:
    names = ("CHATCORE_OIDC_ISSUER", "CHATCORE_OIDC_CLIENT_ID", "CHATCORE_OIDC_CLIENT_SECRET")
    issuer, client_id, secret = (read_text(name).strip() for name in names)
    if not (issuer or client_id or secret):
        return {}
    for name, value in zip(names, (issuer, client_id, secret), strict=True):
        if not value:
            raise ImproperlyConfigured(f"{name} is not set; {' and '.join(names)} go together.")
    if not is_safe_address(issuer):
        raise ImproperlyConfigured(
            f"{names[0]} is no address with TLS; one begins with https://, or is of this machine."
        )
    require_extra("sign-on", f"The identity provider of {names[0]}")
    app = {
        "provider_id": "oidc",
        "name": read_text("CHATCORE_OIDC_NAME", "OpenID Connect"),
        "client_id": client_id,
        "secret": secret,
        "settings": {"server_url": issuer, "oauth_pkce_enabled": True},
    }
    return {
        "openid_connect": {
            "APPS": [app],
            "SCOPE": read_text("CHATCORE_OIDC_SCOPES", "openid profile email").split(),
        }
    }


SOCIALACCOUNT_PROVIDERS = _read_identity_provider()
# The claim that names a person's groups. Empty: groups are given in the admin.
OIDC_GROUPS_CLAIM = read_text("CHATCORE_OIDC_GROUPS_CLAIM").strip()
