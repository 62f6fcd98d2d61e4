"""What Django's technical error pages, which exist in debug mode only, never show."""

import re
from collections.abc import ItemsView

from django.conf import settings
from django.http import HttpRequest
from django.views.debug import SafeExceptionReporterFilter

# A user and a password in an address, as in redis://:password@host and postgres://me:password@host.
CREDENTIALS = re.compile(r"(?<=://)[^/\s'\"]*@")
SENSITIVE_NAMES = re.compile(
    f"{SafeExceptionReporterFilter.hidden_settings.pattern}|URL$|LOCATION|DATABASE|REDIS",
    re.IGNORECASE,
)
ADDRESSES_OF_PAGES = frozenset({"STATIC_URL", "MEDIA_URL", "LOGIN_URL", "PUBLIC_URL"})


class SecretsFilter(SafeExceptionReporterFilter):
    """Django's filter, which also hides addresses with passwords, in settings and in variables."""

    hidden_settings = SENSITIVE_NAMES

    def cleanse_setting(self, key: int | str, value: object) -> object:
        """Return the value, or stars in place of what nobody may see of it."""
        if key in ADDRESSES_OF_PAGES:
            return value
        cleansed_value = super().cleanse_setting(key, value)
        # A lazy text says that it is one, but is none to an expression.
        return _hide_secrets(str(cleansed_value)) if isinstance(value, str) else cleansed_value

    def get_traceback_frame_variables(
        self, request: HttpRequest | None, tb_frame: object
    ) -> ItemsView[str, object]:
        """Return the variables of a frame; in debug mode Django would show all of them."""
        variables = super().get_traceback_frame_variables(request, tb_frame)
        return {name: self.cleanse_variable(name, value) for name, value in variables}.items()

    def cleanse_variable(self, name: str, value: object) -> object:
        """Return a variable's value, or stars if its name or its text may have a secret."""
        if self.hidden_settings.search(name):
            return self.cleansed_substitute
        if isinstance(value, dict):
            value = self.cleanse_setting("", value)
        try:
            text = repr(value)
        except Exception:  # noqa: BLE001 - whatever an object's own code raises
            return "(has no text)"
        safe_text = _hide_secrets(text)
        return value if safe_text == text else safe_text


def _hide_secrets(text: str) -> str:
    text = CREDENTIALS.sub("********@", text)
    for secret in _list_secrets():
        text = text.replace(secret, "********")
    return text


def _list_secrets() -> list[str]:
    passwords = [str(database.get("PASSWORD", "")) for database in settings.DATABASES.values()]
    secrets = [settings.SECRET_KEY, *settings.CHATCORE["KEY_ENCRYPTION_KEYS"], *passwords]
    return [secret for secret in secrets if secret]
