"""Django's settings; chatcore/base/environment.py reads those of environment variables."""

import socket
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from chatcore.accounts.settings import *  # noqa: F403
from chatcore.accounts.settings import ACCOUNT_APPS
from chatcore.admin.look import *  # noqa: F403
from chatcore.base.environment import (
    read_choice,
    read_commands,
    read_database,
    read_encryption_keys,
    read_folder,
    read_list,
    read_names,
    read_number,
    read_origins,
    read_pairs,
    read_public_url,
    read_redis_url,
    read_search_service,
    read_secret_key,
    read_sentry_dsn,
    read_summary_model,
    read_switch,
    read_text,
    read_threshold,
    read_time_zone,
)
from chatcore.base.extras import has_extra
from chatcore.base.installed_apps import get_app_setting, read_installed_apps
from chatcore.base.rest.conventions import REST_FRAMEWORK as REST_FRAMEWORK
from chatcore.base.rest.conventions import SPECTACULAR_SETTINGS as SPECTACULAR_SETTINGS
from chatcore.files.settings import build_folder_storage, read_object_storage
from chatcore.serving.base_path import *  # noqa: F403
from chatcore.serving.base_path import BASE_PATH
from chatcore.serving.logs import build_settings

SPECTACULAR_SETTINGS["SERVERS"] = [{"url": BASE_PATH}] if BASE_PATH else []
BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = read_folder("CHATCORE_DATA_DIR", "./var")

DEBUG = read_switch("CHATCORE_DEBUG", default=False)
DEFAULT_EXCEPTION_REPORTER_FILTER = "chatcore.web.technical_pages.SecretsFilter"

DATABASES = {
    "default": read_database("CHATCORE_DATABASE_URL", f"sqlite:///{DATA_DIR / 'chatcore.sqlite3'}")
}
# Other machines may use the same database, and then need the same secrets.
IS_DATABASE_SHARED = DATABASES["default"]["ENGINE"] != "django.db.backends.sqlite3"
SECRET_KEY = read_secret_key("CHATCORE_SECRET_KEY", folder=DATA_DIR, is_shared=IS_DATABASE_SHARED)

# Where people reach the server, behind a proxy that speaks HTTPS. All that depends on it follows.
PUBLIC_URL = read_public_url("CHATCORE_PUBLIC_URL")
PUBLIC_ADDRESS = urlsplit(PUBLIC_URL)
IS_HTTPS = PUBLIC_ADDRESS.scheme == "https"
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "https" if IS_HTTPS else "http"
NAMED_HOSTS = read_list("CHATCORE_ALLOWED_HOSTS", [])
# This machine may always ask: with the printed link, and to see whether the server lives.
LOOPBACK_HOSTS = ["127.0.0.1", "localhost", "[::1]"]
ALLOWED_HOSTS = [
    *NAMED_HOSTS,
    *([PUBLIC_ADDRESS.netloc.removesuffix(f":{PUBLIC_ADDRESS.port}")] if PUBLIC_URL else []),
    *LOOPBACK_HOSTS,
]
# A leading dot means all subdomains in ALLOWED_HOSTS; here an asterisk does.
CSRF_TRUSTED_ORIGINS = [
    *([PUBLIC_URL] if PUBLIC_URL else []),
    *(
        f"https://*{host}" if host.startswith(".") else f"https://{host}"
        for host in NAMED_HOSTS
        if host != "*"
    ),
]
CSRF_FAILURE_VIEW = "chatcore.web.refused_forms.refuse_form"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = IS_HTTPS
SECURE_SSL_REDIRECT = IS_HTTPS
SECURE_SSL_HOST = PUBLIC_ADDRESS.netloc or None
SECURE_HSTS_SECONDS = 30 * 24 * 3600 if IS_HTTPS else 0
# Neither the other hosts of the domain nor the lists in browsers are this server's business.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]

# Pages of these origins may use the API with a token. Cookies are never sent across origins.
CORS_ALLOWED_ORIGINS = read_origins("CHATCORE_CORS_ORIGINS")
CORS_URLS_REGEX = r"^/(?:api|v1)/"
CORS_ALLOW_HEADERS = ["*"]
CORS_EXPOSE_HEADERS = ["*"]
CORS_PREFLIGHT_MAX_AGE = 3_600

