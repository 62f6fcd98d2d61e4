"""Ollama's windows are read from its own API, as it cuts longer requests without a word."""

import json
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from models_registry.models import AiModel, Provider
from tests.support.local_server import LocalServer

pytestmark = pytest.mark.django_db(transaction=True)


class OllamaServer(LocalServer):
    """Answers as Ollama 0.12 does; a model runs once it was loaded."""

    def __init__(self) -> None:
        super().__init__(OllamaHandler)
        self.loaded: list[str] = []


class OllamaHandler(BaseHTTPRequestHandler):
    server: OllamaServer

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            names = ("qwen3:8b", "llama3:8b", "long-reader", "tiny")
            rows = [{"id": name, "object": "model", "owned_by": "library"} for name in names]
            return self.answer({"object": "list", "data": rows})
        running = [{"name": name, "context_length": 8_192} for name in self.server.loaded]
        return self.answer({"models": running} if self.path == "/api/ps" else {})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = body["model"]
        if self.path == "/api/generate":
            self.server.loaded.append(name)
            return self.answer({"done": True})
        trained = 2_048 if name == "tiny" else 131_072
        parameters = "temperature 0.6\nnum_ctx 32768" if name == "long-reader" else "top_k 20"
        return self.answer(
            {
                "parameters": parameters,
                "model_info": {"general.architecture": "x", "x.context_length": trained},
                "capabilities": ["completion", "tools"] if name == "qwen3:8b" else ["completion"],
            }
        )

    def answer(self, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def test_each_model_of_an_ollama_has_the_window_with_which_it_runs(client: Client) -> None:
    operator = User.objects.create_superuser("operator")
    client.force_login(operator)
    with OllamaServer() as server:
        text = client.post(reverse("connect_server"), {"address": server.url}).content.decode()
        assert "reads 32.8k tokens" in text  # its file says so
        provider = Provider.objects.get(base_url=f"{server.url}/v1")
        names = ["qwen3:8b", "llama3:8b", "long-reader", "tiny"]
        client.post(reverse("add_models", args=[provider.pk]), {"model": names})
        assert server.loaded == ["qwen3:8b"]
    models = AiModel.objects.filter(provider=provider)
    assert dict(models.values_list("name", "context_window_size")) == {
        "qwen3:8b": 8_192,
        "llama3:8b": 8_192,
        "long-reader": 32_768,
        "tiny": 2_048,
    }
    assert models.get(name="qwen3:8b").supports_tools is True
    assert models.get(name="tiny").supports_tools is False
