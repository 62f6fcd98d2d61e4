"""Every setting, read from the environment in this one place; a bad value stops the start with a sentence that names it."""

import contextlib
import os
import re
import secrets
import warnings
from pathlib import Path
from typing import Any

import environ
from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured

env = environ.Env()
BASE_DIR = Path(__file__).resolve().parent.parent


def _load_secret(name: str, make: Any) -> str:
    """Read a secret from the data folder, made there on first use and readable by its owner only."""
    path = DATA_DIR / name
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        path.touch(mode=0o600)
        path.write_text(make())
        return path.read_text().strip()


def _read_variable(reader: Any, name: str, default: Any) -> Any:
    try:
        return reader(name, default=default)
    except (ValueError, TypeError) as error:
        raise ImproperlyConfigured(f"{name} has a value that cannot be used: {error}") from None


def _read_choice(name: str, choices: list[str]) -> str:
    """One of `choices`, in capitals or not; the first when the variable is not set."""
    value: str = _read_variable(env.str, name, choices[0])
    for choice in choices:
        if value.strip().lower() == choice.lower():
            return choice
    raise ImproperlyConfigured(f"{name} is {value!r}; it can be {' or '.join(choices)}.")


def _read_number(name: str, default: int, *, minimum: int, maximum: int | None = None) -> int:
    value: int = _read_variable(env.int, name, default)
    if value < minimum:
        raise ImproperlyConfigured(f"{name} is {value}; it must be at least {minimum}.")
    if maximum is not None and value > maximum:
        raise ImproperlyConfigured(f"{name} is {value}; it must be at most {maximum}.")
    return value


def _read_switch(name: str) -> bool:
    """On unless it says otherwise, in one of the usual words; another word is a mistake, not an off."""
    value: str = _read_variable(env.str, name, "true").strip().lower()
    if value not in env.BOOLEAN_TRUE_STRINGS and value not in ("false", "off", "no", "n", "0"):
        raise ImproperlyConfigured(f"{name} is {value!r}; it can be true or false.")
    return value in env.BOOLEAN_TRUE_STRINGS


def _read_threshold(name: str) -> float | int | None:
    """Up to 1 a share, above it a whole number of tokens; None when the variable is not set or says auto."""
    text: str = _read_variable(env.str, name, "auto").strip().lower()
    if text in ("", "auto"):
        return None
    if re.fullmatch(r"0?\.\d+|1(\.0+)?", text) and float(text) > 0:
        return float(text)
    if re.fullmatch(r"[1-9]\d{0,9}", text):
        return int(text)
    raise ImproperlyConfigured(
        f"{name} is {text!r}; it can be a share up to 1, as 0.8, or a whole number of tokens."
    )


def _read_folder(name: str, default: str) -> Path:
    """Made where it is missing."""
    path = Path(_read_variable(env.str, name, default)).resolve()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(
            f"{name} is {str(path)!r}, which is no folder and cannot be made one: {error.strerror}."
        ) from None
    return path


def _read_database(name: str, default: str) -> dict[str, Any]:
    database: dict[str, Any] = {}
    with (
        warnings.catch_warnings(),
        contextlib.suppress(ValueError),
    ):  # what these say may show a password
        warnings.simplefilter("ignore")
        database = env.db_url(name, default=default)
    if not str(database.get("ENGINE", "")).startswith("django.db.backends."):
        raise ImproperlyConfigured(
            f"{name} has no address of a database in it; one begins with postgres:// or sqlite:///."
        )
    return database


def _read_redis(name: str) -> str:
    url: str = _read_variable(env.str, name, "")
    if url and not url.startswith(("redis://", "rediss://", "unix://")):
        raise ImproperlyConfigured(
            f"{name} has no address of a Redis server in it; one begins with redis://."
        )
    return url


def _read_keys(name: str) -> list[str]:
    """Keys that encrypt; one is made and kept where there is none."""
    keys: list[str] = _read_variable(env.list, name, []) or [
        _load_secret("key-encryption-key", lambda: Fernet.generate_key().decode())
    ]
    for position, key in enumerate(keys, start=1):
        try:
            Fernet(key)
        except ValueError:
            raise ImproperlyConfigured(
                f"{name} has a key that is none, the one at place {position}: 32 bytes in URL-safe base64."
            ) from None
    return keys