INSTALLED_APPS = [
    "unfold.apps.BasicAppConfig",
    "unfold.contrib.filters",
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
    "axes",
    *ACCOUNT_APPS,
    "corsheaders",
    "drf_spectacular",
    *(["drf_spectacular_sidecar"] if has_extra("api-docs") else []),
    "django_q",
    "models_registry.apps.ModelsRegistry",
    "chatcore.apps.Chatcore",
    *(app.path for app in read_installed_apps()),
    "compaction.apps.Compaction",
]

MIDDLEWARE = [
    "chatcore.serving.probes.Probes",
    "chatcore.web.middleware.RequestIds",
    *get_app_setting("MIDDLEWARE", []),
    "corsheaders.middleware.CorsMiddleware",
    "chatcore.web.middleware.SecurityHeaders",
    "chatcore.web.middleware.CompressedPages",
    "chatcore.web.middleware.OutageResponses",
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
    "allauth.account.middleware.AccountMiddleware",
    "chatcore.accounts.sign_on.SignOn",
    "chatcore.accounts.devices.Devices",
    "chatcore.accounts.second_factor.SecondFactorRequired",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "chatcore.urls"
ASGI_APPLICATION = "chatcore.asgi.application"
SESSION_ENGINE = "chatcore.web.session_store"
SESSION_COOKIE_HTTPONLY = True
# Days after its last sign-in on which a browser is asked again.
SESSION_COOKIE_AGE = 24 * 3600 * read_number("CHATCORE_SIGN_IN_DAYS", 14, minimum=1, maximum=365)
SESSION_COOKIE_SAMESITE = "Lax"

# At the top of a checkout; the wheel has them in the package (setup.py).
WHEEL_TEMPLATES_DIR = Path(__file__).resolve().parent / "templates"
TEMPLATES_DIR = WHEEL_TEMPLATES_DIR if WHEEL_TEMPLATES_DIR.is_dir() else BASE_DIR / "templates"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        # Named, because the template of the admin site must come before the admin's own.
        "DIRS": [TEMPLATES_DIR],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "chatcore.accounts.context.describe_sign_in",
            ],
            "libraries": {
                "chat": "chatcore.web.templatetags.chat",
                "scripts": "chatcore.web.templatetags.scripts",
            },
        },
    }
]

SQLITE_PRAGMAS = (
    "PRAGMA journal_mode=WAL;"
    "PRAGMA synchronous=FULL;"
    "PRAGMA mmap_size=134217728;"
    "PRAGMA foreign_keys=ON;"
    # What is deleted is overwritten, and does not stay in free pages of the file.
    "PRAGMA secure_delete=ON;"
)
if not IS_DATABASE_SHARED:
    # SQLite has one writer at a time; the others try again for 20 s. Threads keep connections,
    # because opening one for each call costs 15 ms before each first word of an answer.
    DATABASES["default"]["CONN_MAX_AGE"] = 600
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": SQLITE_PRAGMAS,
    }
else:
    # The address may have options of its own, as ?sslmode=require.
    DATABASE_OPTIONS: dict[str, object] = {
        "connect_timeout": 5,
        **DATABASES["default"].get("OPTIONS", {}),
    }
    DATABASES["default"]["OPTIONS"] = DATABASE_OPTIONS
    # PgBouncer gives each statement another connection, on which a cursor of the server is unknown.
    DATABASES["default"]["DISABLE_SERVER_SIDE_CURSORS"] = True
    # Threads share a few connections, also behind PgBouncer: there are many more of them. A request
    # waits for a connection for at most `timeout` seconds, and is then refused. The worker, which
    # forks, uses none (`compaction/management/commands/worker.py`).
    DATABASE_OPTIONS["pool"] = {"min_size": 2, "max_size": 20, "timeout": 10}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = read_redis_url("CHATCORE_REDIS_URL")
