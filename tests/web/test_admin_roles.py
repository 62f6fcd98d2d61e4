"""The admin as its owner, support without contents and an auditor see it; axe on its pages."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Page, expect

from chatcore.contrib.audit.models import AuditEntry
from chatcore.models import Message, Session
from compaction.models import CompactionPolicy, CompactionRun
from models_registry.models import Provider
from tests.conftest import Live
from tests.support.browsing import store_exchange
from tests.support.told_summaries import store_summaries
from tests.web.test_axe import expect_none, find_objections

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
WORDS = "The flour is from Ghent."


@pytest.fixture
def chat(session: Session) -> Session:
    """A compacted chat of somebody else, with words that only few may see."""
    store_exchange(session, "What is bread?", WORDS)
    Session.objects.filter(pk=session.pk).update(title="Bread", compacted_summary=WORDS)
    CompactionRun.objects.create(
        session=session,
        trigger="manual",
        status="applied",
        policy="oneclaw",
        tokens_before=9000,
        tokens_after=1200,
        **store_summaries(session, after=WORDS),
    )
    CompactionPolicy.objects.create(name="gentle", base="oneclaw")
    return session


@pytest.fixture
def sign_in_as(page: Page, live: Live) -> Callable[[User], None]:
    """Let the browser be another person."""

    def sign_in(person: User) -> None:
        client = Client()
        client.force_login(person)
        cookie = client.cookies["sessionid"].value
        page.context.clear_cookies()
        page.context.add_cookies([{"name": "sessionid", "value": cookie, "url": live.url}])

    return sign_in


def make_staff(name: str, *rights: str) -> User:
    staff = User.objects.create_user(name, is_staff=True)
    staff.user_permissions.set(Permission.objects.filter(codename__in=rights))
    return staff


@pytest.mark.slow
def test_its_owner_sees_contents_and_acts(
    page: Page, chat: Session, sign_in_as: Callable[[User], None]
) -> None:
    sign_in_as(User.objects.create_superuser("root"))
    page.goto("/admin/")
    page.locator("a[href='/admin/compaction/compactionrun/']").first.click()
    page.locator("a.run-title", has_text="Bread").click()
    expect(page.get_by_label("Summary")).to_have_value(WORDS)
    page.get_by_label("Summary").fill("The flour is from Bruges.")
    page.get_by_role("button", name="Save the text").click()
    expect(page.get_by_text("The summary is edited")).to_be_visible()
    assert AuditEntry.objects.filter(act="admin.edit", actor__username="root").exists()
    page.goto(f"/admin/chatcore/message/?session__id__exact={chat.pk}&q=flour")
    expect(page.get_by_text(WORDS)).to_be_visible()
    expect(page.get_by_text("What is bread?")).to_have_count(0)


def test_it_has_the_type_of_the_pages_and_its_fields_are_seen(
    page: Page, chat: Session, sign_in_as: Callable[[User], None]
) -> None:
    sign_in_as(User.objects.create_superuser("root"))
    look_up = "getComputedStyle(document.body).fontFamily"
    page.goto("/settings/")
    type_of_pages = page.evaluate(look_up)
    page.goto(f"/admin/models_registry/provider/{Provider.objects.get().pk}/change/")
    assert page.evaluate(look_up) == type_of_pages
    expect(page.get_by_label("API key", exact=True)).to_have_css("border-top-width", "1px")
    page.goto("/admin/auth/group/add/")
    expect(page.locator(".selector-chosen")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.slow
def test_support_sees_sizes_and_no_words(
    page: Page, chat: Session, sign_in_as: Callable[[User], None]
) -> None:
    rights = ("view_session", "view_message", "view_turn", "view_compactionrun")
    sign_in_as(make_staff("support", *rights))
    run, message = CompactionRun.objects.get(), Message.objects.get(seq=2)
    for path in (
        "/admin/",
        "/admin/chatcore/session/",
        f"/admin/chatcore/session/{chat.pk}/change/",
        f"/admin/chatcore/message/?session__id__exact={chat.pk}",
        f"/admin/chatcore/message/{message.pk}/change/",
        "/admin/compaction/compactionrun/",
        f"/admin/compaction/compactionrun/{run.pk}/change/",
        reverse("admin:compaction_session_timeline", args=[chat.pk]),
    ):
        answer = page.goto(path)
        assert answer is not None
        assert answer.status == 200, path
        text = page.content()
        assert "Ghent" not in text, path
        assert "Bread" not in text, path
    expect(page.get_by_role("button", name="Save the text")).to_have_count(0)
    page.goto("/admin/compaction/compactionrun/")
    expect(page.get_by_text("9,000 → 1,200")).to_be_visible()
    page.goto("/admin/chatcore/session/?q=Bread")  # a title is no answer to those who see none
    expect(page.locator("#result_list tbody tr")).to_have_count(0)
    for path in ("/admin/audit/auditentry/", "/admin/models_registry/provider/"):
        answer = page.goto(path)
        assert answer is not None
        assert answer.status == 403, path


@pytest.mark.slow
def test_an_auditor_sees_the_log_and_nothing_else(
    page: Page, chat: Session, sign_in_as: Callable[[User], None]
) -> None:
    AuditEntry.objects.create(act="session.rewound", object_type="chatcore.session", object_id="1")
    AuditEntry.objects.create(act="sign_in.failed", address="192.0.2.7")
    sign_in_as(make_staff("auditor", "view_auditentry"))
    page.goto("/admin/")
    expect(page.get_by_text("There are no numbers that you may see.")).to_be_visible()
    page.locator("a[href='/admin/audit/auditentry/']").first.click()
    expect(page.get_by_text("session.rewound")).to_be_visible()
    page.goto("/admin/audit/auditentry/?q=192.0.2.7")
    expect(page.get_by_text("sign_in.failed")).to_be_visible()
    expect(page.get_by_text("session.rewound")).to_have_count(0)
    for path in (
        "/admin/chatcore/session/",
        f"/admin/chatcore/session/{chat.pk}/change/",
        "/admin/compaction/compactionrun/",
        reverse("admin:compaction_session_timeline", args=[chat.pk]),
    ):
        answer = page.goto(path)
        assert answer is not None
        assert answer.status == 403, path


@pytest.mark.slow
def test_axe_objects_to_no_list_and_to_no_form(
    page: Page, chat: Session, sign_in_as: Callable[[User], None]
) -> None:
    page.emulate_media(reduced_motion="reduce")
    sign_in_as(User.objects.create_superuser("root"))
    paths = ["/admin/", reverse("admin:compaction_session_timeline", args=[chat.pk])]
    for model in admin.site._registry:
        address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        paths.append(address)
        row: Any = model._default_manager.order_by("pk").first()
        if row is not None:
            paths.append(f"{address}{row.pk}/change/")
    objections = {}
    for path in paths:
        page.goto(path)
        objections[path] = find_objections(page)
    expect_none(objections)
