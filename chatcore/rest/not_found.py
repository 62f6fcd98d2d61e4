"""Every address under /api that is none."""

from typing import Any

from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.views import APIView


class NotFoundView(APIView):
    """A problem instead of a page."""

    authentication_classes = ()
    permission_classes = ()
    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Whatever the method is."""
        raise NotFound
