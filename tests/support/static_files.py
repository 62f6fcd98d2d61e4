"""Look for static files once in a process: each test client looks for all of them anew."""

from typing import Any

from whitenoise.middleware import WhiteNoiseMiddleware

_find_files = WhiteNoiseMiddleware.add_files_from_finders
_found_files: dict[str, dict[str, Any]] = {}  # by the prefix of their addresses


def share_static_files() -> None:
    """Let all clients share the files that the first one finds, for the life of this process."""
    WhiteNoiseMiddleware.add_files_from_finders = _add_files


def _add_files(middleware: WhiteNoiseMiddleware) -> None:
    prefix = middleware.static_prefix
    if prefix not in _found_files:
        _find_files(middleware)
        _found_files[prefix] = dict(middleware.files)
    middleware.files.update(_found_files[prefix])
