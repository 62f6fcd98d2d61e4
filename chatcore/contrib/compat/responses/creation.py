"""Create responses, whichever way the request came, and count what they would send."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User

from chatcore.accounts.rights import find_default_model, require_model
from chatcore.base.rest import auth, turn_rate
from chatcore.base.token_estimate import estimate_tokens
from chatcore.context.compactor import get_compactor
from chatcore.contrib.compat import web_search
from chatcore.contrib.compat.client_messages import has_new_results
from chatcore.contrib.compat.models import StoredResponse
from chatcore.contrib.compat.programs import Keeping
from chatcore.contrib.compat.responses import (
    beside,
    compaction_answers,
    item_lists,
    origins,
    records,
    storage,
)
from chatcore.contrib.compat.responses.request import ResponseRequest, parse_response_request
from chatcore.turns import capacity
from models_registry.models import AiModel


def parse_body(
    user: User, body: object, headers: Mapping[str, str], *, scope: str, keeping: Keeping
) -> ResponseRequest:
    """Return the request of a body of this user, by a token of a scope. Raises problems."""
    load_item = item_lists.build_loader(user)
    model = _find_default_model(user, body)
    request = parse_response_request(user, body, headers, load_item, model, keeping)
    request = web_search.serve_search(user, beside.set_apart(user, request), body)
    if request.servers:
        auth.refuse_servers(scope)
    return request


def begin_stored(sender: Any, request: ResponseRequest) -> StoredResponse:
    """Store the request of a sender, who has a `user`, and begin to answer it. Raises problems."""
    user = sender.user
    if request.input.has_trigger:
        turn_rate.count_turn(sender)
        return compaction_answers.answer_trigger(user, request)
    with capacity.reserve_turn(user.pk):
        count_turn(sender, request)
        return storage.begin_response(user, request)


def count_turn(sender: Any, request: ResponseRequest) -> None:
    """Count what the request starts or continues. Raises the 429 problem."""
    turn_rate.count_turn(sender, has_results=has_new_results(request.input.messages))


def count_tokens(user: User, request: ResponseRequest) -> int:
    """Return the estimated tokens of the next request: what is stored, and the input."""
    origin = origins.find_origin(user, request)
    stored_tokens = get_compactor().estimate_tokens(origin.session) if origin.session else 0
    chars = len(request.instructions) + sum(map(len, request.input.system_texts))
    chars += sum(len(str(tool)) for tool in request.tools)
    file_tokens = 0
    for message in origin.messages:
        chars += len(message.content)
        chars += sum(len(call.name) + len(call.arguments) for call in message.calls)
        file_tokens += sum(file.token_estimate for file in message.files)
    return stored_tokens + file_tokens + estimate_tokens(chars)


def _find_default_model(user: User, body: object) -> AiModel | None:
    """Return the model of a body that names none: that of what it continues, or the default."""
    if not isinstance(body, Mapping) or body.get("model") is not None:
        return None
    record = records.find_owned_response(user, str(body.get("previous_response_id") or ""))
    model = record.session.model if record else None
    if model:
        require_model(user.pk, model)  # an answer without a session asks nobody later
    return model or find_default_model(user.pk)
