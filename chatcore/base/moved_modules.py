"""Modules that have moved can be imported by their old names until version 0.3.

Settings, migrations, rows of the queue and programs of others may name them. Remove this module
with its table then.
"""

import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

# A package stands for all that is in it.
MOVED = {
    "chatcore.accounts.actors": "chatcore.base.actors",
    "chatcore.admin_look": "chatcore.admin.look",
    "chatcore.admin_site": "chatcore.admin.site",
    "chatcore.base.rest.request_ids": "chatcore.web.middleware",
    "chatcore.base.traces": "chatcore.contrib.tracing",
    "chatcore.base.traces.requests": "chatcore.contrib.tracing.middleware",
    "chatcore.caches": "chatcore.base.caches",
    "chatcore.checks": "chatcore.base.checks",
    "chatcore.cli": "chatcore.management.terminal",
    "chatcore.cli.main": "chatcore.__main__",
    "chatcore.cli.terminal": "chatcore.management.terminal.local",
    "chatcore.context.unsent_files": "chatcore.turns.unsent_files",
    "chatcore.databases": "chatcore.base.databases",
    "chatcore.databases.erasure": "chatcore.search.erasure",
    "chatcore.environment": "chatcore.base.environment",
    "chatcore.events.long_responses": "chatcore.api.long_responses",
    "chatcore.local_model": "chatcore.contrib.local_model",
    "chatcore.metrics": "chatcore.base.metrics",
    "chatcore.net": "chatcore.base.net",
    "chatcore.providers.traces": "chatcore.contrib.tracing.spans",
    "chatcore.provisioning": "chatcore.setup",
    "chatcore.rest": "chatcore.base.rest",
    "chatcore.rights": "chatcore.accounts.rights",
    "chatcore.row_by_row": "chatcore.base.row_by_row",
    "chatcore.secret_files": "chatcore.base.secret_files",
    "chatcore.serving.answers": "chatcore.serving.plain_responses",
    "chatcore.sessions.keeping": "chatcore.base.keeping",
    "chatcore.sessions.token_estimate": "chatcore.base.token_estimate",
    "chatcore.sessions.truncation": "chatcore.base.truncation",
    "chatcore.sessions.user_erasure": "chatcore.accounts.user_erasure",
    "chatcore.sessions.visible_text": "chatcore.base.visible_text",
    "chatcore.search.stems": "textkit.stems",
    "chatcore.search.stop_words": "textkit.stop_words",
    "chatcore.serving.local_model": "chatcore.contrib.local_model",
    "chatcore.slots": "chatcore.base.slots",
    "chatcore.spending": "chatcore.accounts",
    "chatcore.spending.calls": "chatcore.accounts.spending",
    "chatcore.statements": "chatcore.models.statements",
    "chatcore.threads": "chatcore.base.threads",
    "chatcore.traces": "chatcore.contrib.tracing",
    "chatcore.traces.calls": "chatcore.contrib.tracing.spans",
    "chatcore.traces.requests": "chatcore.contrib.tracing.middleware",
    "chatcore.transfer.sections": "chatcore.sessions.sections",
    "chatcore.turns.runner": "chatcore.base.runner",
    "chatcore.turns.service": "chatcore.turns.control",
    "chatcore.web.compressed_pages": "chatcore.web.middleware",
    "chatcore.web.outages": "chatcore.web.middleware",
    "chatcore.web.security_headers": "chatcore.web.middleware",
}


_new_names = dict(MOVED)


def keep_old_names(new_names: Mapping[str, str]) -> None:
    """Let the modules be imported by their old names, too."""
    _new_names.update(new_names)


def list_old_names() -> list[str]:
    """Return the old names of modules and packages that have moved."""
    return list(_new_names)


def find_new_name(name: str) -> str:
    """Return where a module is now; empty if it has not moved."""
    package, rest = name, ""
    while package:
        if package in _new_names:
            return _new_names[package] + rest
        package, _, last = package.rpartition(".")
        rest = f".{last}{rest}"
    return ""


class _Finder(MetaPathFinder, Loader):
    """Finds modules by their old names. What it finds is the same module under both names."""

    def __init__(self) -> None:
        self._specs: dict[str, ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return that a moved module is loaded here; None for all others."""
        return ModuleSpec(fullname, self) if find_new_name(fullname) else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the module from its new place."""
        new_name = find_new_name(spec.name)
        module = import_module(new_name)
        warnings.warn(
            f"{spec.name} is {new_name} now; the old name works until version 0.3.",
            PendingDeprecationWarning,
            stacklevel=2,
        )
        self._specs[new_name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module as it is, with the spec of its own that the import has replaced."""
        module.__spec__ = self._specs.pop(module.__name__)


sys.meta_path.insert(0, _Finder())
