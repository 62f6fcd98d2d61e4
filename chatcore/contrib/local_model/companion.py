"""What `chatcore serve` does about the embedded model: it starts one, if one is installed."""

import importlib.util
import secrets
import sys
from argparse import ArgumentParser
from collections.abc import Mapping

from django.conf import settings

from chatcore.contrib.local_model.register import withdraw_model
from chatcore.contrib.local_model.server import find_free_port
from chatcore.serving.programs import Addition, Companion, Program, build_environment

VARIABLE = "CHATCORE_LOCAL_MODEL_START"


class EmbeddedModel(Companion):
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--no-local-model", action="store_true", help="leave the embedded language model out"
        )

    def prepare(self) -> None:
        """Withdraw the model. It is offered again when it has started and registered itself."""
        withdraw_model()

    def add(self, options: Mapping[str, object]) -> Addition:
        """Start the model unless it is not wanted or not installed, and tell the web processes."""
        if options["no_local_model"]:
            return Addition(web_environment={VARIABLE: "no"})
        if importlib.util.find_spec("xllamacpp") is None:
            return Addition(
                web_environment={VARIABLE: "not installed"},
                line="The embedded language model is not installed"
                " (pip install 'chatcore[local-model]'); going on without it.",
            )
        return Addition(web_environment={VARIABLE: "yes"}, programs=[_build_program()])


def _build_program() -> Program:
    """Describe the embedded model. It keeps its port and its key when it is started again."""
    options = settings.LOCAL_MODEL
    environment = build_environment() | {
        "CHATCORE_LOCAL_MODEL_PORT": str(options["PORT"] or find_free_port()),
        "CHATCORE_LOCAL_MODEL_API_KEY": options["API_KEY"] or secrets.token_urlsafe(32),
    }
    return Program(
        name="embedded model",
        command=[sys.executable, "-m", "chatcore.contrib.local_model.server"],
        environment=environment,
    )
