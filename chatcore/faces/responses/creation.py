"""Create responses, whichever way the request came."""

from collections.abc import Mapping
from typing import Any

from chatcore.faces.responses import compaction_answers, item_lists, records, storage
from chatcore.faces.responses.request import ResponseRequest, parse_response_request
from chatcore.models import StoredResponse
from chatcore.rest import turn_rate
from chatcore.turns import capacity
from models_registry.models import AiModel


def parse_body(user: Any, body: Any, headers: Mapping[str, str]) -> ResponseRequest:
    """Return the request of a body of this user. Raises problems."""
    load_item = item_lists.build_loader(user)
    return parse_response_request(body, headers, load_item, _find_default_model(user, body))


def begin_stored(sender: Any, request: ResponseRequest) -> StoredResponse:
    """Store the request of a sender, who has a `user`, and begin to answer it. Raises problems."""
    user = sender.user
    if request.input.has_trigger:
        turn_rate.count_turn(sender)
        return compaction_answers.answer_trigger(user, request)
    with capacity.reserve_turn(user.pk):
        turn_rate.count_turn(sender)
        return storage.begin_response(user, request)


def _find_default_model(user: Any, body: Any) -> AiModel | None:
    """Return the model of a body that names none: that of what it continues, or the default."""
    if not isinstance(body, Mapping) or body.get("model") is not None:
        return None
    record = records.find_owned_response(user, str(body.get("previous_response_id") or ""))
    model = record.session.model if record else None
    return model or AiModel.objects.find_default()
