"""The request of a page for the title of its chat."""

from contextlib import ExitStack
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_POST

from chatcore.accounts.spending import CallRefused
from chatcore.api.long_responses import hand_over_stream
from chatcore.base.slots import ProcessFull, UserFull
from chatcore.models import Session
from chatcore.providers.errors import ProviderError
from chatcore.web.own_chat import get_own_chat
from chatcore.web.titles import writing


@login_required
@require_POST
def request_title(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Let the model name the chat. Whatever prevents it, the title stays and nothing is said.

    The call of the model holds no thread, and the new title arrives as an event.
    """
    session = get_own_chat(request, pk)
    try:
        slot = writing.take_slot(request.user.pk)
    except (ProcessFull, UserFull):
        return HttpResponse(status=204)
    with ExitStack() as stack:
        stack.callback(slot.release)
        job = _find_job(session)
        if job is None:
            return HttpResponse(status=204)
        response = hand_over_stream(
            request,
            writing.write_title(job),
            content_type="text/plain",
            headers={},
            on_end=slot.release,
        )
        stack.pop_all()  # the stream's end gives the place back
        return response


def _find_job(session: Session) -> writing.TitleJob | None:
    try:
        return writing.build_job(session)
    except (ProviderError, CallRefused):
        return None
