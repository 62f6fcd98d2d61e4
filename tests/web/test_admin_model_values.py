"""The comparison with a newer list, by hand: shown, ticked, taken, and axe on its page."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from models_registry import catalog
from models_registry.models import AiModel
from tests.support.sample_site import Site, allow, site, sites
from tests.support.sample_site import page as build_page
from tests.web.test_admin_roles import sign_in_as
from tests.web.test_axe import expect_none, find_objections

__all__ = ["allow", "sign_in_as", "site", "sites"]

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
LIST = {
    "gpt-4o": {"limit": {"context": 130_000, "output": 17_000}, "tool_call": False},
    "gpt-4o-mini": {"limit": {"context": 64_000, "output": -1}},
}


def test_a_person_compares_chooses_and_takes(
    page: Page, site: Site, settings: Any, sign_in_as: Callable[[User], None]
) -> None:
    catalog.sync()
    AiModel.objects.filter(name="gpt-4o-mini").update(context_window_size=100_000)
    content = json.dumps({"openai": {"models": LIST}})
    site.pages["/api.json"] = build_page(content, "application/json")
    settings.CHATCORE = settings.CHATCORE | {"MODEL_LIST": f"{site.url}/api.json"}
    sign_in_as(User.objects.create_superuser("root"))
    page.goto("/admin/models_registry/aimodel/")
    page.get_by_role("link", name="Compare with a newer list").click()
    page.get_by_role("button", name="Compare with 127.0.0.1").click()
    window = page.get_by_label("openai/gpt-4o-mini, context window size")
    expect(window).not_to_be_checked()
    expect_none({"comparison": find_objections(page)})
    page.get_by_label("openai/gpt-4o, max output tokens").uncheck()
    page.get_by_role("button", name="Take these").click()
    expect(page.get_by_text("Taken from 127.0.0.1: 2 values of 1 models.")).to_be_visible()
    model = AiModel.objects.get(provider__name="openai", name="gpt-4o")
    assert (model.context_window_size, model.max_output_tokens) == (130_000, 16_384)
