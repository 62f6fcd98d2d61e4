"""Count the tokens of a request without sending it."""

from typing import Any

from chatcore.context.compactor import get_compactor
from chatcore.faces.responses import origins
from chatcore.faces.responses.request import ResponseRequest
from chatcore.sessions.token_estimate import estimate_tokens


def count_tokens(user: Any, request: ResponseRequest) -> int:
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
