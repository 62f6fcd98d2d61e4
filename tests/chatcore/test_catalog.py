"""The catalog: a plain migrate brings its models, and nothing overwrites an edit of an operator."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command

from models_registry import catalog
from models_registry.models import AiModel, Provider

SEEDED_WINDOWS = {
    "claude-sonnet-4-20250514": 200_000,
    "claude-haiku-3-5-20241022": 200_000,
    "claude-opus-4-20250514": 200_000,
    "gpt-4o": 128_000,
    "gpt-4o-mini": 128_000,
    "gpt-4-turbo": 128_000,
    "gemini-2.0-flash": 1_048_576,
    "gemini-2.5-pro-preview-05-06": 1_048_576,
}
KEYS = [
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "MISTRAL_API_KEY",
    "DEEPSEEK_API_KEY",
    "OPENROUTER_API_KEY",
]


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)


@pytest.fixture
def synced(db: None) -> None:
    """Whatever keys the machine has, the rows are those of a machine without."""
    catalog.sync()


@pytest.mark.parametrize(("name", "window"), SEEDED_WINDOWS.items())
def test_a_plain_migrate_leaves_the_preseeded_windows(synced: None, name: str, window: int) -> None:
    assert AiModel.objects.get(name=name).context_window_size == window


@pytest.mark.parametrize(
    ("name", "window", "max_input"),
    [
        ("gpt-4.1", 1_047_576, None),
        ("gpt-5", 400_000, 272_000),
        ("gpt-5.2", 400_000, 272_000),
        ("gpt-5.4", 1_050_000, 922_000),
        ("claude-sonnet-4-5", 200_000, None),
    ],
)
def test_a_window_and_what_a_request_may_have_of_it(
    synced: None, name: str, window: int, max_input: int | None
) -> None:
    model = AiModel.objects.get(name=name)
    assert (model.context_window_size, model.max_input_tokens) == (window, max_input)
    assert model.request_limit == (max_input or window)


def test_models_of_no_provider_are_looked_up_and_not_offered(synced: None) -> None:
    model = catalog.look_up_model("amazon.nova-pro-v1:0")
    assert model is not None
    assert (model.provider, model.values) == (None, {"context_window_size": 300_000})
    assert not AiModel.objects.filter(name__contains="nova").exists()


@pytest.mark.parametrize(
    ("name", "reserve"),
    [
        ("deepseek-v4-pro", 32_768),
        ("claude-opus-4-6", 0),
        ("claude-sonnet-4-6", 0),
        ("x-ai/grok-4.3", 65_536),
        ("gpt-5", 65_536),
        ("gpt-4.1", 32_768),
        ("moonshotai/kimi-k2-0905", 65_536),
        ("qwen/qwen3.7-max", 65_536),
        ("gpt-4o", None),
    ],
)
def test_an_output_reserve_is_what_wolffish_gives_the_model(
    synced: None, name: str, reserve: int | None
) -> None:
    assert AiModel.objects.get(name=name).output_reserve == reserve


NEUROLINK_WINDOWS = {
    "claude-opus-4-20250514": 200_000,
    "claude-sonnet-4-20250514": 200_000,
    "claude-3-7-sonnet-20250219": 200_000,
    "claude-3-5-sonnet-20241022": 200_000,
    "claude-3-5-haiku-20241022": 200_000,
    "claude-3-opus-20240229": 200_000,
    "claude-3-sonnet-20240229": 200_000,
    "claude-3-haiku-20240307": 200_000,
    "gpt-4o": 128_000,
    "gpt-4o-mini": 128_000,
    "gpt-4-turbo": 128_000,
    "gpt-4": 8_192,
    "gpt-3.5-turbo": 16_385,
    "o1": 200_000,
    "o1-mini": 128_000,
    "o1-pro": 200_000,
    "o3": 200_000,
    "o3-mini": 200_000,
    "o4-mini": 200_000,
    "gpt-4.1": 1_047_576,
    "gpt-4.1-mini": 1_047_576,
    "gpt-4.1-nano": 1_047_576,
    "gemini-2.5-pro": 1_048_576,
    "gemini-2.5-flash": 1_048_576,
    "gemini-2.0-flash": 1_048_576,
    "gemini-1.5-pro": 2_097_152,
    "gemini-1.5-flash": 1_048_576,
    "gemini-3-flash-preview": 1_048_576,
    "gemini-3-pro-preview": 1_048_576,
    "mistral-large-latest": 128_000,
    "mistral-medium-latest": 32_000,
    "mistral-small-latest": 128_000,
    "codestral-latest": 256_000,
}


def test_neurolinks_windows_are_the_registry_s(synced: None) -> None:
    """Compare all its models of our providers but gpt-5.

    The window of gpt-5 has 400,000 tokens, not 1,047,576.
    """
    windows = dict(
        AiModel.objects.filter(name__in=NEUROLINK_WINDOWS).values_list(
            "name", "context_window_size"
        )
    )
    assert windows == NEUROLINK_WINDOWS


def test_a_model_that_its_vendor_has_replaced_is_known_but_not_offered(
    synced: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    catalog.sync()
    assert AiModel.objects.find_by_name("gpt-4") is None
    AiModel.objects.filter(name="gpt-4").update(is_active=True)
    catalog.sync()
    model = AiModel.objects.find_by_name("gpt-4")
    assert model is not None
    assert model.context_window_size == 8_192


def test_every_value_names_a_source_with_a_date() -> None:
    data = json.loads(Path(catalog.CATALOG_PATH).read_text())
    cells = [
        cell
        for row in data["models"]
        for field, cell in row.items()
        if field not in {"provider", "name"}
    ]
    named = {source for cell in cells if cell is not None for _, source in [cell]}
    assert named == data["sources"].keys()
    assert all(source["title"] and source["date"] for source in data["sources"].values())


def test_every_row_of_the_catalog_is_valid(synced: None) -> None:
    for row in [*Provider.objects.all(), *AiModel.objects.all()]:
        row.full_clean()


def test_output_fits_into_the_window(synced: None) -> None:
    assert not [
        m.name
        for m in AiModel.objects.all()
        if m.context_window_size and (m.max_output_tokens or 0) >= m.context_window_size
    ]


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("gpt-4o", "gpt-4o"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("gpt-4.1-2025-04-14", "gpt-4.1"),
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("qwen/qwen3-coder:free", "qwen/qwen3-coder"),
        ("gpt-4", "gpt-4"),
        ("gpt-4-0613", "gpt-4"),
        ("gpt-4-turbo-2024-04-09", "gpt-4-turbo"),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-3-5-sonnet-20241022"),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", "claude-sonnet-4-20250514"),
        ("global.anthropic.claude-opus-4-6-v1", "claude-opus-4-6"),
        (
            "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.claude-haiku-4-5-v1:0",
            "claude-haiku-4-5",
        ),
        ("amazon.nova-pro-v1:0", "nova-pro"),
        ("us.amazon.nova-lite-v1:0", "nova-lite"),
        ("anthropic/claude-sonnet-4", "claude-sonnet-4-20250514"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("openrouter/openai/gpt-4o:free", "gpt-4o"),
        ("google/gemini-2.5-pro", "gemini-2.5-pro"),
        ("moonshotai/kimi-k2", "kimi-k2"),
        ("openai/gpt-5.9", None),
        ("anthropic/", None),
        ("amazon.titan-text-premier-v1:0", None),
        ("anthropic.claude-9", None),
        ("gpt-4-vision", None),
        ("gpt-4.5", None),
        ("gpt-5.9", None),
        ("gpt-4o2", None),
        ("gpt-5-pro", None),
        ("gemini-2.5-flash-image", None),
        ("my-own-model", None),
        ("", None),
    ],
)
def test_a_name_is_found_exactly_or_as_a_snapshot_of_the_longest_name(
    name: str, known: str | None
) -> None:
    model = catalog.look_up_model(name)
    assert (model.name if model else None) == known


@pytest.mark.parametrize(
    ("name", "prices"),
    [
        ("gpt-4o", ("2.5", "1.25", None, "10")),
        ("claude-opus-4-6", ("5", "0.5", "6.25", "25")),
        ("x-ai/grok-4.3", ("1.25", "0.2", None, "2.5")),  # OpenRouter's names need its own list
        ("claude-haiku-3-5-20241022", (None, None, None, None)),
    ],
)
def test_prices_are_those_of_the_list_of_the_installed_release(
    synced: None, name: str, prices: tuple[str | None, ...]
) -> None:
    model = AiModel.objects.get(name=name)
    kinds = ("input_price", "cached_input_price", "cache_write_price", "output_price")
    expected = [price and Decimal(price) for price in prices]
    assert [getattr(model, kind) for kind in kinds] == expected


def test_prices_that_depend_on_the_length_of_a_request_are_tiers(synced: None) -> None:
    assert AiModel.objects.get(name="gemini-2.5-pro").price_tiers == [
        {"above": 200_000, "input": "2.5", "cached_input": "0.25", "output": "15"}
    ]


def test_an_operators_price_makes_all_prices_of_the_model_the_operators(synced: None) -> None:
    AiModel.objects.filter(name="gpt-4o").update(
        input_price=1, cached_input_price=None, output_price=2, catalog_values={"input_price": "7"}
    )
    catalog.sync()
    model = AiModel.objects.get(name="gpt-4o")
    assert (model.input_price, model.cached_input_price, model.output_price) == (1, None, 2)


def test_prices_follow_their_list_also_where_limits_are_of_a_newer_one(synced: None) -> None:
    model = AiModel.objects.get(name="gpt-4o")
    model.values_date = catalog.load_catalog().date
    model.input_price = Decimal(7)
    model.context_window_size = model.catalog_values["context_window_size"] = 130_000
    model.catalog_values["input_price"] = "7"  # as an older release left it
    model.save()
    catalog.sync()
    model.refresh_from_db()
    assert (model.input_price, model.context_window_size) == (Decimal("2.5"), 130_000)


def test_syncing_again_writes_nothing(synced: None) -> None:
    assert catalog.sync() == 0


def test_syncing_takes_few_queries(synced: None, django_assert_max_num_queries: Any) -> None:
    with django_assert_max_num_queries(10):
        catalog.sync()


def test_an_operators_edit_stays(synced: None) -> None:
    AiModel.objects.filter(name="gpt-4o").update(
        context_window_size=64_000, input_price=Decimal("1.5"), is_active=False
    )
    Provider.objects.filter(name="openai").update(base_url="http://gateway.internal/v1")
    catalog.sync()
    edited = AiModel.objects.get(name="gpt-4o")
    assert (edited.context_window_size, edited.input_price, edited.is_active) == (
        64_000,
        Decimal("1.5"),
        False,
    )
    assert Provider.objects.get(name="openai").base_url == "http://gateway.internal/v1"


def test_an_operators_edit_to_unknown_stays_unknown(synced: None) -> None:
    AiModel.objects.filter(name="gpt-4o").update(context_window_size=None)
    catalog.sync()
    assert AiModel.objects.get(name="gpt-4o").context_window_size is None


def test_a_value_that_nobody_edited_follows_the_catalog(synced: None) -> None:
    row = AiModel.objects.get(name="gpt-4o")
    row.context_window_size, row.catalog_values["context_window_size"] = (
        100_000,
        100_000,
    )  # as an older catalog left it
    row.save()
    assert catalog.sync() == 1
    assert AiModel.objects.get(name="gpt-4o").context_window_size == 128_000


def test_an_operators_own_row_is_not_adopted(synced: None) -> None:
    Provider.objects.all().delete()
    own = Provider.objects.create(
        name="openai", protocol="openai", base_url="http://127.0.0.1:1/v1"
    )
    AiModel.objects.create(provider=own, name="gpt-4o", context_window_size=32_000)
    catalog.sync()
    own.refresh_from_db()
    assert (own.base_url, own.is_active) == ("http://127.0.0.1:1/v1", True)
    assert own.models.get(name="gpt-4o").context_window_size == 32_000
    assert own.models.get(name="gpt-4o-mini").context_window_size == 128_000


def test_models_without_a_key_are_kept_but_not_offered(synced: None) -> None:
    assert AiModel.objects.filter(name="gpt-4o").exists()
    assert not AiModel.objects.filter_usable().exists()
    assert AiModel.objects.find_default() is None


def test_a_provider_is_offered_while_its_variable_is_set(
    synced: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    catalog.sync()
    assert set(AiModel.objects.filter_usable().values_list("provider__name", flat=True)) == {
        "openai"
    }
    assert str(AiModel.objects.find_default()).startswith("openai/")
    monkeypatch.delenv("OPENAI_API_KEY")
    catalog.sync()
    assert not AiModel.objects.filter_usable().exists()


def test_a_provider_with_a_stored_key_is_offered(synced: None) -> None:
    provider = Provider.objects.get(name="mistral")
    provider.api_key = "secret"
    provider.save()
    catalog.sync()
    provider.refresh_from_db()
    assert provider.is_active


def test_a_variable_that_an_operator_renamed_is_the_one_that_counts(
    synced: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    Provider.objects.filter(name="openai").update(api_key_env="TEAM_KEY")
    monkeypatch.setenv("TEAM_KEY", "sk-test")
    catalog.sync()
    assert Provider.objects.get(name="openai").is_active


def test_an_operators_switch_is_not_thrown_back(
    synced: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    Provider.objects.filter(name="ollama").update(is_active=True)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    catalog.sync()
    Provider.objects.filter(name="openai").update(is_active=False)
    catalog.sync()
    assert Provider.objects.get(name="ollama").is_active
    assert not Provider.objects.get(name="openai").is_active


def test_no_default_is_set_by_the_catalog(synced: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    catalog.sync()
    assert not AiModel.objects.filter(is_default=True).exists()


def test_the_command_says_what_it_did(synced: None, capsys: pytest.CaptureFixture[str]) -> None:
    AiModel.objects.filter(name="gpt-4o").delete()
    call_command("sync_models")
    assert capsys.readouterr().out.startswith("1 rows written; 0 of ")


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_migrating_back_and_forth_seeds_again() -> None:
    call_command("migrate", "models_registry", "zero", verbosity=0)
    call_command("migrate", verbosity=0)  # all apps: others depend on what was taken back
    assert AiModel.objects.get(name="gpt-5").max_input_tokens == 272_000
    assert AiModel.objects.filter(name__in=SEEDED_WINDOWS).count() == 8
    assert apps.get_app_config("models_registry").verbose_name == "Language models"
