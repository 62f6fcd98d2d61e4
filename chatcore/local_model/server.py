"""The embedded language model's process: fetch the weights, serve them over the OpenAI protocol on loopback, register them."""

import os
import secrets
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from chatcore.serving.supervisor import EXIT_GIVE_UP

LOOPBACK = "127.0.0.1"
SLOTS = 2  # a chat goes on while a summary is written


def main() -> int:
    """Serve until TERM or INT; 1 when no source answered, GAVE_UP when starting again would not help."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatcore.settings")
    django.setup()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(
            number, lambda *_: os._exit(0)
        )  # the runtime's threads hold nothing worth waiting for
    os.nice(5)  # pages stay quick while the model thinks
    from chatcore.local_model.weights import WeightsRefused, WeightsUnavailable

    try:
        serve_model()
    except (WeightsRefused, WeightsUnavailable) as error:
        _print_line(str(error))
        return EXIT_GIVE_UP if isinstance(error, WeightsRefused) else 1
    return 0


def serve_model() -> None:
    """Everything from the weights to the registered, answering model; does not return."""
    from django.conf import settings

    from chatcore.local_model import register, weights

    options = settings.LOCAL_MODEL
    model_weights = weights.WEIGHTS_BY_SIZE[options["SIZE"]]
    path = weights.ensure_weights(
        model_weights,
        path=options["PATH"],
        folders=options["FOLDERS"],
        hub_url=options["HUB"],
        print_line=_print_line,
    )
    _print_line(f"Loading {model_weights.name} …")
    api_key = options["API_KEY"] or secrets.token_urlsafe(32)
    server = start_server(
        path,
        name=model_weights.name,
        window=options["WINDOW"],
        port=options["PORT"] or find_free_port(),
        api_key=api_key,
    )
    model = register.register_model(f"{server.listening_address}/v1", api_key)
    _print_line(
        f"The embedded model is ready: {model.name}, a window of {model.context_window_size:,} tokens."
    )
    while True:
        signal.pause()


def start_server(path: Path, *, name: str, window: int, port: int, api_key: str) -> Any:
    """Load the weights and listen; returns the runtime's server, which stops when it is dropped. `window` is in tokens."""
    # Read once, when the runtime is loaded: threads that sleep instead of spinning are four times faster on shared cores.
    os.environ.update(OMP_WAIT_POLICY="PASSIVE", GOMP_SPINCOUNT="0")
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.model_alias = {name}
    params.hostnames = [LOOPBACK]
    params.port = port
    params.api_keys = [api_key]
    params.n_ctx = window * SLOTS  # the slots divide it: each has the whole window
    params.n_parallel = SLOTS
    params.ctx_shift = False  # an overflow must be an error, not a silent loss
    params.ui = False
    params.cache_ram_mib = 512
    params.verbosity = 0
    return xllamacpp.Server(params)


def find_free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def _print_line(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
