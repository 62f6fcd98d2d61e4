"""Apps that can be absent: which there are, and what the core asks of those that are installed.

The core knows them by the list below and never by import. An app of another project takes part in
the same way. docs/apps.md says how one is written.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from uuid import UUID

from django.apps import AppConfig, apps
from django.db.models import Model
from django.utils.module_loading import import_string

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.utils.safestring import SafeString

    from chatcore.accounts.audit import Act
    from chatcore.accounts.rights import Kind
    from chatcore.accounts.spending import CallEnd, Reservation
    from chatcore.events.types import Event

Card = dict[str, object]
Place = Literal[
    "settings",
    "chat_settings",
    "chat_menu",
    "sidebar",
    "context_panel",
    "summary_card",
    "timeline",
    "message_menu",
    "chat_dialogs",
    "first_model",
    "first_model_ways",
]
Rows = TypeVar("Rows", bound="QuerySet[Model, object]")


@dataclass(frozen=True)
class OptionalApp:
    """An app of Chatcore that CHATCORE_WITHOUT may name.

    Its tables are named here because they are looked for while the app is absent, children first.
    """

    name: str
    tables: tuple[str, ...] = ()
    package: str = "chatcore.contrib"
    needs: str = ""  # the extra without whose packages it is absent (chatcore/base/extras.py)
    # What it puts in the place of settings of the core (chatcore/accounts/settings.py).
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The dotted path of its package."""
        return f"{self.package}.{self.name}"


# In the order in which they are installed and asked.
OPTIONAL_APPS = (
    OptionalApp("audit", tables=("chatcore_auditentry",)),
    OptionalApp("holds", tables=("chatcore_hold",)),
    OptionalApp("budgets", tables=("chatcore_budget", "chatcore_usagesum")),
    OptionalApp("backups"),
    OptionalApp("compat", tables=("compat_historykey", "chatcore_storedresponse")),
    OptionalApp("group_rights", tables=("chatcore_grouprights",)),
    OptionalApp(
        "imports",
        tables=(
            "chatcore_importedchat",
            "chatcore_importproblem",
            "chatcore_importpart",
            "chatcore_importfile",
            "chatcore_import",
        ),
    ),
    OptionalApp(
        "invitations",
        tables=("chatcore_invitation_groups", "chatcore_invitation"),
        settings={
            "SIGN_UP_CHOICES": ["closed", "invitation", "open"],
            "ACCOUNT_ADAPTER": "chatcore.contrib.invitations.adapters.AccountAdapter",
            "SOCIALACCOUNT_ADAPTER": "chatcore.contrib.invitations.adapters.SignOnAdapter",
        },
    ),
    OptionalApp("local_model"),
    OptionalApp("mcp_server", needs="mcp"),
    OptionalApp("metrics", needs="metrics"),
    OptionalApp("sent_requests", tables=("chatcore_sentrequest", "chatcore_senttext")),
    OptionalApp("sharing", tables=("chatcore_share",)),
    OptionalApp("prompts", tables=("prompts_prompt",)),
    OptionalApp("terminal", needs="terminal"),
    OptionalApp(
        "tracing",
        settings={"MIDDLEWARE": ["chatcore.contrib.tracing.middleware.RequestTraces"]},
    ),
    OptionalApp("webhooks", tables=("chatcore_webhookdelivery", "chatcore_webhook")),
    OptionalApp(
        "memory",
        package="compaction",
        tables=(
            "compaction_sentrules",
            "compaction_standingrule",
            "compaction_ledgerline",
            "compaction_leafcomposition",
            "compaction_summaryleaf",
        ),
        settings={
            "ENUM_NAMES": {
                "LedgerKindEnum": "compaction.memory.models.LedgerLine.Kind",
                "LedgerStatusEnum": "compaction.memory.models.LedgerLine.Status",
            }
        },
    ),
    OptionalApp("neurolink", package="compaction.systems"),
    OptionalApp("lota", package="compaction.systems", tables=("compaction_workingstate",)),
    OptionalApp("wolffish", package="compaction.systems"),
    OptionalApp("baseagent", package="compaction.systems"),
)


@dataclass(frozen=True)
class GaugeValue:
    """A value of now that an app has for operators. `name` begins with `chatcore_`."""

    name: str
    text: str
    value: float


@dataclass(frozen=True)
class Chore:
    """What a web process does every so many seconds.

    `run` is asynchronous; that of a deletion is not, and waits while the clock may be wrong.
    """

    seconds: float
    run: Callable[[], Any]
    is_deletion: bool = False