REDIS_CACHE = {"BACKEND": "chatcore.base.caches.ResilientRedisCache", "LOCATION": REDIS_URL}
DATABASE_CACHE = {
    "BACKEND": "django.core.cache.backends.db.DatabaseCache",
    "LOCATION": "chatcore_cache",
}
CACHES = {
    "default": REDIS_CACHE if REDIS_URL else DATABASE_CACHE,
    # The queue's statistics, which nobody reads; in a table each would be a durable write.
    "queue": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"},
}

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "German"), ("fr", "French")]
LOCALE_PATHS = [BASE_DIR / "chatcore/web/locale"]
TIME_ZONE = read_time_zone("CHATCORE_TIME_ZONE", "UTC")
USE_I18N = True
USE_TZ = True

# With a folder that `chatcore collectstatic` has filled, names have a hash in them, so browsers
# keep the files for good, and compressed copies are sent. `serve` fills one by itself. Without one,
# packages have the files.
STATIC_DIR = read_text("CHATCORE_STATIC_DIR")
STATIC_ROOT = Path(STATIC_DIR) if STATIC_DIR else DATA_DIR / "static"
if not STATIC_DIR:
    STATIC_ROOT.mkdir(exist_ok=True)  # else WhiteNoise warns at each start that it is missing
WHITENOISE_USE_FINDERS = not STATIC_DIR
WHITENOISE_AUTOREFRESH = DEBUG
# Names with a hash: Django's, and those of parts that bin/build has split off.
WHITENOISE_IMMUTABLE_FILE_TEST = r"\.[0-9a-f]{12}\.\w+$|/built/chunk-\w{8}\.js$"
STORAGES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "chatcore.serving.static_files.HashedFiles"
        if STATIC_DIR
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}
# Whole outputs of tools are in a folder, or, with a bucket, in object storage that speaks S3, and
# uploaded files too. The keys are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a role's.
OBJECT_STORAGE = read_object_storage("CHATCORE_S3")
STORAGES["outputs"] = OBJECT_STORAGE or build_folder_storage(DATA_DIR / "outputs")
# Bytes. An import may be this large; every other view has a smaller limit of its own.
DATA_UPLOAD_MAX_MEMORY_SIZE = 51 * 1024 * 1024

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "chatcore.accounts.passwords.TokenRevoker"},
]
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesBackend",
    "django.contrib.auth.backends.ModelBackend",
    "chatcore.accounts.backends.EmailBackend",
]
# After so many wrong passwords for an account, or from an address, none is tried for some minutes.
AXES_FAILURE_LIMIT = read_number("CHATCORE_SIGN_IN_ATTEMPTS", 10, minimum=1)
AXES_COOLOFF_TIME = timedelta(minutes=read_number("CHATCORE_SIGN_IN_PAUSE_MINUTES", 10, minimum=1))
AXES_LOCKOUT_PARAMETERS = ["username", "ip_address"]
AXES_USERNAME_CALLABLE = "chatcore.accounts.guessed_passwords.name_account"
AXES_LOCKOUT_CALLABLE = "chatcore.accounts.guessed_passwords.refuse_sign_in"
AXES_CLIENT_STR_CALLABLE = "chatcore.accounts.guessed_passwords.describe_client"
# What comes during the pause does not make it longer: somebody else could keep an account shut.
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_DISABLE_ACCESS_LOG = True
AXES_SENSITIVE_PARAMETERS = ["username", "csrfmiddlewaretoken", "next"]
AXES_VERBOSE = False

TOKEN_DAYS = read_number("CHATCORE_TOKEN_DAYS", 90, minimum=0, maximum=3_650)
REST_KNOX = {
    "AUTH_HEADER_PREFIX": "Bearer",
    # Of a token that is made without a term of its own; 0 days mean until it is revoked.
    "TOKEN_TTL": timedelta(days=TOKEN_DAYS) if TOKEN_DAYS else None,
    "TOKEN_LIMIT_PER_USER": None,
}
Q_CLUSTER = {
    "name": "chatcore",
    "orm": "default",
    "workers": read_number("CHATCORE_WORKERS", 2, minimum=1),
    "timeout": 120,
    # Seconds; more than any task may take (MAX_RUN_SECONDS in compaction/runs/tasks.py), because
    # after this time the queue gives the task to a second worker.
    "retry": 2000,
    "queue_limit": 1,
    "bulk": 1,
    "recycle": 500,
    "max_attempts": 1,
    "ack_failures": True,
    "save_limit": -1,
    "catch_up": False,
    "poll": 1.0,  # a query each time; half a second is a tenth of a per cent of a core at rest
    "guard_cycle": 2,
    "cache": "queue",
    "label": "Jobs",
}

