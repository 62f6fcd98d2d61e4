"""A product below a path of its host, and a model that it talks to."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.scripted_model import ScriptedModel
from tests.support.served_product import ServedProduct, serve
from tests.support.served_streams import register_model

PATH = "/chat"


@dataclass(frozen=True)
class Below:
    """`chatcore serve` below PATH: `host` is the address without the path, `url` with it."""

    product: ServedProduct
    scripted: ScriptedModel

    @property
    def host(self) -> str:
        return self.product.url

    @property
    def url(self) -> str:
        return f"{self.product.url}{PATH}"

    def print_sign_in_link(self) -> str:
        return self.product.run_command("sign_in_link")


@pytest.fixture(scope="module")
def below(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Below]:
    """One for all tests of a file."""
    folder: Path = tmp_path_factory.mktemp("below")
    options = ("--no-local-model", "--workers", "1", "--web", "1")
    variables = {"CHATCORE_BASE_PATH": PATH, "CHATCORE_MODEL_TITLES": "false"}
    with ScriptedModel() as scripted, serve(folder, *options, **variables) as product:
        register_model(product, scripted)
        yield Below(product, scripted)