class Extension:
    """What an app does where the core asks; each method does nothing until an app says more."""

    # Paths of REST that a token of the scope "chat" may not use.
    account_paths: tuple[str, ...] = ()
    # A condition of SQL that is true where it may limit anybody's tools: each request and each
    # measurement of a context asks it (chatcore/models/statements.py).
    tool_limits_sql: str = ""
    # A condition of SQL on the row `session` that is true where `pre_request` may have something to
    # do; without one, no request sends the signal (chatcore/models/statements.py).
    pre_request_sql: str = ""
    # A model whose rows say when their `session` came here, which retention takes for a use.
    arrivals: str = ""
    # Dotted paths of modules with `has_due_jobs()` and `run_due_jobs()`: the worker asks them.
    worker_jobs: tuple[str, ...] = ()
    # The dotted path of what it has to do with `serve` (chatcore.serving.programs.Companion).
    companion: str = ""
    # The dotted path of the class that counts what happens (chatcore.base.metrics.Counts).
    counts: str = ""
    # Paths that are answered before Django, and the dotted paths of what answers.
    probes: Mapping[str, str] = MappingProxyType({})
    # Dotted paths of what it stores beside a session (chatcore.sessions.sections.SessionSection).
    session_sections: tuple[str, ...] = ()

    def select_kept_owners(self) -> "QuerySet[Model, object] | None":
        """Select the keys of the users of whom nothing may be deleted or overwritten."""
        return None

    def limit_names(self, user_ids: object, kind: "Kind") -> frozenset[str] | None:
        """Return the only names of a kind that a user may use; None for all of them.

        `user_ids` has the user's key: a list, or a query. A name may end with `*`, for any rest.
        """
        return None

    def list_keepers(self, user_ids: Sequence[object]) -> list[str]:
        """Say what keeps the accounts of these users from being deleted, a text for each."""
        return []

    def check_call(self, user_id: object) -> None:
        """Raise CallRefused if the user may make no call of a language model now."""

    def reserve_call(self, call: "Reservation", *, may_refuse: bool) -> None:
        """Note a call that begins. Raises CallRefused, if it may."""

    def settle_call(self, call: "Reservation", end: "CallEnd") -> None:
        """Note a call that has ended, in the transaction that stores its answer."""

    def record_act(self, act: "Act") -> None:
        """Note what somebody did, in the transaction of the act."""

    def on_events(self, session_id: UUID, events: "Sequence[Event]") -> None:
        """Note events of a session that are stored in this transaction."""

    def list_chores(self) -> "Sequence[Chore]":
        """Return what goes on besides requests."""
        return []

    def list_gauges(self) -> Iterable[GaugeValue]:
        """Return values of now for `/metrics`, from the database: the same on all machines."""
        return []

    def list_cards(self, request: "HttpRequest") -> "Iterable[Card]":
        """Return cards of the admin's first page (chatcore/admin/overview.py)."""
        return []

    def build_page_parts(
        self, place: "Place", request: "HttpRequest", subject: object
    ) -> "list[SafeString]":
        """Render what a page shows of the app.

        `subject` is the chat of `chat_settings`, and the id of that of `chat_menu` and `timeline`.
        """
        return []

    def find_reason_to_stay(self) -> str:
        """Say why the app's rows may not be dropped now; empty if they may."""
        return ""


class ExtensionConfig(AppConfig):
    """The configuration of an app; `extension` is the dotted path of its Extension, if it has one.

    A subclass says `default = True`: Django sees two configurations in its module.
    """

    extension: str = ""


class Refusal(Exception):
    """Something that is not done; the text is for the user. REST answers it as a problem."""

    status: int
    type: str
    retry_after: int | None = None  # seconds


def list_absent_apps() -> list[OptionalApp]:
    """Return the apps that are left out."""
    return [app for app in OPTIONAL_APPS if not apps.is_installed(app.path)]


def list_extension_configs() -> list[ExtensionConfig]:
    """Return the configurations of the installed apps that have an extension."""
    return [each for each in apps.get_app_configs() if isinstance(each, ExtensionConfig)]


@cache
def get_extensions(method: str = "") -> tuple[Extension, ...]:
    """Return the extensions of the installed apps, in the order of INSTALLED_APPS.

    With `method` only those that say something of their own there.
    """
    if method:
        default = getattr(Extension, method)
        return tuple(x for x in get_extensions() if getattr(type(x), method) is not default)
    paths = [config.extension for config in list_extension_configs() if config.extension]
    return tuple(import_string(path)() for path in paths)


def list_kept_owners() -> "list[QuerySet[Model, object]]":
    """Return queries of the users of whom nothing may be deleted."""
    queries = [each.select_kept_owners() for each in get_extensions("select_kept_owners")]
    return [query for query in queries if query is not None]


def exclude_kept(rows: Rows, owner: str) -> Rows:
    """Leave out the rows of users of whom nothing may be deleted; `owner` leads to the user."""
    for kept_owners in list_kept_owners():
        rows = rows.exclude(**{f"{owner}__in": kept_owners})
    return rows


def build_page_parts(
    place: Place, request: "HttpRequest", subject: object = None
) -> "list[SafeString]":
    """Return what apps show at a place of a page."""
    return [
        part
        for extension in get_extensions()
        for part in extension.build_page_parts(place, request, subject)
    ]


def list_keepers(user_ids: Sequence[object]) -> list[str]:
    """Say what keeps the accounts of these users from being deleted."""
    return [text for each in get_extensions() for text in each.list_keepers(user_ids)]