# Output that is collected for others to read gets no link that signs an administrator in. systemd
# sets JOURNAL_STREAM for what it starts.
PRINTS_SIGN_IN_LINK = read_switch(
    "CHATCORE_PRINT_SIGN_IN_LINK", default=not read_text("JOURNAL_STREAM")
)
# After TERM a web process takes no new turns and lets those that run end, for so many seconds.
# People wait for `serve` to stop, so it ends them at once unless the variable is set.
DRAIN_SECONDS = read_number("CHATCORE_DRAIN_SECONDS", 300, minimum=0)
SERVE_DRAIN_SECONDS = read_number("CHATCORE_DRAIN_SECONDS", 0, minimum=0)

CHATCORE: dict[str, Any] = {
    # Keeps conversations inside the context window; chatcore/context/compactor.py describes it.
    # None: requests are sent as they are, and tool outputs are cut at 30,000 characters.
    "COMPACTOR": "compaction.compactor.Compactor",
    # Runs turns (chatcore/base/runner.py describes the class). None: threads of this process.
    "RUNNER": None,
    "KEY_ENCRYPTION_KEYS": read_encryption_keys(
        "CHATCORE_KEY_ENCRYPTION_KEYS", folder=DATA_DIR, is_shared=IS_DATABASE_SHARED
    ),
    # Environment variables, besides those of the catalog, that a provider's key may be read from.
    "PROVIDER_KEY_VARIABLES": read_list("CHATCORE_PROVIDER_KEY_VARIABLES", []),
    # A TOML file of providers, models, policies and groups, applied at each start.
    "SETUP_FILE": read_text("CHATCORE_SETUP_FILE"),
    # The APIs of others that are served (chatcore/contrib/compat).
    "COMPATIBLE_APIS": read_names(
        "CHATCORE_COMPATIBLE_APIS",
        ["chat_completions", "responses", "messages", "passed_on"],
        default="all",
    ),
    # Whether conversations that programs name by themselves are stored; each token may say no.
    "KEEP_PROGRAM_CONVERSATIONS": read_switch("CHATCORE_KEEP_PROGRAM_CONVERSATIONS", default=True),
    # Other names of models there: a pattern of names, and the model that is meant.
    "MODEL_ALIASES": read_pairs("CHATCORE_MODEL_ALIASES"),
    # The address of a SearXNG, or a key of Brave, Tavily or Exa: the tool search_web asks it.
    "WEB_SEARCH": read_search_service("CHATCORE_WEB_SEARCH"),
    # The tool of a shared MCP server that searches where a model's provider has no search.
    "WEB_SEARCH_TOOL": read_text("CHATCORE_WEB_SEARCH_TOOL"),
    "TURNS_PER_MINUTE": read_number("CHATCORE_TURNS_PER_MINUTE", 60, minimum=1),
    "COMPACTIONS_PER_MINUTE": read_number("CHATCORE_COMPACTIONS_PER_MINUTE", 10, minimum=1),
    # Answers that are written at once: by a web process, and for a user in all processes. Beyond
    # them a message is refused before anything of it is stored.
    "TURNS_AT_ONCE": read_number("CHATCORE_TURNS_AT_ONCE", 200, minimum=1),
    "TURNS_AT_ONCE_PER_USER": read_number("CHATCORE_TURNS_AT_ONCE_PER_USER", 20, minimum=1),
    # Whether people may use what no group of theirs says anything about (docs/accounts.md).
    "ALLOW_BY_DEFAULT": read_switch("CHATCORE_ALLOW_BY_DEFAULT"),
    "MODEL_TITLES": read_switch("CHATCORE_MODEL_TITLES"),  # of chats of the page (docs/costs.md)
    "CURRENCY": read_text("CHATCORE_CURRENCY", "USD"),  # of prices and budgets; a name only
    # Event streams that are open at once: in a web process, and for a user in each of them.
    "STREAMS_AT_ONCE": read_number("CHATCORE_STREAMS_AT_ONCE", 5_000, minimum=1),
    "STREAMS_AT_ONCE_PER_USER": read_number("CHATCORE_STREAMS_AT_ONCE_PER_USER", 50, minimum=1),
    # An answer that grows longer, or is written for longer, is stopped; what came is kept.
    "ANSWER_CHARS": read_number("CHATCORE_ANSWER_CHARS", 2_000_000, minimum=1_000),
    "ANSWER_SECONDS": read_number("CHATCORE_ANSWER_SECONDS", 3_600, minimum=10),
    # A turn fails when its model calls tools of the server so many times without answering. Rounds
    # of a client's own tools are not counted.
    "TOOL_ROUNDS": read_number("CHATCORE_TOOL_ROUNDS", 50, minimum=1),
    # Carries events between processes (chatcore/events/relays). None: a Redis stream if there is
    # CHATCORE_REDIS_URL, LISTEN and NOTIFY on PostgreSQL, and otherwise polling. Behind a pooler
    # that cannot LISTEN: "chatcore.events.relays.polling.PollingRelay".
    "EVENT_RELAY": read_text("CHATCORE_EVENT_RELAY") or None,
    # Days after which the events of a session are deleted; 0 keeps them for good. Messages stay.
    "EVENT_RETENTION_DAYS": read_number("CHATCORE_EVENT_RETENTION_DAYS", 3, minimum=0),
    # Days after which what an answer's request sent is deleted; 0 keeps it for good.
    "REQUEST_RETENTION_DAYS": read_number("CHATCORE_REQUEST_RETENTION_DAYS", 30, minimum=0),
    # Whole outputs of tools that are kept outside the database: of everyone, and of a user.
    "OUTPUT_MEGABYTES": read_number("CHATCORE_OUTPUT_MB", 10_000, minimum=0),
    "OUTPUT_MEGABYTES_PER_USER": read_number("CHATCORE_OUTPUT_MB_PER_USER", 1_000, minimum=0),
    # Sessions of a user that stay listed, without the pinned ones; 0 archives nothing.
    "MAX_SESSIONS": read_number("CHATCORE_MEMORY_MAX_SESSIONS", 0, minimum=0),
    # Days after which a session that nobody used is deleted; 0 keeps sessions for good.
    "SESSION_RETENTION_DAYS": read_number("CHATCORE_SESSION_RETENTION_DAYS", 0, minimum=0),
    "DELETION_GRACE_DAYS": read_number("CHATCORE_DELETION_GRACE_DAYS", 7, minimum=0),
    "TEMPORARY_HOURS": read_number("CHATCORE_TEMPORARY_HOURS", 24, minimum=1),
    "MODEL_LIST": read_text("CHATCORE_MODEL_LIST", "https://models.dev/api.json"),  # for the admin
    "SHARING": read_switch("CHATCORE_SHARING", default=True),
    # Private hosts that fetch_url may reach nevertheless: "host" means ports 80 and 443,
    # "host:port" another port.
    "FETCH_ALLOW_HOSTS": read_list("CHATCORE_FETCH_ALLOW_HOSTS", []),
    # Commands of MCP servers that run on this machine and speak over stdin and stdout; a JSON
    # object, as {"files": ["mcp-files", "/srv/docs"]}. A shared server with the address stdio:files
    # uses it. Only who starts Chatcore can name a command.
    "MCP_COMMANDS": read_commands("CHATCORE_MCP_COMMANDS"),
    # Whether the bytes of uploaded files are where the outputs are; else in the database.
    "FILES_IN_STORE": bool(OBJECT_STORAGE),
    # Seconds that a call of an MCP server's tool may take, the connection included.
    "MCP_SECONDS": read_number("CHATCORE_MCP_SECONDS", 60, minimum=1),
}

