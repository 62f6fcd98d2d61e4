"""Try a provider: ask it for its list of models, and one of its models for a word."""

import asyncio
import time
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.utils import timezone
from django.utils.translation import gettext as _

from chatcore.base.net.strangers import wait_for_stranger
from chatcore.providers import model_lists
from chatcore.providers import registry as provider_registry
from chatcore.providers.base import ChatMessage, Connection, Request
from chatcore.providers.errors import ProviderError
from chatcore.providers.registry import build_connection
from chatcore.signals import model_confirmed
from models_registry import provider_lists
from models_registry.audit import record_connection
from models_registry.models import AiModel, Provider

TEST_SECONDS = 20.0
TEST_TOKENS = 16


def call_provider(
    provider: Provider,
    *,
    user: User | AnonymousUser | None = None,
    model: AiModel | None = None,
) -> dict[str, Any]:
    """Ask the provider for its list of models, and one of its models for a word.

    Returns the `model` and its `seconds`, or the `problem`; and what else its list has, as
    `offered`. Windows, limits and fields that refusals have shown are forgotten: they are
    tried again.
    """
    record_connection(user, provider, "Tested the connection")
    listed = model_lists.read_list(provider)
    offered = provider_lists.list_new_models(provider, listed.rows)
    result: dict[str, object] = {"provider": provider, "offered": offered}
    active_models = provider.models.filter(is_active=True)
    model = model or active_models.order_by("-is_default", "id").first()
    if model is None:
        return result | {"problem": listed.problem or _("It has no active language model.")}
    result |= {"model": model} | _time_test_call(model)
    if "problem" not in result:
        today = timezone.now().date()
        result["learned_count"] = provider_lists.fill_unknown_values(
            provider, listed.rows, date=today
        )
        provider.doubt_learned()
        for learned_model in provider.models.all():
            model_confirmed.send(None, model=learned_model)
    return result


def _time_test_call(model: AiModel) -> dict[str, object]:
    start = time.monotonic()
    try:
        # No retries: an operator waits for this answer and can ask again.
        connection = build_connection(model.provider, max_retries=0)
        timeout_seconds = min(connection.timeout_seconds, TEST_SECONDS)
        connection = replace(connection, timeout_seconds=timeout_seconds)
        wait_for_stranger(_send_test_question(connection, model.name))
    except ProviderError as error:
        return {"problem": error.detail}
    except TimeoutError:
        sentence = _("There was no answer within %(seconds)d seconds.")
        return {"problem": sentence % {"seconds": TEST_SECONDS}}
    return {"seconds": time.monotonic() - start}


async def _send_test_question(connection: Connection, model_name: str) -> None:
    question = ChatMessage(role="user", content="Say OK.")
    provider_request = Request(model=model_name, messages=(question,), max_tokens=TEST_TOKENS)
    async with asyncio.timeout(TEST_SECONDS):
        async with aclosing(provider_registry.stream(connection, provider_request)) as parts:
            async for _part in parts:
                pass
