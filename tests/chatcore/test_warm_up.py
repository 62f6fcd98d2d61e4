"""A web process loads the SDKs that it may need, before the first answer waits for one."""

import gc
from collections.abc import Iterable, Iterator

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