USER_CACHE_DIR = Path(read_text("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "chatcore"
LOCAL_MODEL: dict[str, Any] = {
    "SIZE": read_choice("CHATCORE_LOCAL_MODEL", ["1.5b", "0.5b"]),
    # `serve` tells its web processes what it does with the model; nobody tells those of other
    # programs.
    "START": read_choice("CHATCORE_LOCAL_MODEL_START", ["unknown", "yes", "no", "not installed"]),
    "PATH": read_text("CHATCORE_LOCAL_MODEL_PATH"),
    "WINDOW": read_number("CHATCORE_LOCAL_MODEL_WINDOW", 8192, minimum=512),  # tokens
    "HUB": read_text("CHATCORE_MODEL_HUB", "https://huggingface.co"),
    # Each folder is searched for the weights; a download goes to the first one.
    "FOLDERS": [DATA_DIR / "models", USER_CACHE_DIR],
    # `serve` sets both, so that a restarted model keeps its address. Otherwise the model chooses.
    # Where it listens, and the address under which others reach it if it is not that.
    "HOST": read_text("CHATCORE_LOCAL_MODEL_HOST", "127.0.0.1"),
    "URL": read_public_url("CHATCORE_LOCAL_MODEL_URL"),
    "PORT": read_number("CHATCORE_LOCAL_MODEL_PORT", 0, minimum=0, maximum=65_535),
    "API_KEY": read_text("CHATCORE_LOCAL_MODEL_API_KEY"),
}

COMPACTION: dict[str, Any] = {
    "POLICY": read_text("CHATCORE_POLICY"),
    # Whether compaction starts by itself; messages are stored in any case. The two switches are
    # NeuroLink's (compaction/systems/neurolink).
    "AUTOMATIC": read_switch("CHATCORE_MEMORY_ENABLED")
    and read_switch("CHATCORE_SUMMARIZATION_ENABLED"),
    # Replaces the trigger.threshold of the policies, for sessions without a threshold of their own:
    # a share of the window or a number of tokens.
    "THRESHOLD": read_threshold("CHATCORE_TOKEN_THRESHOLD"),
    # Writes the summaries if neither the model's row nor the policy names a model for them.
    "SUMMARY_MODEL": read_summary_model(
        "CHATCORE_SUMMARIZATION_PROVIDER", "CHATCORE_SUMMARIZATION_MODEL"
    ),
    # Days after which what was asked of a summary model is deleted, and runs that changed nothing;
    # 0 keeps them for good.
    "CALL_DAYS": read_number("CHATCORE_CALL_RETENTION_DAYS", 30, minimum=0),
    "WORKERS": read_number("CHATCORE_COMPACTION_WORKERS", 2, minimum=1),
    "LEASE_SECONDS": read_number("CHATCORE_COMPACTION_LEASE_SECONDS", 300, minimum=1),
    "ATTEMPTS": read_number("CHATCORE_COMPACTION_ATTEMPTS", 3, minimum=1),
    "RUN_DAYS": read_number("CHATCORE_RUN_RETENTION_DAYS", 0, minimum=0),
}

# What the processes of this machine have counted, for `/metrics`; each machine needs a folder of
# its own. With a token, whoever has it may read them; without one, this machine alone.
METRICS_DIR = Path(read_text("CHATCORE_METRICS_DIR") or DATA_DIR / "metrics" / socket.gethostname())
METRICS_TOKEN = read_text("CHATCORE_METRICS_TOKEN")

SENTRY_DSN = read_sentry_dsn("CHATCORE_SENTRY_DSN")
TRACES = read_choice("CHATCORE_TRACES", ["off", "on", "contents"])
LOGGING = build_settings(
    read_choice("CHATCORE_LOG_FORMAT", ["logfmt", "json"]),
    read_choice("CHATCORE_LOG_LEVEL", ["INFO", "DEBUG", "WARNING", "ERROR", "CRITICAL"]),
)
