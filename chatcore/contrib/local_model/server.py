"""The process of the embedded model, which serves OpenAI's protocol, by default on loopback."""

import os
import secrets
import signal
import socket
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

from chatcore.serving.parent import EXIT_GIVE_UP

LOOPBACK = "127.0.0.1"
CHECK_SECONDS = 10.0
SILENCE_SECONDS = 60.0
SLOTS = 2  # requests at once: a chat goes on while a summary is written


def main() -> int:
    """Serve until TERM or INT, and return an exit code if that cannot begin.

    It is 1 if no source of the weights answered, and EXIT_GIVE_UP if a restart would not help.
    """
    # Modules of the project are imported here and below, because they need Django to be set up.
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatcore.settings")
    django.setup()
    for number in (signal.SIGTERM, signal.SIGINT):
        # Exit at once: the threads of the runtime hold nothing that must be written.
        signal.signal(number, lambda *_: os._exit(0))
    os.nice(5)  # a lower priority than the web server, so that pages stay fast
    from chatcore.contrib.local_model.weights import WeightsRefused, WeightsUnavailable

    try:
        serve_model()
    except (WeightsRefused, WeightsUnavailable) as error:
        _print_line(str(error))
        if isinstance(error, WeightsRefused):
            return EXIT_GIVE_UP
        return 1
    return 0


def serve_model() -> None:
    """Fetch and load the weights, serve and register the model; return when it hangs."""
    from django.conf import settings

    from chatcore.contrib.local_model import register, weights

    options = settings.LOCAL_MODEL
    candidates = weights.WEIGHTS_BY_SIZE[options["SIZE"]]
    path = weights.ensure_weights(
        candidates,
        path=options["PATH"],
        folders=options["FOLDERS"],
        hub_url=options["HUB"],
        print_line=_print_line,
    )
    known_names = {each.file_name: each.name for each in candidates}
    name = path.stem if options["PATH"] else known_names[path.name]
    _print_line(f"Loading {name} …")
    api_key = options["API_KEY"] or secrets.token_urlsafe(32)
    server = start_server(
        path,
        name=name,
        window=options["WINDOW"],
        host=options["HOST"],
        port=options["PORT"] or find_free_port(),
        api_key=api_key,
    )
    address = options["URL"] or server.listening_address
    model = register.register_model(f"{address}/v1", api_key)
    window = f"{model.context_window_size:,} tokens"
    _print_line(f"The embedded model is ready: {model.name}, a window of {window}.")
    wait_while_it_answers(f"{server.listening_address}/health")
    os._exit(1)  # at once, because what hangs cannot be asked to end


def wait_while_it_answers(url: str) -> None:
    """Return when the runtime has not answered for SILENCE_SECONDS."""
    last_answer = time.monotonic()
    while time.monotonic() - last_answer < SILENCE_SECONDS:
        time.sleep(CHECK_SECONDS)
        with suppress(OSError), urllib.request.urlopen(url, timeout=CHECK_SECONDS):  # noqa: S310
            last_answer = time.monotonic()
    _print_line("The embedded model does not answer any more.")


def start_server(
    path: Path, *, name: str, window: int, port: int, api_key: str, host: str = LOOPBACK
) -> Any:
    """Load the weights, listen on `host` and `port`, and return the runtime's server.

    The server stops when the object is deleted. `window` is the context window of one request, in
    tokens.
    """
    # The runtime reads these when it is imported. Threads that sleep instead of spinning are four
    # times faster on shared cores.
    os.environ.update(OMP_WAIT_POLICY="PASSIVE", GOMP_SPINCOUNT="0")
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.model_alias = {name}
    params.hostnames = [host]
    params.port = port
    params.api_keys = [api_key]
    params.n_ctx = window * SLOTS  # the runtime divides it among the slots
    params.n_parallel = SLOTS
    params.n_batch = params.n_ubatch  # read at once; between two parts it tells how far it is
    params.ctx_shift = False  # an overflow must be an error, not a silent loss
    params.ui = False
    params.cache_ram_mib = 512
    params.verbosity = 0
    return xllamacpp.Server(params)


def find_free_port() -> int:
    """Return a port on which nothing listens at the moment."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def _print_line(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
