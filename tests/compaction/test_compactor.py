"""The class that CHATCORE["COMPACTOR"] names, and the backend that COMPACTION["BACKEND"] names."""

import inspect
from typing import TYPE_CHECKING, assert_type

import pytest
from django.conf import settings
from django.test import override_settings

from chatcore.context import compactor as chatcore_compactor
from chatcore.context.compactor import FittedRequest
from chatcore.models import Session
from chatcore.providers.base import Request
from compaction.backends import registry as backend_registry
from compaction.backends.base import Backend, HostRefusal, HostSession
from compaction.backends.chatcore.backend import ChatcoreBackend
from compaction.checks import check_backend
from compaction.compactor import Compactor
from compaction.core.presets import PRESETS
from models_registry.models import AiModel

if TYPE_CHECKING:
    from chatcore.providers.errors import ContextOverflow

    # mypy checks these assignments: both classes have all methods of their protocols, with fitting
    # types.
    _compactor: chatcore_compactor.Compactor = Compactor()
    _backend: Backend[Session, AiModel, Request, FittedRequest] = ChatcoreBackend()
    _session: HostSession = Session()
    _refusal: HostRefusal = ContextOverflow("too long")
    assert_type(_backend.rebuild_request(Session()), Request)


def test_it_has_the_methods_and_parameters_of_the_protocol() -> None:
    protocol_methods = {
        name: method
        for name, method in inspect.getmembers(chatcore_compactor.Compactor, inspect.isfunction)
        if not name.startswith("_")
    }
    assert protocol_methods
    for name, method in protocol_methods.items():
        parameters = inspect.signature(getattr(Compactor, name)).parameters
        expected_parameters = inspect.signature(method).parameters
        assert [(p.name, p.kind) for p in parameters.values()] == [
            (p.name, p.kind) for p in expected_parameters.values()
        ], name


def test_it_is_the_one_that_the_settings_name() -> None:
    assert isinstance(chatcore_compactor.get_compactor(), Compactor)


@pytest.mark.django_db
def test_it_lists_the_policies_that_it_accepts() -> None:
    compactor = Compactor()
    assert list(compactor.list_policies()) == list(PRESETS)
    assert all(compactor.accepts_policy(name) for name in compactor.list_policies())
    assert not compactor.accepts_policy("nobody's")


def test_the_backend_is_found_under_the_path_of_the_first_release_too() -> None:
    first_path = "compaction.backends.chatcore.ChatcoreBackend"
    with override_settings(COMPACTION=settings.COMPACTION | {"BACKEND": first_path}):
        assert isinstance(backend_registry.get_backend(), ChatcoreBackend)
        assert check_backend() == []
    with override_settings(COMPACTION=settings.COMPACTION | {"BACKEND": "compaction.no.Backend"}):
        assert [message.id for message in check_backend()] == ["compaction.E001"]