def _read_summary_model() -> str:
    """`provider/model`, or the model's name alone; empty for the conversation's own model."""
    provider: str = _read_variable(env.str, "CHATCORE_SUMMARIZATION_PROVIDER", "").strip()
    model: str = _read_variable(env.str, "CHATCORE_SUMMARIZATION_MODEL", "").strip()
    if provider and not model:
        raise ImproperlyConfigured(
            "CHATCORE_SUMMARIZATION_PROVIDER is set without CHATCORE_SUMMARIZATION_MODEL: name the model too."
        )
    return f"{provider}/{model}" if provider else model


DATA_DIR = _read_folder("CHATCORE_DATA_DIR", "./var")

DEBUG = _read_switch("CHATCORE_DEBUG")
SECRET_KEY = _read_variable(env.str, "CHATCORE_SECRET_KEY", "")
if not SECRET_KEY:
    if not DEBUG:
        raise ImproperlyConfigured("CHATCORE_SECRET_KEY must be set when CHATCORE_DEBUG=0.")
    SECRET_KEY = _load_secret("secret-key", lambda: secrets.token_urlsafe(50))

ALLOWED_HOSTS = _read_variable(
    env.list, "CHATCORE_ALLOWED_HOSTS", ["127.0.0.1", "localhost", "[::1]"]
)
CSRF_TRUSTED_ORIGINS = [
    f"https://{'*' if host.startswith('.') else ''}{host}" for host in ALLOWED_HOSTS if host != "*"
]

INSTALLED_APPS = [
    "chatcore.apps.AdminSite",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django_htmx",
    "rest_framework",
    "knox",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_q",
    "models_registry.apps.ModelsRegistry",
    "chatcore.apps.Chatcore",
    "compaction.apps.Compaction",
]

MIDDLEWARE = [
    "chatcore.web.security_headers.SecurityHeaders",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "chatcore.urls"
ASGI_APPLICATION = "chatcore.asgi.application"
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

DATABASES = {
    "default": _read_database("CHATCORE_DATABASE_URL", f"sqlite:///{DATA_DIR / 'chatcore.sqlite3'}")
}
DATABASE_POOL = _read_switch("CHATCORE_DATABASE_POOL")
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # Measured with eight writers: no "database is locked", median 0.5 ms a durable write. Connections are kept by their threads: opening
    # one for every call costs each first word 15 ms.
    DATABASES["default"]["CONN_MAX_AGE"] = 600
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL;PRAGMA synchronous=FULL;PRAGMA mmap_size=134217728;PRAGMA foreign_keys=ON;",
    }
elif DATABASE_POOL:
    # A pool cannot cross a fork: the worker switches it off and keeps its connections instead.
    DATABASES["default"]["OPTIONS"] = {"pool": {"min_size": 2, "max_size": 20}}
else:
    DATABASES["default"]["CONN_MAX_AGE"] = 600
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = _read_redis("CHATCORE_REDIS_URL")
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}
    if REDIS_URL
    else {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "chatcore_cache"}
}

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "German")]
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True

STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "static"
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG
DATA_UPLOAD_MAX_MEMORY_SIZE = (
    51 * 1024 * 1024
)  # the import limit; each view has its own, smaller one

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "chatcore.rest.auth.BearerTokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_PARSER_CLASSES": ["chatcore.rest.auth.JsonBodyParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "chatcore.rest.auth.JsonOnlyNegotiation",
    "DEFAULT_PAGINATION_CLASS": "chatcore.rest.pagination.KeysetPagination",
    "DEFAULT_SCHEMA_CLASS": "chatcore.rest.schema.ProblemAutoSchema",
    "EXCEPTION_HANDLER": "chatcore.rest.problems.handle_exception",
    "DEFAULT_METADATA_CLASS": None,  # OPTIONS would describe an address to whoever may not use it
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
    "UNAUTHENTICATED_USER": None,
}
REST_KNOX = {"AUTH_HEADER_PREFIX": "Bearer", "TOKEN_TTL": None, "TOKEN_LIMIT_PER_USER": None}
SPECTACULAR_SETTINGS = {
    "TITLE": "Chatcore",
    "DESCRIPTION": "Conversations that never end, never fail for length and never lose a word.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "PREPROCESSING_HOOKS": ["chatcore.rest.schema.drop_slash_twins"],
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}

