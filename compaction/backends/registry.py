"""What compaction needs of its host; the host is the one that COMPACTION["BACKEND"] names."""

from functools import cache

from django.conf import settings
from django.utils.module_loading import import_string

from compaction.backends.base import Backend


def get_backend() -> Backend:
    """The configured backend."""
    return _create_backend(settings.COMPACTION["BACKEND"])


@cache
def _create_backend(path: str) -> Backend:
    backend: Backend = import_string(path)()
    return backend
