"""Signs of life: which processes use the database, and of what version they are.

Each process renews its row seldom, because a write at rest costs the disk two pages. A process that
is killed leaves its row behind, which soon is too old to count.
"""

import functools
import hashlib
import os
import pkgutil
import socket
from datetime import timedelta
from importlib import import_module
from importlib.metadata import version

import psutil
from django.apps import apps
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.models.functions import Now
from django.utils.module_loading import module_has_submodule

from chatcore.models import ServingProcess

SIGN_SECONDS = 45.0  # between two signs of a process
_YOUNG = timedelta(seconds=0.8 * SIGN_SECONDS)
_ALIVE = timedelta(seconds=75)  # after the last sign, where the database answers
# One that is silent for so long is gone; it may have waited for the database meanwhile.
_SILENCE = timedelta(seconds=150)
_FORGET = timedelta(days=1)


def record_process(kind: ServingProcess.Kind, name: str = "") -> None:
    """Note that a process lives, and forget those that were silent for a day.

    `name` is this process by default. A young sign is left as it is.
    """
    name = name or name_process()
    if ServingProcess.objects.filter(name=name, seen_at__gt=Now() - _YOUNG).exists():
        return
    row = ServingProcess(
        name=name,
        kind=kind,
        version=version("chatcore"),
        migrations=digest_migrations(),
        seen_at=Now(),
    )
    columns = ["kind", "version", "migrations", "seen_at"]
    ServingProcess.objects.bulk_create(
        [row], update_conflicts=True, unique_fields=["name"], update_fields=columns
    )
    ServingProcess.objects.filter(seen_at__lt=Now() - _FORGET).delete()


def remove_process(name: str = "") -> None:
    """Note that a process, this one by default, ends."""
    ServingProcess.objects.filter(name=name or name_process()).delete()


def name_process() -> str:
    """Return the name of this process, as host:pid."""
    return f"{socket.gethostname()}:{os.getpid()}"


def count_processes(kind: ServingProcess.Kind) -> int:
    """Return how many processes of a kind live."""
    return ServingProcess.objects.filter(kind=kind, seen_at__gte=Now() - _SILENCE).count()


def list_foreign_processes() -> list[ServingProcess]:
    """Return the living processes that know other migrations than this one.

    A database of a version without their table has none that can be seen.
    """
    if ServingProcess._meta.db_table not in connection.introspection.table_names():
        return []
    living = ServingProcess.objects.filter(seen_at__gt=Now() - _ALIVE)
    foreign = living.exclude(migrations=digest_migrations()).order_by("name")
    return [process for process in foreign if not _is_known_dead(process)]


def _is_known_dead(process: ServingProcess) -> bool:
    """Return True for a process of this machine that was killed: its number is free, or another's.

    So nothing waits for a server of this machine that did not end in order.
    """
    host, _, pid = process.name.rpartition(":")
    if host != socket.gethostname():
        return False
    try:
        return bool(psutil.Process(int(pid)).create_time() > process.seen_at.timestamp())
    except psutil.NoSuchProcess:
        return True


@functools.cache
def digest_migrations() -> str:
    """Return a digest of the names of all migrations that this installation has.

    The version of the package is not enough: each commit between two releases may have one more.
    """
    names = []
    for config in apps.get_app_configs():
        path, is_named = MigrationLoader.migrations_module(config.label)
        if path and (is_named or module_has_submodule(config.module, "migrations")):
            modules = pkgutil.iter_modules(import_module(path).__path__)
            names += [f"{config.label}.{module.name}" for module in modules]
    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()[:12]
