"""The protocols: each is the module of its name in this package, with its client as PROVIDER.

Their names are those of `models_registry.models.Provider.Protocol`.
"""

from importlib import import_module

from chatcore.providers.client import ProviderClient


def load_protocol(name: str) -> ProviderClient:
    """Return the client of a protocol. Its SDK is not imported yet."""
    provider: ProviderClient = import_module(f"{__package__}.{name}").PROVIDER
    return provider
