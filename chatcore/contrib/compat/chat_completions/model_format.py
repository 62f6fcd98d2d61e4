"""Models in a form that OpenAI's clients and Anthropic's both read."""

from collections.abc import Sequence

from chatcore.contrib.compat.model_aliases import list_aliases
from chatcore.providers.protocols import load_protocol
from models_registry.models import AiModel

UNKNOWN_DATE = "1970-01-01T00:00:00Z"  # what Anthropic's API says where it does not know


def format_models(models: Sequence[AiModel]) -> dict[str, object]:
    """Return all models on one page, and once more under each name of an operator's."""
    data = [format_model(model) for model in models]
    data += [format_model(model, alias=alias) for alias, model in list_aliases(models)]
    return {
        "object": "list",
        "data": data,
        "has_more": False,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
    }


def format_model(model: AiModel, *, alias: str = "") -> dict[str, object]:
    """Return the model, under another name if it has an alias.

    `context_window`, `max_output_tokens` and `alias_of` are our additions.
    """
    names = {"id": alias, "alias_of": str(model)} if alias else {"id": str(model)}
    return {
        **names,
        "object": "model",
        "created": 0,
        "owned_by": model.provider.name,
        "context_window": model.context_window_size,
        "max_output_tokens": model.max_output_tokens,
        "type": "model",
        "display_name": model.name,
        "created_at": UNKNOWN_DATE,
        "lifecycle": "active",
        "max_input_tokens": model.request_limit,
        "max_tokens": model.max_output_tokens,
        "capabilities": _build_capabilities(model),
    }


def _build_capabilities(model: AiModel) -> dict[str, object]:
    """Return what `/v1/messages` does with the model, under the names of Anthropic's API.

    What a model thinks, and how hard, is carried to a provider of that protocol alone.
    """
    carries_thoughts = load_protocol(model.provider.protocol).capabilities.has_messages_params
    efforts = ("low", "medium", "high", "xhigh", "max")
    thoughts = dict.fromkeys(("adaptive", "between_tools", "enabled"), _tell(carries_thoughts))
    edits = ("clear_thinking_20251015", "clear_tool_uses_20250919", "compact_20260112")
    return {
        "batch": _tell(False),
        "citations": _tell(False),
        "code_execution": _tell(False),
        "compaction": _tell(True) | {"summarize": _tell(True)},
        "context_management": _tell(True) | {name: _tell(True) for name in edits},
        "effort": _tell(True) | {name: _tell(True) for name in efforts},
        "image_input": _tell(model.may_see_images),
        "pdf_input": _tell(True),
        "server_tools": _tell(False) | {"code_execution": _tell(False), "web_search": _tell(False)},
        "structured_outputs": _tell(True),
        "thinking": _tell(carries_thoughts) | {"types": thoughts | {"disabled": _tell(True)}},
    }


def _tell(is_supported: bool) -> dict[str, object]:
    return {"supported": is_supported}
