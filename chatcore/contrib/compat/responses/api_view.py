"""What all views of this API share."""

from collections.abc import Mapping
from typing import Any

from chatcore.contrib.compat.chat_completions.views import CompatibleAPIView
from chatcore.contrib.compat.responses import errors


class ResponsesAPIView(CompatibleAPIView):
    """A view with errors in the form of this API."""

    def format_error(self, problem: Mapping[str, object]) -> tuple[int, dict[str, Any]]:
        """Return the status and the body for the body of a problem."""
        return errors.format_error(problem)
