"""Check the body of a request that is passed on."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User

from chatcore.base.rest.problems import InvalidFieldError
from chatcore.contrib.compat.bodies import Body
from chatcore.contrib.compat.chat_completions.errors import OpenAIProblem
from chatcore.contrib.compat.chat_completions.request import (
    NOT_CARRIED,
    get_usable_model,
    list_unknown_fields,
    refuse_fields,
)
from chatcore.providers.params import list_extra_names
from chatcore.providers.protocols import load_protocol
from models_registry.models import AiModel

# By the path: the field that it cannot be without, and the others that the provider is sent. A
# gateway understands many more, as in chat completions (`providers.params`).
FIELDS = {
    "embeddings": ("input", frozenset({"dimensions", "encoding_format", "user"})),
    "completions": (
        "prompt",
        frozenset(
            {
                "best_of",
                "echo",
                "frequency_penalty",
                "logit_bias",
                "logprobs",
                "max_tokens",
                "min_p",
                "n",
                "presence_penalty",
                "repetition_penalty",
                "seed",
                "stop",
                "stream",
                "stream_options",
                "suffix",
                "temperature",
                "top_k",
                "top_p",
                "user",
            }
        ),
    ),
}


class PassedBody(Body):
    model: str = ""
    stream: bool = False


@dataclass(frozen=True, kw_only=True)
class PassedRequest:
    """What goes to the provider of a model."""

    model: AiModel
    path: str
    body: dict[str, object]

    @property
    def is_stream(self) -> bool:
        """True if the answer is to come as a stream."""
        return bool(self.body.get("stream"))


def parse_passed_request(user: User, path: str, body: Any) -> PassedRequest:
    """Return the request of a JSON body.

    Raises the 400 problem that names the field, also for a model whose provider has no such
    requests, and 404 for an unknown model.
    """
    model = get_usable_model(user, PassedBody.parse(body).model)
    if not load_protocol(model.provider.protocol).capabilities.has_other_requests:
        detail = (
            f"The provider of {model} speaks {model.provider.get_protocol_display()}'s protocol,"
            f" which has no {path}. Choose a model of a provider that speaks OpenAI's."
        )
        raise OpenAIProblem(400, "unsupported_model", detail, param="model")
    required_field, names = FIELDS[path]
    if not isinstance(body.get(required_field), str | list) or not body[required_field]:
        raise InvalidFieldError(required_field, "A text, or a list.")
    known_names = names | {required_field, "model"}
    refuse_fields(list_unknown_fields(body, known_names, model), NOT_CARRIED)
    known_names |= list_extra_names(model.provider)
    values = {name: value for name, value in body.items() if name in known_names}
    return PassedRequest(model=model, path=path, body=values | {"model": model.name})
