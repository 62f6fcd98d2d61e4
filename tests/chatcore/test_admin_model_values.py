"""The admin compares limits and abilities with a newer list, and writes what a person ticks."""

import datetime
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from chatcore.admin import language_models
from chatcore.contrib.audit.models import AuditEntry
from chatcore.serving.request_bodies import find_limit
from models_registry import catalog
from models_registry.models import AiModel
from tests.support.sample_site import Site, allow, page, site, sites

__all__ = ["allow", "site", "sites"]

pytestmark = pytest.mark.django_db
PAGE = "/admin/models_registry/aimodel/compare/"
LISTS = "/admin/models_registry/aimodel/"
MODELS: dict[str, Any] = {
    "gpt-4o": {
        "limit": {"context": 130_000, "output": 17_000},
        "tool_call": False,
        "cost": {"input": 2.4},
    },
    "gpt-4o-mini": {"limit": {"context": 64_000}},
    "<b>gpt-99</b>": {"limit": {"context": 1_000}},
}


def pack(models: dict[str, Any]) -> bytes:
    return json.dumps({"openai": {"models": models}}).encode()


@pytest.fixture
def listed(site: Site, settings: Any) -> Site:
    """A list on loopback, which the operator has allowed."""
    site.pages["/api.json"] = page(pack(MODELS), "application/json")
    settings.CHATCORE = settings.CHATCORE | {"MODEL_LIST": f"{site.url}/api.json"}
    return site


@pytest.fixture
def models(db: None) -> None:
    catalog.sync()
    AiModel.objects.filter(name="gpt-4o-mini").update(context_window_size=100_000)


def sign_in(*rights: str) -> Client:
    staff = User.objects.create_user("operator", is_staff=True)
    staff.user_permissions.set(
        Permission.objects.filter(content_type__app_label="models_registry", codename__in=rights)
    )
    client = Client()
    client.force_login(staff)
    return client


@pytest.fixture
def operator(models: None) -> Client:
    return sign_in("change_aimodel", "view_aimodel")


def find_model(name: str = "gpt-4o") -> AiModel:
    return AiModel.objects.get(provider__name="openai", name=name)


def read_rows(html: str) -> dict[str, tuple[str, bool]]:
    """Return the number of each difference, and whether it is ticked, by model and field."""
    boxes = re.findall(r'name="take"\s+value="(\d+)"\s+aria-label="([^"]+)"\s*(checked)?\s*>', html)
    return {name: (number, bool(checked)) for number, name, checked in boxes}


def take(client: Client, html: str, *names: str) -> str:
    """Send the form with these rows ticked, and return the page that follows."""
    [comparison] = re.findall(r'name="comparison" value="([^"]+)"', html)
    numbers = [read_rows(html)[name][0] for name in names]
    answer = client.post(PAGE, {"comparison": comparison, "take": numbers}, follow=True)
    return answer.content.decode()


def test_differences_are_shown_an_operators_own_unticked_and_nothing_is_written(
    operator: Client, listed: Site
) -> None:
    assert f'href="{PAGE}"' in operator.get(LISTS).content.decode()
    before = list(AiModel.objects.order_by("pk").values())
    assert "127.0.0.1" in operator.get(PAGE).content.decode()
    assert listed.seen == []  # to look at the page fetches nothing
    html = operator.post(PAGE).content.decode()
    assert {name: is_ticked for name, (_, is_ticked) in read_rows(html).items()} == {
        "openai/gpt-4o, context window size": True,
        "openai/gpt-4o, max output tokens": True,
        "openai/gpt-4o, supports tools": True,
        "openai/gpt-4o-mini, context window size": False,
    }
    assert "128,000" in html
    assert "17,000" in html
    assert "1 models of the list are not in the registry" in html
    assert list(AiModel.objects.order_by("pk").values()) == before


def test_what_is_ticked_is_taken_with_an_entry_and_its_age_is_shown(
    operator: Client, listed: Site
) -> None:
    html = operator.post(PAGE).content.decode()
    names = ("openai/gpt-4o, max output tokens", "openai/gpt-4o-mini, context window size")
    assert "2 values of 2 models" in take(operator, html, *names)
    model = find_model()
    assert (model.max_output_tokens, model.context_window_size) == (17_000, 128_000)
    assert (model.values_source, model.values_date) == ("127.0.0.1", timezone.now().date())
    assert find_model("gpt-4o-mini").context_window_size == 64_000
    entry = AuditEntry.objects.get(object_type="models_registry.aimodel", object_id=model.pk)
    assert (entry.act, entry.detail) == ("admin.changed", "max_output_tokens")
    assert entry.actor == User.objects.get(username="operator")
    assert LogEntry.objects.filter(object_id=str(model.pk)).count() == 1

    long_ago = timezone.now().date() - datetime.timedelta(days=53)
    AiModel.objects.filter(pk=model.pk).update(values_date=long_ago)
    row = operator.get(f"{LISTS}?q=gpt-4o").content.decode()
    assert f"127.0.0.1 of {long_ago}, 53 days ago" in row
    # What was taken is the list's from now on, so a newer one replaces it without asking.
    rows = read_rows(operator.post(PAGE).content.decode())
    assert "openai/gpt-4o-mini, context window size" not in rows


