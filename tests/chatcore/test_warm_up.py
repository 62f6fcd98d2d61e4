"""A web process loads views and SDKs that it may need, before a request waits for them."""

import gc
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from chatcore.providers import registry
from chatcore.serving import lifespan
from models_registry.models import Provider


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """The protocols whose SDKs were to be loaded."""
    protocols: set[str] = set()

    def note(asked: Iterable[str]) -> None:
        protocols.update(asked)

    monkeypatch.setattr(registry, "warm_up", note)
    yield protocols
    gc.unfreeze()


@pytest.mark.django_db(transaction=True)
def test_only_providers_that_can_be_called_count(loaded: set[str]) -> None:
    Provider.objects.create(name="own", protocol="openai", base_url="http://127.0.0.1:1/v1")
    Provider.objects.create(name="claude", protocol="anthropic", api_key_env="NO_SUCH_VARIABLE")
    lifespan.warm_up()
    assert loaded == {"openai"}

    Provider.objects.filter(name="claude").update(encrypted_api_key="some")
    Provider.objects.filter(name="own").update(is_active=False)
    loaded.clear()
    lifespan.warm_up()
    assert loaded == {"anthropic"}


VIEWS = """
import sys, django
django.setup()
from chatcore.serving.lifespan import warm_up
assert "chatcore.urls" not in sys.modules
warm_up()
assert "chatcore.urls" in sys.modules
"""


def test_views_are_loaded_before_a_request_waits_for_them(tmp_path: Path) -> None:
    variables = {"DJANGO_SETTINGS_MODULE": "chatcore.settings", "CHATCORE_DATA_DIR": str(tmp_path)}
    others = {name: text for name, text in os.environ.items() if not name.startswith("CHATCORE_")}
    subprocess.run([sys.executable, "-c", VIEWS], env=others | variables, check=True)