Q_CLUSTER = {
    "name": "chatcore",
    "orm": "default",
    "workers": _read_number("CHATCORE_WORKERS", 2, minimum=1),
    "timeout": 120,
    "retry": 2000,  # longer than any task may take (compaction.tasks.LONGEST_RUN): else a second worker is woken for the same one
    "queue_limit": 1,
    "bulk": 1,
    "recycle": 500,
    "max_attempts": 1,
    "ack_failures": True,
    "save_limit": -1,
    "catch_up": False,
    "poll": 0.1,
    "cache": "default",
    "label": "Jobs",
}

CHATCORE = {
    # Asked before each request and after an overflow; see chatcore/context/builder.py. None: requests go out as they are.
    "CONTEXT_GUARD": "compaction.requests.guard.ContextGuard",
    # Gives the compaction policies that a session may name. None: any name.
    "POLICIES": "compaction.policies.list_policies",
    # Refuses a session's own threshold that its policies (by name, the first that is set) cannot take. None: any share.
    "VALIDATE_OVERRIDE": "compaction.policies.validate_threshold_override",
    # Says how much of a tool's output is stored; see chatcore/tools/output.py. None: its first 30,000 characters.
    "TOOL_OUTPUT": "compaction.requests.tool_output.truncate_output",
    "KEY_ENCRYPTION_KEYS": _read_keys("CHATCORE_KEY_ENCRYPTION_KEYS"),
    "TURNS_PER_MINUTE": _read_number("CHATCORE_TURNS_PER_MINUTE", 60, minimum=1),
    # So many of a user's unpinned sessions stay out of the archive, those used last; 0: all. None is deleted for it.
    "MAX_SESSIONS": _read_number("CHATCORE_MEMORY_MAX_SESSIONS", 0, minimum=0),
    # Hosts that fetch_url may reach although they are not public: "host" for ports 80 and 443, "host:port" for another.
    "FETCH_ALLOW_HOSTS": _read_variable(env.list, "CHATCORE_FETCH_ALLOW_HOSTS", []),
}

USER_CACHE_DIR = (
    Path(_read_variable(env.str, "XDG_CACHE_HOME", "") or os.path.expanduser("~/.cache"))
    / "chatcore"
)
LOCAL_MODEL = {
    "SIZE": _read_choice("CHATCORE_LOCAL_MODEL", ["1.5b", "0.5b"]),
    "PATH": _read_variable(env.str, "CHATCORE_LOCAL_MODEL_PATH", ""),
    "WINDOW": _read_number("CHATCORE_LOCAL_MODEL_WINDOW", 8192, minimum=512),  # tokens
    "HUB": _read_variable(env.str, "CHATCORE_MODEL_HUB", "https://huggingface.co"),
    # Weights are looked for in each folder, and fetched into the first.
    "FOLDERS": [DATA_DIR / "models", USER_CACHE_DIR],
    # `serve` gives both, so that a restarted model keeps its address; alone, the model makes its own.
    "PORT": _read_number("CHATCORE_LOCAL_MODEL_PORT", 0, minimum=0, maximum=65_535),
    "API_KEY": _read_variable(env.str, "CHATCORE_LOCAL_MODEL_API_KEY", ""),
}

COMPACTION = {
    "BACKEND": "compaction.backends.chatcore.backend.ChatcoreBackend",
    # The host's conversation; its primary key is a UUID. Fixed before the first migration, like AUTH_USER_MODEL.
    "SESSION_MODEL": "chatcore.Session",
    "POLICY": _read_variable(env.str, "CHATCORE_POLICY", "oneclaw"),
    # Whether room is made without being asked for; every message is stored either way. NeuroLink's memory and summarization.
    "AUTOMATIC": all(
        [_read_switch("CHATCORE_MEMORY_ENABLED"), _read_switch("CHATCORE_SUMMARIZATION_ENABLED")]
    ),
    # In place of a policy's own trigger.threshold, where a session has none of its own: a share, or a whole number of tokens.
    "THRESHOLD": _read_threshold("CHATCORE_TOKEN_THRESHOLD"),
    # Who writes summaries where neither the model's row nor the policy names another.
    "SUMMARY_MODEL": _read_summary_model(),
}

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": "chatcore.serving.logs.build_line_formatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {
        "handlers": ["stderr"],
        "level": _read_choice(
            "CHATCORE_LOG_LEVEL", ["INFO", "DEBUG", "WARNING", "ERROR", "CRITICAL"]
        ),
    },
    "loggers": {"httpx2": {"level": "WARNING"}, "django.request": {"level": "ERROR"}},
}
