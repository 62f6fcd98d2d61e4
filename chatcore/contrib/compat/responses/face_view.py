"""What all views of this API share."""

from collections.abc import Callable
from typing import Any

from rest_framework.response import Response

from chatcore.contrib.compat.chat_completions.views import OpenAIFaceView
from chatcore.contrib.compat.responses import errors


class ResponsesFaceView(OpenAIFaceView):
    """A view with errors in the form of this API."""

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], Response]:
        """Return the handler of this API."""
        return errors.handle_exception
