"""Register the running embedded model: its address and its true context window."""

from typing import Any

import httpx2
from django.db import transaction

from models_registry.models import AiModel, Provider
from models_registry.provider_options import ProviderOptions

PROVIDER_NAME = "local"
LOOPBACK = "127.0.0.1"
# It is offered no tools of ours, so what it has forgotten must be brought to it. A person may
# choose another.
POLICY_NAME = "chatcore"
TIMEOUT_SECONDS = 600  # two busy cores take minutes to process a full window

# A small model calls a client's tool when the question is about it. The descriptions of all of ours
# would take much of its window, and it would call them at any question.
# It finds the form of a call more surely when it does not guess. It has better things to do than to
# write titles.
NEW_OPTIONS: ProviderOptions = {
    "titles": False,
    "control_tokens": True,
    "written_calls": True,
    "tells_reading": True,
    "server_tools": False,
    "tool_body": {"temperature": 0},
}

# Small models repeat a sentence until their output limit, and summarize by copying.
# `repeat_penalty` makes the first costly, the "dry" options the second. These apply only to
# summaries, because a chat about code has to copy. Measured with summaries of 1,400 tokens: without
# the options the 0.5B model finishes none of them, with them most.
# A prompt that explains the headings of a summary makes such a model return the explanations, while
# bare headings make it fill them in.
PROVIDER_OPTIONS: ProviderOptions = {
    **NEW_OPTIONS,
    "body": {"repeat_penalty": 1.1},
    "summary_seconds": TIMEOUT_SECONDS,
    "summary_headings": "bare",
    "summary_body": {"dry_multiplier": 0.8, "dry_allowed_length": 8, "dry_penalty_last_n": 8192},
}


def register_model(base_url: str, api_key: str) -> AiModel:
    """Store the model that the server at `base_url` (which ends in /v1) describes.

    It becomes the default model only if there is no other default.
    """
    description = _fetch_description(base_url, api_key)
    with transaction.atomic():
        provider = Provider.objects.filter(name=PROVIDER_NAME).first() or Provider(
            name=PROVIDER_NAME, timeout_seconds=TIMEOUT_SECONDS, options=PROVIDER_OPTIONS
        )
        provider.protocol = Provider.Protocol.OPENAI
        provider.base_url = base_url
        provider.api_key = api_key
        provider.is_active = True
        # An earlier version registered it without.
        provider.options = {**NEW_OPTIONS, **provider.options}
        provider.save()
        provider.models.exclude(name=description["id"]).update(is_active=False, is_default=False)
        window = description["meta"]["n_ctx"]
        defaults = {
            "context_window_size": window,
            "max_output_tokens": window // 4,
            "supports_tools": True,
            "is_active": True,
        }
        model, _ = provider.models.update_or_create(
            name=description["id"],
            defaults=defaults,
            create_defaults={**defaults, "policy": POLICY_NAME},
        )
        if not AiModel.objects.filter(is_default=True).exists():
            AiModel.objects.filter(pk=model.pk).update(is_default=True)
    return model


def withdraw_model() -> None:
    """Make the embedded model of this machine unusable until it registers again.

    One that other machines reach, at an address of its own, stays.
    """
    local_providers = Provider.objects.filter(
        name=PROVIDER_NAME, base_url__startswith=f"http://{LOOPBACK}:"
    )
    local_providers.update(is_active=False)


def _fetch_description(base_url: str, api_key: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {api_key}"}
    response = httpx2.get(f"{base_url}/models", headers=headers, timeout=30)
    response.raise_for_status()
    description: dict[str, object] = response.json()["data"][0]
    return description
