"""The path below which a server is: which ones can be used, and what is let in."""

import contextlib
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test.utils import override_script_prefix

from chatcore.base.environment import read_base_path
from chatcore.serving.path_prefix import restore_path, serve_below

NAME = "CHATCORE_BASE_PATH"


@pytest.mark.parametrize("path", ["", "/chat", "/tools/chat", "/a.b/~c_d-e", "/..a"])
def test_plain_paths_can_be_used(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, path)
    assert read_base_path(NAME) == path


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "chat",
        "/chat/",
        "//chat",
        "/a//b",
        "/a/../b",
        "/.",
        "/a b",
        "/ä",
        "/a%20",
        "/a?b",
        "/a;",
    ],
)
def test_other_paths_stop_the_start_with_their_name(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NAME, path)
    with pytest.raises(ImproperlyConfigured, match=f"{NAME} is .* one is as /chat"):
        read_base_path(NAME)


def test_without_a_path_there_is_no_door() -> None:
    async def serve(scope: Any, receive: Any, send: Any) -> None:
        """Do nothing."""

    assert serve_below("", serve) is serve
    scope = {"path": "/c/", "root_path": "/mounted"}
    assert restore_path(scope) is scope


@pytest.mark.parametrize(
    ("base_path", "path", "path_within"),
    [
        ("/chat", "/chat/", "/"),
        ("/chat", "/chat/c/1/", "/c/1/"),
        ("/api", "/api/api/v1/sessions", "/api/v1/sessions"),  # once, though it is there twice
        ("/chat", "/readyz", "/readyz"),
        ("/r", "/readyz", "/readyz"),  # begins as a probe does
        ("/r", "/r/metrics", "/metrics"),
    ],
)
def test_within_paths_are_as_without_it_and_django_takes_the_same_part_off(
    base_path: str, path: str, path_within: str
) -> None:
    seen: list[Any] = []

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope)

    nothing: Any = None
    request: Any = serve_below(base_path, serve)({"type": "http", "path": path}, nothing, nothing)
    # Nothing in it waits, so it needs no loop. It sets the prefix for all that runs after it.
    with override_script_prefix("/"), contextlib.suppress(StopIteration):
        request.send(None)
    [scope] = seen
    assert scope["path"] == path_within
    assert restore_path(scope)["path"].removeprefix(base_path) == path_within
