"""Prove that the soak can fail: python -m measure.soak.proof [FAULT …].

Each fault that outsiders once found is put back into a copy of the product, one at a time, and the
kinds of requests that show it must be red. Exits with 1 if one of them is green.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COPIED = ["chatcore", "compaction", "models_registry", "textkit", "templates"]
COPIED += ["measure", "tests", "deploy", "docs"]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Texts of files and what is put in their place, and the arguments of the soak."""

    changes: tuple[tuple[str, str, str], ...]
    soak: tuple[str, ...]


WATCHERS = "chatcore/base/databases/statement_watchers.py"
THREADS = "chatcore/serving/request_threads.py"
HANDOVER = "chatcore/api/long_responses.py"
STREAMS = "chatcore/contrib/compat/chat_completions/streams.py"
DELIVERIES = "chatcore/contrib/webhooks/deliveries.py"
AUTH = "chatcore/base/rest/auth.py"
FAULTS = {
    # Functions around statements are removed by their place.
    "E1": Fault(
        changes=(
            (WATCHERS, "wrappers.remove(watcher)", "wrappers.pop()"),
            (WATCHERS, "execute_wrappers.insert(0, watcher)", "execute_wrappers.append(watcher)"),
        ),
        soak=("--short", "--passes", "postgres", "--only", "writes"),
    ),
    # A thread that ends leaves its connection open.
    "S1": Fault(
        changes=((THREADS, "        self.submit(connections.close_all)\n", ""),),
        soak=("--requests", "4000", "--clients", "40", "--passes", "sqlite", "--only", "reads"),
    ),
    # A client that has left before its call began is not noticed.
    "S2": Fault(
        changes=(
            (HANDOVER, "            async_to_sync(close_body)(body)\n", ""),
            (HANDOVER, "            await close_body(handover.body)\n", "            pass\n"),
            (HANDOVER, "        call_at_end(request, lambda: loop", "        repr(lambda: loop"),
        ),
        soak=("--short", "--passes", "postgres", "--only", "left_early"),
    ),
    # Each attempt writes all deliveries of its address, in a transaction that has its own already.
    "S3": Fault(
        changes=(
            (DELIVERIES, "def _record_attempt(", "@transaction.atomic\ndef _record_attempt("),
            (
                DELIVERIES,
                "    _note_address(delivery.webhook, status, is_",
                "    WebhookDelivery.objects.filter(_PENDING, webhook=delivery.webhook).update("
                "error=error)\n    _note_address(delivery.webhook, status, is_",
            ),
        ),
        soak=("--requests", "1500", "--passes", "postgres", "--only", "webhooks"),
    ),
    # Requests with their files wait for the garbage collector.
    "S4": Fault(
        changes=(
            (THREADS, "        release_request(response)\n", ""),
            (THREADS, "        trim_heap_soon()\n", "        pass\n"),
            ("chatcore/serving/web_server.py", "    limit_heap()\n", ""),
        ),
        soak=("--requests", "2000", "--clients", "40", "--passes", "postgres", "--only", "uploads"),
    ),
    # A token's check reads all tokens of its user, who may have any number.
    "E4": Fault(
        changes=(
            (
                AUTH,
                "        user, _ = self.validate_user(auth_token)\n",
                "        user, _ = self.validate_user(auth_token)\n"
                "        list(AuthToken.objects.select_related('user').filter(user=user))\n",
            ),
            ("chatcore/accounts/tokens.py", "MAX_TOKENS = 100 ", "MAX_TOKENS = 100_000 "),
        ),
        soak=("--requests", "6000", "--passes", "postgres", "--only", "tokens_kept"),
    ),
}


def put_back(fault: Fault, folder: Path) -> None:
    """Copy the product into a folder, with the fault in it."""
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file, text, replacement in fault.changes:
        content = (folder / file).read_text()
        assert text in content, f"{file} has no longer: {text}"
        (folder / file).write_text(content.replace(text, replacement))


def is_red(fault: Fault) -> bool:
    """Return True if the soak fails for a product with the fault."""
    with tempfile.TemporaryDirectory(prefix="chatcore-proof-") as name:
        put_back(fault, Path(name))
        command = [sys.executable, "-m", "measure.soak.kinds", *fault.soak]
        return subprocess.run(command, cwd=name, check=False).returncode == 1


def main() -> None:
    """Put back each fault, and say whether the soak saw it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("faults", nargs="*", choices=[*FAULTS, []], default=[])
    names = parser.parse_args().faults or list(FAULTS)
    outcomes = {name: is_red(FAULTS[name]) for name in names}
    for name, outcome in outcomes.items():
        print(f"{name}: {'red, as it must be' if outcome else 'GREEN'}")
    sys.exit(not all(outcomes.values()))


if __name__ == "__main__":
    main()
