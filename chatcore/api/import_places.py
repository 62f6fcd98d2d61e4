"""Let a person have one large import at a time: it is in memory from its first byte to its last."""

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore.base.rest.parsers import is_large
from chatcore.base.rest.problems import Problem
from chatcore.base.slots import ProcessFull, Slot, Slots, UserFull

IMPORTS_AT_ONCE = 4  # in this process
RETRY_SECONDS = 5
_slots = Slots()


class OneImportAtATime(APIView):
    """A view whose large bodies and archives wait for nobody: a second one is refused (429)."""

    _place: Slot | None = None

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        """Take the place, before the body is read."""
        super().initial(request, *args, **kwargs)
        if str(request.content_type).startswith("application/json") and not is_large(request):
            return
        try:
            self._place = _slots.take(request.user.pk, process_limit=IMPORTS_AT_ONCE, user_limit=1)
        except UserFull:
            detail = "You have an import in progress. Send the next one when it is done."
            raise Problem(429, "import_running", detail, retry_after=RETRY_SECONDS) from None
        except ProcessFull:
            detail = "The server reads as many imports as it can at the moment."
            raise Problem(503, "overloaded", detail, retry_after=RETRY_SECONDS) from None

    def finalize_response(self, *args: Any, **kwargs: Any) -> Response:
        """Give the place back."""
        if self._place:
            self._place.release()
        return super().finalize_response(*args, **kwargs)
