"""The views of OpenAI's API."""

import re
from collections.abc import Callable, Mapping
from functools import partial

from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore.accounts.rights import select_models
from chatcore.base.rest import turn_rate
from chatcore.base.rest.auth import ApiKeyAuthentication, SignedInRequest
from chatcore.base.rest.parsers import ImportBodyParser
from chatcore.contrib.compat import answers
from chatcore.contrib.compat.chat_completions import errors
from chatcore.contrib.compat.chat_completions.completion_format import CompletionForm
from chatcore.contrib.compat.chat_completions.model_format import format_model, format_models
from chatcore.contrib.compat.chat_completions.request import (
    get_usable_model,
    parse_completion_request,
)
from chatcore.contrib.compat.messages import errors as anthropic_errors
from chatcore.contrib.compat.programs import get_keeping
from chatcore.contrib.compat.web_search import serve_search

VERSION_HEADER = "anthropic-version"  # which Anthropic's clients send with every request


class CompatibleAPIView(APIView):
    """A view with errors in the form of its API. It accepts tokens only, no cookies."""

    authentication_classes = (ApiKeyAuthentication,)
    parser_classes = (ImportBodyParser,)
    schema = None  # OpenAI publishes the document of this API

    def finalize_response(
        self, request: Request, response: Response, *args: object, **kwargs: object
    ) -> Response:
        """Add the headers about the user's limit of turns."""
        response = super().finalize_response(request, response, *args, **kwargs)
        if request.user:  # None for somebody who has not signed in
            for name, value in turn_rate.build_turn_headers(request.user.pk).items():
                response.headers[name] = value
        return response

    def get_exception_handler(self) -> Callable[[Exception, dict[str, object]], Response]:
        """Return the handler of this API in place of the REST API's."""
        return partial(errors.handle_exception, format_error=self.format_error)

    def format_error(self, problem: Mapping[str, object]) -> tuple[int, dict[str, object]]:
        """Return the status and the body for the body of a problem."""
        return errors.format_error(problem)


class ChatCompletionsView(CompatibleAPIView):
    """Chat completions."""

    def post(self, request: SignedInRequest) -> HttpResponseBase:
        """Answer the last message, with a memory if the request names a session."""
        completion_request = parse_completion_request(
            request.user, request.data, request.headers, get_keeping(request.auth)
        )
        completion_request = serve_search(request.user, completion_request, request.data)
        return answers.answer(request, completion_request, CompletionForm(completion_request))


class ModelsView(CompatibleAPIView):
    """A view for the clients of both APIs, each of which gets errors in its own form."""

    def format_error(self, problem: Mapping[str, object]) -> tuple[int, dict[str, object]]:
        """Return the status and the body in the form of the client that sends the request."""
        if VERSION_HEADER in self.request.headers:
            return anthropic_errors.format_error(problem)
        return super().format_error(problem)


class ModelListView(ModelsView):
    """The language models that can be used."""

    def get(self, request: SignedInRequest) -> Response:
        """Return all models on one page, as OpenAI does."""
        models = select_models(request.user.pk).filter_usable().order_by("id")
        return Response(format_models(list(models)))


class ModelDetailView(ModelsView):
    """One language model."""

    def get(self, request: SignedInRequest, name: str) -> Response:
        """Return the model of this name, or of `provider/name`."""
        model = get_usable_model(request.user, name)
        is_alias = name not in (model.name, str(model))
        return Response(format_model(model, alias=name if is_alias else ""))


# The end of an address that a client asks for.
RESOURCE = (
    r"(?P<resource>chat/completions|completions|embeddings|models|responses"
    r"|messages(?:/count_tokens)?)/?"
)
WITHOUT_VERSION = " The base address of OpenAI's clients ends in /v1 here: {origin}/v1."
VERSION_TWICE = (
    " The base address of this client, which adds /v1 itself, is {origin}, without /v1 at its end."
)


class UnknownUrlView(CompatibleAPIView):
    """Any other path under /v1/."""

    authentication_classes = ()  # type: ignore[assignment]
    permission_classes = ()

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        """Raise the 404 problem for every method; it names the address that was meant."""
        detail = f"Unknown request URL: {request.method} {request.path[:200]}."
        detail += _name_base_address(request.path, f"{request.scheme}://{request.get_host()}")
        raise errors.OpenAIProblem(404, "unknown_url", detail)


def _name_base_address(path: str, origin: str) -> str:
    """Name the base address that a client needs; empty where it has the right one."""
    match = re.search(rf"/{RESOURCE}$", path)
    if match is None or path.rstrip("/") == f"/v1/{match['resource']}":
        return ""
    adds_version = path.startswith("/v1/v1/") or match["resource"].startswith("messages")
    return (VERSION_TWICE if adds_version else WITHOUT_VERSION).format(origin=origin)
