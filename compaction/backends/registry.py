"""Find the host that COMPACTION["BACKEND"] names."""

from functools import cache

from django.conf import settings
from django.utils.module_loading import import_string

from compaction.backends.base import HostBackend

# Paths of the first release, which a project's settings may still name; to be removed after one
# release.
MOVED_BACKENDS = {
    "compaction.backends.chatcore.ChatcoreBackend": (
        "compaction.backends.chatcore.backend.ChatcoreBackend"
    ),
}


def get_backend() -> HostBackend:
    """Return the configured backend. Raises ImportError if it does not exist."""
    return _create_backend(settings.COMPACTION["BACKEND"])


def import_backend(path: str) -> type[HostBackend]:
    """Return the class at a dotted path, which may be one of MOVED_BACKENDS. Raises ImportError."""
    backend: type[HostBackend] = import_string(MOVED_BACKENDS.get(path, path))
    return backend


@cache
def _create_backend(path: str) -> HostBackend:
    return import_backend(path)()
