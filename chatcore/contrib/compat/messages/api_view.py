"""What all views of this API share."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.base.rest import turn_rate
from chatcore.contrib.compat.chat_completions.views import CompatibleAPIView
from chatcore.contrib.compat.messages import errors


class MessagesAPIView(CompatibleAPIView):
    """A view with errors and headers in Anthropic's form."""

    def format_error(self, problem: Mapping[str, object]) -> tuple[int, dict[str, Any]]:
        """Return the status and the body for the body of a problem."""
        return errors.format_error(problem)

    def finalize_response(
        self, request: Request, response: Response, *args: Any, **kwargs: Any
    ) -> Response:
        """Add the headers about the user's limit of turns under Anthropic's names."""
        response = super().finalize_response(request, response, *args, **kwargs)
        if request.user:
            limit, remaining, seconds = turn_rate.describe_turns(request.user.pk)
            reset_at = datetime.now(UTC) + timedelta(seconds=seconds)
            response.headers["anthropic-ratelimit-requests-limit"] = str(limit)
            response.headers["anthropic-ratelimit-requests-remaining"] = str(remaining)
            response.headers["anthropic-ratelimit-requests-reset"] = f"{reset_at:%Y-%m-%dT%XZ}"
        return response
