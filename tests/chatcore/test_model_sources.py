"""`chatcore sync_models --from`: a newer list is compared first, and written only when asked."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from models_registry import catalog
from models_registry.models import AiModel
from tests.support.local_server import LocalHandler, LocalServer

pytestmark = pytest.mark.django_db

LIST = {
    "openai": {
        "id": "openai",
        "models": {
            "gpt-4o": {
                "id": "gpt-4o",
                "tool_call": True,
                "modalities": {"input": ["text", "image"], "output": ["text"]},
                "limit": {"context": 130_000, "output": 17_000},
                "cost": {"input": 2.4, "output": 9.5},
            },
            "gpt-99": {"id": "gpt-99", "limit": {"context": 1_000}},
        },
    },
    "google": {"id": "google", "models": {"gemini-2.5-flash": {"limit": {"context": 7}}}},
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "api.json"
    path.write_text(json.dumps(LIST))
    catalog.sync()
    return path


def sync(*arguments: str) -> str:
    output = io.StringIO()
    call_command("sync_models", *arguments, stdout=output)
    return output.getvalue()


def find_model(name: str = "gpt-4o") -> AiModel:
    return AiModel.objects.get(name=name)


def test_a_newer_list_is_shown_as_differences_and_nothing_is_written(file: Path) -> None:
    before = AiModel.objects.order_by("pk").values()
    rows = list(before)
    output = sync("--from", str(file))
    assert "openai/gpt-4o: context_window_size 128000 → 130000" in output
    assert "gemini/gemini-2.5-flash: context_window_size 1048576 → 7" in output
    assert "1 models of the list are not in the registry" in output
    assert "Nothing was written." in output
    assert list(before.all()) == rows


def test_it_is_written_when_asked_and_says_from_where(file: Path) -> None:
    assert "2 models written" in sync("--from", str(file), "--write")
    model = find_model()
    assert (model.context_window_size, model.max_output_tokens) == (130_000, 17_000)
    assert (model.input_price, model.output_price) == (2.5, 10)  # are of another list
    assert (model.values_source, model.values_date is not None) == (str(file), True)
    assert find_model("gpt-4o-mini").values_date is None
    assert "0 differences" in sync("--from", str(file))


def test_an_operators_edit_stays_and_is_named(file: Path) -> None:
    AiModel.objects.filter(name="gpt-4o").update(context_window_size=64_000)
    output = sync("--from", str(file), "--write")
    assert "context_window_size 64000 → 130000 (set by an operator, stays)" in output
    model = find_model()
    assert (model.context_window_size, model.max_output_tokens) == (64_000, 17_000)


def test_an_older_catalog_does_not_take_the_values_back(file: Path) -> None:
    sync("--from", str(file), "--write")
    sync()
    assert find_model().context_window_size == 130_000


@pytest.fixture
def address(file: Path) -> Iterator[str]:
    class Handler(LocalHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(file.read_bytes())

    with LocalServer(Handler) as server:
        yield f"{server.url}/api.json"


def test_a_list_is_fetched_from_an_address(address: str) -> None:
    assert "openai/gpt-4o: max_output_tokens 16384 → 17000" in sync("--from", address)


@pytest.mark.parametrize("content", ["", "[]", '{"openai": {"models": {"a": 5}}}', "\x00"])
def test_something_else_than_a_list_is_refused_in_words(file: Path, content: str) -> None:
    file.write_text(content)
    with pytest.raises(CommandError, match=r"list|could not be read"):
        sync("--from", str(file), "--write")


def test_a_place_that_is_not_there_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="could not be read"):
        sync("--from", str(tmp_path / "nothing.json"))


def test_writing_without_a_list_is_refused() -> None:
    with pytest.raises(CommandError, match="--write needs --from"):
        sync("--write")
