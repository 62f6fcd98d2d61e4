"""What a provider wants back with an answer, sealed for a client that sends its history itself.

Clients keep only what their API knows, so the data travels where each API has room for something
opaque. It names the model that wrote it, and goes to no other one.
"""

import json
from collections.abc import Mapping

from models_registry import keys

# The member of a call's `extra_content` that is ours, in chat completions.
SEAL_NAME = "chatcore"


def seal(provider_data: Mapping[str, object], *, reasoning: str = "") -> str:
    """Return the data in a form that only this server can read."""
    return keys.encrypt(json.dumps({"reasoning": reasoning, "provider_data": provider_data}))


def unseal(text: object) -> dict[str, object]:
    """Return the data that `seal` was given; {} for anything that this server did not seal."""
    if not isinstance(text, str) or not text:
        return {}
    try:
        provider_data = json.loads(keys.decrypt(text)).get("provider_data")
    except (keys.UnreadableKey, ValueError, AttributeError):
        return {}
    return provider_data if isinstance(provider_data, dict) else {}
