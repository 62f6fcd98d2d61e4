"""The running embedded model's rows in the registry: where it is, and the window it really has."""

from typing import Any

import httpx2
from django.db import transaction

from models_registry.models import AiModel, Provider

PROVIDER_NAME = "local"
TIMEOUT_SECONDS = 600  # a full window on two busy cores takes minutes to read

# Small models say the same sentence until their output limit, and summarize by copying: both are made costly, the second in summaries only,
# since a chat about code has to copy. Measured: without them the 0.5B model ends no summary of 1,400 tokens, with them most. Told what
# each heading of a summary is for, it gives that back as it is; told the headings alone, it fills them.
PROVIDER_OPTIONS = {
    "body": {"repeat_penalty": 1.1},
    "summary_seconds": TIMEOUT_SECONDS,
    "summary_headings": "bare",
    "summary_body": {"dry_multiplier": 0.8, "dry_allowed_length": 8, "dry_penalty_last_n": 8192},
}


def register_model(base_url: str, api_key: str) -> AiModel:
    """Store what the server at `base_url` (ending in /v1) says of itself; the default model only when there is none."""
    description = _fetch_description(base_url, api_key)
    with transaction.atomic():
        provider = Provider.objects.filter(name=PROVIDER_NAME).first() or Provider(
            name=PROVIDER_NAME, timeout_seconds=TIMEOUT_SECONDS, options=PROVIDER_OPTIONS
        )
        provider.protocol, provider.base_url, provider.api_key, provider.is_active = (
            Provider.Protocol.OPENAI,
            base_url,
            api_key,
            True,
        )
        provider.save()
        provider.models.exclude(name=description["id"]).update(is_active=False, is_default=False)
        window = description["meta"]["n_ctx"]
        defaults = {
            "context_window_size": window,
            "max_output_tokens": window // 4,
            "supports_tools": False,
            "is_active": True,
        }
        model, _ = provider.models.update_or_create(name=description["id"], defaults=defaults)
        if not AiModel.objects.filter(is_default=True).exists():
            AiModel.objects.filter(pk=model.pk).update(is_default=True)
    return model


def withdraw_model() -> None:
    """Offer the embedded model to nobody until it registers again."""
    Provider.objects.filter(name=PROVIDER_NAME).update(is_active=False)


def _fetch_description(base_url: str, api_key: str) -> dict[str, Any]:
    response = httpx2.get(
        f"{base_url}/models", headers={"Authorization": f"Bearer {api_key}"}, timeout=30
    )
    response.raise_for_status()
    description: dict[str, Any] = response.json()["data"][0]
    return description
