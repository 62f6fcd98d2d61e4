"""Django's settings; chatcore/environment.py reads those that come from environment variables."""

from pathlib import Path
from typing import Any

from chatcore.environment import (
    read_choice,
    read_database,
    read_encryption_keys,
    read_folder,
    read_list,
    read_number,
    read_redis_url,
    read_secret_key,
    read_summary_model,
    read_switch,
    read_text,
    read_threshold,
)

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = read_folder("CHATCORE_DATA_DIR", "./var")

DEBUG = read_switch("CHATCORE_DEBUG")
SECRET_KEY = read_secret_key("CHATCORE_SECRET_KEY", folder=DATA_DIR, is_debug=DEBUG)

ALLOWED_HOSTS = read_list("CHATCORE_ALLOWED_HOSTS", ["127.0.0.1", "localhost", "[::1]"])
# A leading dot means all subdomains in ALLOWED_HOSTS; here an asterisk does.
CSRF_TRUSTED_ORIGINS = [
    f"https://*{host}" if host.startswith(".") else f"https://{host}"
    for host in ALLOWED_HOSTS
    if host != "*"
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

SQLITE_PRAGMAS = (
    "PRAGMA journal_mode=WAL;"
    "PRAGMA synchronous=FULL;"
    "PRAGMA mmap_size=134217728;"
    "PRAGMA foreign_keys=ON;"
)
DATABASES = {
    "default": read_database("CHATCORE_DATABASE_URL", f"sqlite:///{DATA_DIR / 'chatcore.sqlite3'}")
}
DATABASE_POOL = read_switch("CHATCORE_DATABASE_POOL")
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # Measured with eight writers: no "database is locked", and 0.5 ms for the median durable write.
    # Threads keep their connections, because opening one for each call costs 15 ms before each
    # first word of an answer.
    DATABASES["default"]["CONN_MAX_AGE"] = 600
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": SQLITE_PRAGMAS,
    }
elif DATABASE_POOL:
    # A pool does not survive a fork. `serve` switches it off for the worker, which forks; its
    # processes keep their connections instead.
    DATABASES["default"]["OPTIONS"] = {"pool": {"min_size": 2, "max_size": 20}}
else:
    DATABASES["default"]["CONN_MAX_AGE"] = 600
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = read_redis_url("CHATCORE_REDIS_URL")
REDIS_CACHE = {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}
DATABASE_CACHE = {
    "BACKEND": "django.core.cache.backends.db.DatabaseCache",
    "LOCATION": "chatcore_cache",
}
CACHES = {"default": REDIS_CACHE if REDIS_URL else DATABASE_CACHE}

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
# Bytes. An import may be this large; every other view has a smaller limit of its own.
DATA_UPLOAD_MAX_MEMORY_SIZE = 51 * 1024 * 1024

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
    "DEFAULT_PARSER_CLASSES": ["chatcore.rest.parsers.JsonBodyParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "chatcore.rest.negotiation.JsonOnlyNegotiation",
    "DEFAULT_PAGINATION_CLASS": "chatcore.rest.pagination.KeysetPagination",
    "DEFAULT_SCHEMA_CLASS": "chatcore.rest.schema.ProblemAutoSchema",
    "EXCEPTION_HANDLER": "chatcore.api.errors.handle_exception",
    # Without it, OPTIONS would describe an endpoint to users who may not call it.
    "DEFAULT_METADATA_CLASS": None,
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
    "workers": read_number("CHATCORE_WORKERS", 2, minimum=1),
    "timeout": 120,
    # Seconds; more than any task may take (MAX_RUN_SECONDS in compaction/worker/tasks.py), because
    # after this time the queue gives the task to a second worker.
    "retry": 2000,
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

CHATCORE: dict[str, Any] = {
    # Keeps conversations inside the context window; chatcore/context/compactor.py describes it.
    # None: requests are sent as they are, and tool outputs are cut at 30,000 characters.
    "COMPACTOR": "compaction.compactor.Compactor",
    # Runs turns (chatcore/turns/runner.py describes the class). None: threads of this process.
    "RUNNER": None,
    "KEY_ENCRYPTION_KEYS": read_encryption_keys("CHATCORE_KEY_ENCRYPTION_KEYS", folder=DATA_DIR),
    "TURNS_PER_MINUTE": read_number("CHATCORE_TURNS_PER_MINUTE", 60, minimum=1),
    # Sessions of a user that stay listed; those used longest ago go to the archive. Pinned sessions
    # do not count, nothing is deleted, and 0 archives nothing.
    "MAX_SESSIONS": read_number("CHATCORE_MEMORY_MAX_SESSIONS", 0, minimum=0),
    # Private hosts that fetch_url may reach nevertheless: "host" means ports 80 and 443,
    # "host:port" another port.
    "FETCH_ALLOW_HOSTS": read_list("CHATCORE_FETCH_ALLOW_HOSTS", []),
}

USER_CACHE_DIR = Path(read_text("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "chatcore"
LOCAL_MODEL: dict[str, Any] = {
    "SIZE": read_choice("CHATCORE_LOCAL_MODEL", ["1.5b", "0.5b"]),
    "PATH": read_text("CHATCORE_LOCAL_MODEL_PATH"),
    "WINDOW": read_number("CHATCORE_LOCAL_MODEL_WINDOW", 8192, minimum=512),  # tokens
    "HUB": read_text("CHATCORE_MODEL_HUB", "https://huggingface.co"),
    # Each folder is searched for the weights; a download goes to the first one.
    "FOLDERS": [DATA_DIR / "models", USER_CACHE_DIR],
    # `serve` sets both, so that a restarted model keeps its address. Otherwise the model chooses.
    "PORT": read_number("CHATCORE_LOCAL_MODEL_PORT", 0, minimum=0, maximum=65_535),
    "API_KEY": read_text("CHATCORE_LOCAL_MODEL_API_KEY"),
}

COMPACTION: dict[str, Any] = {
    "BACKEND": "compaction.backends.chatcore.backend.ChatcoreBackend",
    # The model of conversations, whose primary key is a UUID. Like AUTH_USER_MODEL, it cannot
    # change after the first migration.
    "SESSION_MODEL": "chatcore.Session",
    "POLICY": read_text("CHATCORE_POLICY", "oneclaw"),
    # Whether compaction starts by itself; messages are stored in any case. The two switches are
    # NeuroLink's (docs/origins.md#neurolink).
    "AUTOMATIC": read_switch("CHATCORE_MEMORY_ENABLED")
    and read_switch("CHATCORE_SUMMARIZATION_ENABLED"),
    # Replaces the trigger.threshold of the policies, for sessions without a threshold of their own:
    # a share of the window or a number of tokens.
    "THRESHOLD": read_threshold("CHATCORE_TOKEN_THRESHOLD"),
    # Writes the summaries if neither the model's row nor the policy names a model for them.
    "SUMMARY_MODEL": read_summary_model(
        "CHATCORE_SUMMARIZATION_PROVIDER", "CHATCORE_SUMMARIZATION_MODEL"
    ),
}

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": "chatcore.serving.logs.build_line_formatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {
        "handlers": ["stderr"],
        "level": read_choice(
            "CHATCORE_LOG_LEVEL", ["INFO", "DEBUG", "WARNING", "ERROR", "CRITICAL"]
        ),
    },
    "loggers": {"httpx2": {"level": "WARNING"}, "django.request": {"level": "ERROR"}},
}
