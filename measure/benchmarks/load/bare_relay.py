"""The floor: a Django application that passes on a provider's stream and does nothing else.

It has no database, no middleware and no users. `BARE_RELAY_UPSTREAM` is the provider's address.
"""

import os
from collections.abc import AsyncIterator

import httpx2
from django.conf import settings
from django.http import HttpRequest, StreamingHttpResponse
from django.urls import path

settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, SECRET_KEY="bare", MIDDLEWARE=[])

from django.core.asgi import get_asgi_application  # noqa: E402 - it reads the settings

_client = httpx2.AsyncClient(timeout=60, limits=httpx2.Limits(max_connections=None))


async def relay_answer(request: HttpRequest) -> StreamingHttpResponse:
    """Answer with the bytes of the provider's stream."""
    content = request.body.decode()

    async def read_provider() -> AsyncIterator[bytes]:
        body = {"stream": True, "messages": [{"role": "user", "content": content}]}
        url = f"{os.environ['BARE_RELAY_UPSTREAM']}/chat/completions"
        async with _client.stream("POST", url, json=body) as response:
            async for data in response.aiter_raw():
                yield data

    return StreamingHttpResponse(read_provider(), content_type="text/event-stream")


urlpatterns = [path("relay", relay_answer)]
application = get_asgi_application()
