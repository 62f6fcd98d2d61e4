"""Read and check the environment variables behind the settings.

Every reader raises ImproperlyConfigured with one sentence that names the variable. The command
`chatcore` prints that sentence and ends, so that a wrong value becomes neither a stack trace nor a
silent default.
"""

import contextlib
import importlib.util
import json
import os
import re
import secrets
import warnings
import zoneinfo
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

import environ
from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured

from chatcore.base import secret_files
from chatcore.base.extras import require_extra


class FilledVariables(Mapping[str, str]):
    """The environment without its empty variables: `X=` means the same as no X.

    Compose files write `${X:-}`, and unit files have lines to fill in.
    """

    def __getitem__(self, name: str) -> str:
        value = os.environ[name]
        if not value.strip():
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name, value in os.environ.items() if value.strip())

    def __len__(self) -> int:
        return sum(1 for _ in self)


env = environ.Env()
env.ENVIRON = FilledVariables()

FALSE_WORDS = ("false", "off", "no", "n", "0")
# Parts that are not only dots: browsers take those for steps.
BASE_PATH = re.compile(r"(/(?!\.+(/|$))[A-Za-z0-9._~-]+)+")
PUBLIC_URL = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:]+\])(:\d{1,5})?", re.IGNORECASE)
REDIS_SCHEMES = ("redis://", "rediss://", "unix://")
# What the keys of search services look like. `brave:KEY` names the service of any other key.
SEARCH_KEYS = {
    "tavily": re.compile(r"tvly-\S+"),
    "brave": re.compile(r"BSA\S+"),
    "exa": re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE),
}
SHARE = re.compile(r"0?\.\d+|1(\.0+)?")
TOKEN_COUNT = re.compile(r"[1-9]\d{0,9}")

T = TypeVar("T")


def read_text(name: str, default: str = "") -> str:
    """Return the variable's text."""
    value: str = _read_variable(env.str, name, default)
    return value


def read_list(name: str, default: list[str]) -> list[str]:
    """Return the parts of the variable's text, which are separated by commas."""
    values: list[str] = _read_variable(env.list, name, default)
    return values


def read_names(name: str, choices: list[str], default: str = "") -> list[str]:
    """Return those of `choices` that the variable names, separated by commas; `all` means all."""
    values = [value.strip().lower() for value in read_list(name, [default] if default else [])]
    if values == ["all"]:
        return choices
    unknown_names = [value for value in values if value not in choices]
    if unknown_names:
        raise ImproperlyConfigured(
            f"{name} names {unknown_names[0]!r}; it can be `all`, or some of {', '.join(choices)}."
        )
    return values


def read_time_zone(name: str, default: str) -> str:
    """Return the name of a time zone, as `Europe/Berlin`."""
    value = read_text(name) or default
    try:
        zoneinfo.ZoneInfo(value)
    except (KeyError, ValueError, OSError):
        raise ImproperlyConfigured(
            f"{name} is {value!r}; it must be the name of a time zone, as Europe/Berlin."
        ) from None
    return value


def read_pairs(name: str) -> dict[str, str]:
    """Return pairs `this=that`, separated by commas, in their order."""
    pairs: dict[str, str] = {}
    for value in read_list(name, []):
        left, separator, right = (part.strip() for part in value.partition("="))
        if not (left and separator and right):
            raise ImproperlyConfigured(
                f"{name} has {value.strip()!r}; it takes NAME=MODEL, and commas."
            )
        pairs[left] = right
    return pairs


def read_commands(name: str) -> dict[str, list[str]]:
    """Return named commands, each a list of its words, from a JSON object."""
    commands: object = None
    with contextlib.suppress(ValueError, RecursionError):
        commands = json.loads(read_text(name, "{}") or "{}")
    is_valid = isinstance(commands, dict) and all(
        isinstance(words, list) and words and all(isinstance(word, str) for word in words)
        for words in commands.values()
    )
    if not is_valid:
        raise ImproperlyConfigured(
            f'{name} is no JSON object of commands; one is as {{"files": ["mcp-files", "/srv"]}}.'
        )
    return cast(dict[str, list[str]], commands)


def read_choice(name: str, choices: list[str]) -> str:
    """Return the one of `choices` that the variable names in any case; the first by default.

    An empty text as the first one means that the variable is not set.
    """
    value = read_text(name, choices[0])
    for choice in choices:
        if value.strip().lower() == choice.lower():
            return choice
    raise ImproperlyConfigured(
        f"{name} is {value!r}; it can be {' or '.join(filter(None, choices))}."
    )


