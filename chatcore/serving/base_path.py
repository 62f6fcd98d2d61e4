"""The path of a host below which everything is, as /chat, and the settings that follow from it.

Requests come with the path (`chatcore/serving/path_prefix.py` takes it off), so it is this
setting alone that says what it is, and no header.
"""

from chatcore.base.environment import read_base_path

__all__ = [
    "BASE_PATH",
    "CSRF_COOKIE_NAME",
    "CSRF_COOKIE_PATH",
    "FORCE_SCRIPT_NAME",
    "LANGUAGE_COOKIE_NAME",
    "LANGUAGE_COOKIE_PATH",
    "LOGIN_REDIRECT_URL",
    "LOGIN_URL",
    "LOGOUT_REDIRECT_URL",
    "MESSAGE_STORAGE",
    "SESSION_COOKIE_NAME",
    "SESSION_COOKIE_PATH",
    "STATIC_URL",
]

BASE_PATH = read_base_path("CHATCORE_BASE_PATH")
FORCE_SCRIPT_NAME = BASE_PATH or None  # with which `reverse` begins

LOGIN_URL = LOGOUT_REDIRECT_URL = f"{BASE_PATH}/login/"
LOGIN_REDIRECT_URL = f"{BASE_PATH}/"
STATIC_URL = f"{BASE_PATH}/static/"

SESSION_COOKIE_PATH = CSRF_COOKIE_PATH = LANGUAGE_COOKIE_PATH = f"{BASE_PATH}/"
# What is at the top of the host may be made with Django too. A browser sends its cookies here as
# well, so other names are needed besides.
_SUFFIX = BASE_PATH.replace("/", "_")
SESSION_COOKIE_NAME = f"sessionid{_SUFFIX}"
CSRF_COOKIE_NAME = f"csrftoken{_SUFFIX}"
LANGUAGE_COOKIE_NAME = f"django_language{_SUFFIX}"
_STORAGES = "django.contrib.messages.storage"
# The default keeps short messages in a cookie that is always at the top.
MESSAGE_STORAGE = (
    f"{_STORAGES}.session.SessionStorage" if BASE_PATH else f"{_STORAGES}.fallback.FallbackStorage"
)
