"""Give memory of large requests back to the system, where the C library is glibc.

By default glibc keeps what was freed in an arena for each thread: two users who attached files of
5 MB took a web process from 170 to 640 MB, and it stayed there.
"""

import asyncio
import ctypes

# Options of mallopt(3), from <malloc.h>, and their values.
M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES = -3, 1024 * 1024
M_ARENA_MAX, MAX_ARENAS = -8, 2
TRIM_SECONDS = 3.0  # after a large request, so that a crowd of them costs one look at the heap

_library = ctypes.CDLL(None)
_is_trim_due = False


def limit_heap() -> None:
    """Bound the number of arenas, and have large pieces go back as soon as they are freed.

    Fixing the threshold also keeps glibc from raising it to 32 MB as large pieces are freed.
    """
    if hasattr(_library, "mallopt"):
        _library.mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES)
        _library.mallopt(M_ARENA_MAX, MAX_ARENAS)


def trim_heap_soon() -> None:
    """Give what is free between pieces in use back in a few seconds. Called by an event loop."""
    global _is_trim_due
    if _is_trim_due or not hasattr(_library, "malloc_trim"):
        return
    _is_trim_due = True
    loop = asyncio.get_running_loop()
    loop.call_later(TRIM_SECONDS, loop.run_in_executor, None, _trim_heap)


def _trim_heap() -> None:
    global _is_trim_due
    _is_trim_due = False
    _library.malloc_trim(0)