def read_number(name: str, default: int, *, minimum: int, maximum: int | None = None) -> int:
    """Return a whole number between `minimum` and `maximum`."""
    value: int = _read_variable(env.int, name, default)
    if value < minimum:
        raise ImproperlyConfigured(f"{name} is {value}; it must be at least {minimum}.")
    if maximum is not None and value > maximum:
        raise ImproperlyConfigured(f"{name} is {value}; it must be at most {maximum}.")
    return value


def read_switch(name: str, default: bool = True) -> bool:
    """Return whether a switch is on.

    An unknown word is an error. Otherwise a typing mistake would switch something off unnoticed.
    """
    value = read_text(name, str(default)).strip().lower()
    if value in env.BOOLEAN_TRUE_STRINGS:
        return True
    if value in FALSE_WORDS:
        return False
    raise ImproperlyConfigured(f"{name} is {value!r}; it can be true or false.")


def read_threshold(name: str) -> float | int | None:
    """Return a share of the context window (0 to 1, a float) or a number of tokens (an int).

    Returns None if the variable is not set or says `auto`.
    """
    text = read_text(name, "auto").strip().lower()
    if text in ("", "auto"):
        return None
    if SHARE.fullmatch(text) and float(text) > 0:
        return float(text)
    if TOKEN_COUNT.fullmatch(text):
        return int(text)
    raise ImproperlyConfigured(
        f"{name} is {text!r}; it can be a share up to 1, as 0.8, or a whole number of tokens."
    )


def read_folder(name: str, default: str) -> Path:
    """Return the path of a folder, which is created for its owner alone if it is missing."""
    path = Path(read_text(name, default)).resolve()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(
            f"{name} is {str(path)!r}, which is no folder and cannot be made one: {error.strerror}."
        ) from None
    return path


def read_database(name: str, default: str) -> dict[str, Any]:
    """Return the settings of the database at a postgres:// or sqlite:/// address."""
    database: dict[str, object] = {}
    # What the parser warns of or raises may contain the password, so neither is printed.
    with warnings.catch_warnings(), contextlib.suppress(ValueError):
        warnings.simplefilter("ignore")
        database = env.db_url(name, default=default)
    if not str(database.get("ENGINE", "")).startswith("django.db.backends."):
        raise ImproperlyConfigured(
            f"{name} has no address of a database in it; one begins with postgres:// or sqlite:///."
        )
    if database["ENGINE"] == "django.db.backends.postgresql":
        require_extra("postgres", f"The database of {name}")
    return database


def read_email(name: str) -> dict[str, Any]:
    """Return Django's settings of the mail server at an address; an empty dictionary without one.

    The address is as smtp+tls://user:password@mail.example.com:587; filemail:///folder writes
    every message to a file.
    """
    if not read_text(name).strip():
        return {}
    email: dict[str, Any] = {}
    # What the parser raises may contain the password, so it is not printed.
    with contextlib.suppress(ValueError, ImproperlyConfigured, KeyError):
        email = env.email_url(name)
    if not email.get("EMAIL_BACKEND"):
        raise ImproperlyConfigured(
            f"{name} has no address of a mail server in it; one begins with smtp://, smtp+tls:// or"
            " smtp+ssl://."
        )
    if email.get("EMAIL_FILE_PATH"):  # the parser takes the slash before it away
        email["EMAIL_FILE_PATH"] = str(Path("/") / email["EMAIL_FILE_PATH"])
    return email