def test_what_changed_after_the_comparison_stays(operator: Client, listed: Site) -> None:
    html = operator.post(PAGE).content.decode()
    AiModel.objects.filter(pk=find_model().pk).update(max_output_tokens=9)
    page_after = take(operator, html, "openai/gpt-4o, max output tokens")
    assert "1 were changed meanwhile" in page_after
    assert find_model().max_output_tokens == 9
    assert find_model().values_date is None


def test_a_file_is_compared_where_the_server_reaches_no_other(operator: Client) -> None:
    file = SimpleUploadedFile("api.json", pack(MODELS))
    html = operator.post(PAGE, {"file": file}).content.decode()
    assert "1 values of 1 models" in take(operator, html, "openai/gpt-4o, max output tokens")
    assert find_model().values_source == "api.json"
    assert find_limit(PAGE) > language_models.MAX_BYTES


def test_a_source_out_of_reach_is_said_in_words(operator: Client, listed: Site) -> None:
    listed.pages["/api.json"] = page("busy", status=500)
    answer = operator.post(PAGE)
    assert answer.status_code == 503
    assert "cannot be reached now: It answered 500." in answer.content.decode()
    listed.server.stop()
    answer = operator.post(PAGE)
    assert answer.status_code == 503
    assert "Upload its file instead." in answer.content.decode()


def test_an_address_of_the_inner_network_is_not_asked(
    operator: Client, listed: Site, allow: Callable[..., None]
) -> None:
    allow()
    assert operator.post(PAGE).status_code == 503
    assert listed.seen == []


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"\x00", b"[" * 100_000, b'{"openai": {"models": {"a": 5}}}']
)
def test_something_else_than_a_list_is_refused_in_words(
    operator: Client, listed: Site, content: bytes
) -> None:
    listed.pages["/api.json"] = page(content, "application/json")
    for answer, status in (
        (operator.post(PAGE), 503),
        (operator.post(PAGE, {"file": SimpleUploadedFile("list.json", content or b" ")}), 400),
    ):
        assert answer.status_code == status
        assert "is no list of models" in answer.content.decode()


def test_a_list_without_an_end_is_not_read_to_it(
    operator: Client, listed: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(language_models, "MAX_BYTES", 1_000_000)
    listed.pages["/api.json"] = page(b" " * 1_000_001, "application/json")
    answer = operator.post(PAGE)
    assert (answer.status_code, "larger than 1 MB" in answer.content.decode()) == (503, True)
    file = SimpleUploadedFile("list.json", b" " * 1_000_001)
    assert operator.post(PAGE, {"file": file}).status_code == 413


@pytest.mark.parametrize(
    "row",
    [
        {"limit": {"context": "a lot"}},
        {"limit": {"context": 10**30}},
        {"limit": {"context": -5}},
        {"limit": {"context": True}},
        {"limit": {"output": [1]}},
        {"limit": {"output": float("nan")}},
        {"limit": {"output": float("inf")}},
        {"tool_call": "<script>alert(1)</script>"},
    ],
)
def test_values_that_no_model_can_have_are_left_out(
    operator: Client, listed: Site, row: dict[str, Any]
) -> None:
    row = {"limit": {"context": 130_000}} | row if "limit" not in row else row
    listed.pages["/api.json"] = page(pack({"gpt-4o": row}), "application/json")
    answer = operator.post(PAGE)
    html = answer.content.decode()
    assert answer.status_code == 200
    assert "that no model can have are left out" in html
    assert "openai/gpt-4o: " in html
    assert "<script>alert" not in html
    assert set(read_rows(html)) <= {"openai/gpt-4o, context window size"}


def test_names_of_a_list_and_of_a_file_stay_texts(operator: Client, listed: Site) -> None:
    AiModel.objects.filter(name="gpt-4o").update(name="<b>gpt-99</b>")
    assert "<b>gpt-99" not in operator.post(PAGE).content.decode()
    file = SimpleUploadedFile("<i>x</i>.json", b"[]")
    assert "<i>x" not in operator.post(PAGE, {"file": file}).content.decode()


def test_only_who_may_change_models_may_compare_and_take(models: None, listed: Site) -> None:
    viewer = sign_in("view_aimodel")
    assert PAGE not in viewer.get(LISTS).content.decode()
    assert viewer.get(PAGE).status_code == 403
    assert viewer.post(PAGE).status_code == 403
    assert viewer.post(PAGE, {"comparison": "x"}).status_code == 403
    assert Client().get(PAGE).status_code == 302
    assert listed.seen == []


def test_a_made_up_comparison_writes_nothing(operator: Client) -> None:
    before = list(AiModel.objects.order_by("pk").values())
    answer = operator.post(PAGE, {"comparison": "made up", "take": ["0"]}, follow=True)
    assert "Compare again" in answer.content.decode()
    assert list(AiModel.objects.order_by("pk").values()) == before
