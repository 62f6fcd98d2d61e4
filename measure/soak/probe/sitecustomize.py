"""Let the soak look into a started process; Python imports this before anything else.

Each process listens at a Unix socket in the folder that SOAK_PROBE names. Whoever connects gets one
line of JSON: threads and descriptors first, and then, after a collection, objects by type.
"""

import json
import os
import socket
import threading
from collections import Counter
from pathlib import Path
from typing import Any

TYPES_LISTED = 400


def read_process() -> dict[str, Any]:
    """Return what this process holds."""
    import gc

    from django.db.backends.base.base import BaseDatabaseWrapper

    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    wrappers = [each for each in gc.get_objects() if isinstance(each, BaseDatabaseWrapper)]
    connections = sum(each.connection is not None for each in wrappers)
    longest = max((len(each.execute_wrappers) for each in wrappers), default=0)
    pools = [each._connection_pools for each in wrappers if hasattr(each, "_connection_pools")]
    stats = [pool.get_stats() for pool in (pools[0].values() if pools else [])]
    del wrappers, pools
    gc.collect()
    types = Counter(f"{type(each).__module__}.{type(each).__name__}" for each in gc.get_objects())
    return {
        "threads": threads,
        "descriptors": descriptors,
        "connections": connections,
        "wrappers": longest,
        "pool_busy": sum(stat["pool_size"] - stat["pool_available"] for stat in stats),
        "answers": count_answers(),
        "objects": dict(types.most_common(TYPES_LISTED)),
    }


def count_answers() -> int:
    """Return how many places for answers are taken."""
    from chatcore.turns import capacity

    return capacity.count_answers()


def serve(folder: str) -> None:
    path = Path(folder, f"{os.getpid()}.sock")
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        while True:
            client, _ = listener.accept()
            with client:
                try:
                    answer = read_process()
                except Exception as error:  # noqa: BLE001 - the reader shows it
                    answer = {"error": repr(error)}
                client.sendall(json.dumps(answer).encode())


def begin() -> None:
    threading.Thread(target=serve, args=(folder,), name="soak-probe", daemon=True).start()


folder = os.environ.get("SOAK_PROBE", "")
if folder:
    begin()
    os.register_at_fork(after_in_child=begin)  # threads do not survive a fork