def is_safe_address(url: str) -> bool:
    """Return whether nobody on the way to this address can read or change what is said."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    is_here = parts.hostname in ("localhost", "127.0.0.1", "::1")
    return bool(parts.hostname) and (
        parts.scheme == "https" or (parts.scheme == "http" and is_here)
    )


def read_public_url(name: str) -> str:
    """Return the address under which people reach the server, without a slash at its end.

    Returns an empty string if none is set.
    """
    url = read_text(name).strip().rstrip("/")
    if url and not PUBLIC_URL.fullmatch(url):
        raise ImproperlyConfigured(
            f"{name} has no address of a server in it; one is as https://chat.example.com, without"
            " a path."
        )
    return url.lower()


def read_base_path(name: str) -> str:
    """Return the path of the public address below which the server is, or an empty string."""
    path = read_text(name).strip()
    if path and not BASE_PATH.fullmatch(path):
        raise ImproperlyConfigured(
            f"{name} is {path!r}, which is no path that can be used; one is as /chat: it begins"
            " with a slash, ends without one, and has letters, digits and - . _ ~ between them."
        )
    return path


def read_origins(name: str) -> list[str]:
    """Return the addresses of servers that the variable lists, separated by commas."""
    origins = [origin.strip().rstrip("/").lower() for origin in read_list(name, [])]
    for origin in origins:
        if not PUBLIC_URL.fullmatch(origin):
            raise ImproperlyConfigured(
                f"{name} has {origin!r}, which is no address of a server; one is as"
                " https://chat.example.com, without a path."
            )
    return origins


def read_redis_url(name: str) -> str:
    """Return the address of a Redis server, or an empty string if none is set."""
    url = read_text(name)
    if url and not url.startswith(REDIS_SCHEMES):
        raise ImproperlyConfigured(
            f"{name} has no address of a Redis server in it; one begins with redis://."
        )
    if url:
        require_extra("redis", f"The server of {name}")
    return url


def read_search_service(name: str) -> tuple[str, str] | None:
    """Return a search service and its address or key: ("searxng", "http://…"); None if none is set.

    The value is the address of a SearXNG, or a key of one of the services in SEARCH_KEYS.
    """
    value = read_text(name).strip()
    try:
        return parse_search_service(value) if value else None
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be {error}") from None


def parse_search_service(value: str) -> tuple[str, str]:
    """Return the name of a search service, and its address or key. Raises ValueError."""
    address = urlsplit(value)
    if address.scheme in ("http", "https") and address.hostname:
        return "searxng", value
    service, colon, key = value.partition(":")
    if colon and service in SEARCH_KEYS and key:
        return service, key
    for service, form in SEARCH_KEYS.items():
        if form.fullmatch(value):
            return service, value
    raise ValueError(
        "the address of a SearXNG, or a key of Brave, Tavily or Exa;"
        " brave:KEY says whose key it is."
    )


def read_sentry_dsn(name: str) -> str:
    """Return where errors are reported, or an empty string. The extra `sentry` must be there."""
    dsn = read_text(name).strip()
    if dsn and importlib.util.find_spec("sentry_sdk") is None:
        raise ImproperlyConfigured(f"{name} needs a package: pip install 'chatcore[sentry]'.")
    return dsn


def read_secret_key(name: str, *, folder: Path, is_shared: bool) -> str:
    """Return Django's secret key. One is made in `folder` if none is set."""
    return read_text(name) or _load_secret(
        name, folder / "secret-key", lambda: secrets.token_urlsafe(50), is_shared=is_shared
    )


def read_encryption_keys(name: str, *, folder: Path, is_shared: bool) -> list[str]:
    """Return the keys that encrypt API keys. One is made in `folder` if none is set."""
    keys = read_list(name, [])
    if not keys:
        path = folder / "key-encryption-key"
        keys = [_load_secret(name, path, _generate_encryption_key, is_shared=is_shared)]
    for position, key in enumerate(keys, start=1):
        try:
            Fernet(key)
        except ValueError:
            raise ImproperlyConfigured(
                f"{name} has a key that is none, the one at place {position}:"
                " 32 bytes in URL-safe base64."
            ) from None
    return keys


def read_summary_model(provider_name: str, model_name: str) -> str:
    """Return `provider/model` or `model`, or an empty string for the conversation's own model."""
    provider = read_text(provider_name).strip()
    model = read_text(model_name).strip()
    if provider and not model:
        raise ImproperlyConfigured(
            f"{provider_name} is set without {model_name}: name the model too."
        )
    return f"{provider}/{model}" if provider else model


def _read_variable(reader: Callable[..., T], name: str, default: T) -> T:
    try:
        return reader(name, default=default)
    except (ValueError, TypeError) as error:
        raise ImproperlyConfigured(f"{name} has a value that cannot be used: {error}") from None


def _load_secret(
    name: str, path: Path, create_secret: Callable[[], str], *, is_shared: bool
) -> str:
    """Return the secret in a file, which is made unless the database may be that of others too."""
    try:
        if is_shared and not secret_files.has_secret(path):
            # Another machine would make another one, and could not read what this one stores.
            raise ImproperlyConfigured(
                f"{name} must be set with PostgreSQL, to the same value on each machine"
                " (docs/settings.md)."
            )
        return secret_files.load_secret(path, create_secret)
    except OSError as error:
        raise ImproperlyConfigured(
            f"{name} is not set, and {str(path)!r} cannot take its place: {error.strerror}."
        ) from None


def _generate_encryption_key() -> str:
    return Fernet.generate_key().decode()
