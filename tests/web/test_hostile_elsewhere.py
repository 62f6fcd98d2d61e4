"""Hostile texts stay texts in the admin, in exported files and behind the links of a page."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from email.message import EmailMessage
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from chatcore.base.truncation import clean_text
from chatcore.context import revisions
from chatcore.contrib.imports import jobs as import_jobs
from chatcore.contrib.webhooks.models import Webhook
from chatcore.files import intake
from chatcore.models import Attachment, Message, Session, Turn
from compaction.models import CompactionPolicy, CompactionRun
from compaction.systems.lota.models import WorkingState
from models_registry.models import AiModel, Provider
from tests.support.browsing import store_exchange
from tests.support.hostile import ADDRESSES, REQUESTS, SAMPLE_FAMILIES, SAMPLE_TEXTS
from tests.support.hostile_pages import (
    audit_paths,
    check_page_is_sound,
    guarded_page,
    join_in_batches,
    read_texts,
    show_text,
    store_texts,
    widen_window,
)
from tests.support.hostile_words import FILES
from tests.support.told_summaries import store_summaries

__all__ = ["guarded_page", "widen_window"]

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.hostile,
    pytest.mark.django_db(transaction=True),
]
PAGE = (
    b"<!doctype html><svg xmlns='http://www.w3.org/2000/svg' onload='ran=1'>"
    b"<script>ran=1</script></svg>"
)


@pytest.fixture
def operator(guarded_page: Page, user: User) -> Page:
    User.objects.filter(pk=user.pk).update(
        is_staff=True, is_superuser=True, first_name="<script>ran=1</script>"
    )
    return guarded_page


def create_admin_rows(session: Session) -> None:
    """Create a row of everything that the admin shows, with the texts of each family joined."""
    for number, text in enumerate(map(clean_text, join_in_batches(100))):
        chat = Session.objects.create(
            owner=session.owner, model=session.model, title=text[:200], system_prompt=text
        )
        turn = Turn.objects.create(
            session=chat,
            status="failed",
            lease_until=timezone.now(),
            error={"type": "x", "detail": text},
        )
        calls = [{"id": text, "name": text[:128], "arguments": text}]
        first = Message.objects.create(
            session=chat,
            turn=turn,
            seq=1,
            role="assistant",
            content=text,
            reasoning=text,
            tool_calls=calls,
        )
        Attachment.objects.create(
            session=chat, message=first, name=text[:255], media_type="text/html", size=1, data=PAGE
        )
        revisions.install_revision(
            chat.pk, base_version=0, summary=text, boundary_seq=1, source="edit"
        )
        CompactionRun.objects.create(
            session=chat,
            trigger="manual",
            status="applied",
            policy=text[:64],
            boundary_after=1,
            model=text[:200],
            stages_used=[text],
            **store_summaries(chat, before=text, after=text[::-1]),
            instructions=text,
            reason=text,
            error=text,
            policy_snapshot={text: text},
            targets=[
                {
                    "seq": 1,
                    "role": text,
                    "tool": text,
                    "method": text,
                    "chars_before": 9,
                    "chars_after": 0,
                }
            ],
            edits=[{"seq": 1, "kind": "pruned", "replacement": text}],
            state_after={"memory": [text]},
            tokens_before=9,
            tokens_after=1,
        )
        CompactionPolicy.objects.create(name=f"{number} {text}"[:64], overrides={text: text})
        WorkingState.objects.create(session=chat, memory=[text])
        provider = Provider.objects.create(
            name=f"{number} {text}"[:64],
            protocol="openai",
            base_url=f"https://x.invalid/{text[:80]}",
        )
        AiModel.objects.create(provider=provider, name=text[:100], policy=text[:64])
        Webhook.objects.create(
            owner=session.owner, url=f"javascript:ran=1//{text[:100]}", secret="x"
        )


def test_the_admin_shows_words(operator: Page, session: Session) -> None:
    create_admin_rows(session)
    models = (
        Session,
        Message,
        Turn,
        CompactionRun,
        CompactionPolicy,
        WorkingState,
        Provider,
        AiModel,
        Webhook,
    )
    for model in models:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        operator.goto(reverse(f"{name}_changelist"))
        check_page_is_sound(operator)
        rows = model._default_manager.order_by("pk").values_list("pk", flat=True)
        audit_paths(operator, [reverse(f"{name}_change", args=[pk]) for pk in rows])
        operator.goto(reverse(f"{name}_change", args=[rows[len(rows) // 2]]))
        check_page_is_sound(operator)


def test_the_admin_lists_every_text_as_words(operator: Page, session: Session) -> None:
    store_texts(session, SAMPLE_TEXTS)
    address = reverse("admin:chatcore_message_changelist")
    operator.goto(address)
    audit_paths(
        operator, [f"{address}?p={number}" for number in range(1, 3 * len(SAMPLE_TEXTS) // 50 + 2)]
    )
    audit_paths(operator, [f"{address}?q={family}" for family in SAMPLE_FAMILIES])
    operator.goto(f"{address}?q=%3Cscript%3Eran%3D1%3C%2Fscript%3E")
    expect(operator.locator("#searchbar")).to_have_value("<script>ran=1</script>")
    check_page_is_sound(operator)


def test_an_export_is_a_download_that_holds_every_text(
    guarded_page: Page, session: Session
) -> None:
    store_texts(session, SAMPLE_TEXTS)
    Session.objects.filter(pk=session.pk).update(
        title='a"; filename=b.html\r\nX-Ran: 1\r\n\r\n<script>ran=1</script>'
    )
    guarded_page.goto("/new/")
    for form in ("chatcore", "openai", "anthropic"):
        answer = guarded_page.request.get(f"/api/v1/sessions/{session.pk}/export?format={form}")
        assert answer.headers["content-type"].startswith("application/json")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-disposition"] == f'attachment; filename="{session.pk}.json"'
        assert "x-ran" not in answer.headers
        questions = [
            each["content"] for each in answer.json()["messages"] if each["role"] == "user"
        ]
        assert json.dumps(questions).count("onerror") >= json.dumps(
            [show_text(text) for text in SAMPLE_TEXTS]
        ).count("onerror")
    with guarded_page.expect_download() as download:
        guarded_page.evaluate(f"location.assign('/api/v1/sessions/{session.pk}/export')")
    assert download.value.suggested_filename == f"{session.pk}.json"
    guarded_page.locator("#import-file").set_input_files(download.value.path())
    guarded_page.wait_for_url(re.compile("/(?:c|imports)/"))
    if "/imports/" in guarded_page.url:  # so many texts that they are sent in pieces
        with ThreadPoolExecutor(1) as worker:  # Playwright has an event loop in this thread
            assert worker.submit(import_jobs.run_due_jobs).result() == 1
    copy = Session.objects.exclude(pk=session.pk).get()
    assert list(copy.messages.filter(role="user").values_list("content", flat=True)) == [
        clean_text(text) for text in SAMPLE_TEXTS
    ]
    assert "\n" not in guarded_page.title()


def test_a_file_is_never_a_page_whatever_it_is_called_and_holds(
    guarded_page: Page, session: Session
) -> None:
    store_exchange(session, "Look", "I do")
    message = session.messages.get(seq=1)
    files = [intake.store_file(session, name=name, data=PAGE) for name in FILES]
    Attachment.objects.filter(session=session).update(message=message)
    for file in files:
        answer = guarded_page.request.get(f"/api/v1/attachments/{file.pk}")
        headers = EmailMessage()
        headers["Content-Disposition"] = answer.headers["content-disposition"]
        assert headers.get_content_disposition() == "attachment"
        assert headers.get_filename() == file.name or file.name.startswith(
            "=?"
        )  # which stands for other characters in a mail
        assert answer.headers["content-type"].startswith("text/plain")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"].startswith("sandbox")
        assert "set-cookie" not in answer.headers
    guarded_page.goto(f"/c/{session.pk}/")
    assert read_texts(guarded_page.locator(".file-name")) == [file.name for file in files]
    check_page_is_sound(guarded_page)
    with guarded_page.expect_download():
        guarded_page.locator(".file").first.click()
    with guarded_page.expect_download():
        guarded_page.evaluate(f"location.assign('/api/v1/attachments/{files[1].pk}')")
    expect(guarded_page.locator(".user .words")).to_have_text("Look")


@pytest.fixture
def elsewhere(page: Page) -> list[str]:
    """The requests to another origin, which answers with a page that tries to reach back."""
    requested_urls: list[str] = []

    def answer(route: Any) -> None:
        requested_urls.append(route.request.url + str(route.request.headers.get("referer", "")))
        route.fulfill(
            content_type="text/html",
            body="<script>if (opener) opener.ran = 1; document.title = String(opener)</script>",
        )

    page.context.route(re.compile(r"^https?://([^/]*@)?(www\.)?canary\.invalid"), answer)
    return requested_urls


def test_a_link_that_is_pressed_opens_beside_and_cannot_reach_back(
    page: Page, session: Session, elsewhere: list[str]
) -> None:
    store_exchange(
        session,
        "Links?",
        "\n\n".join(text.replace("(/logout/)", "(/logout/?x)") for text in ADDRESSES + REQUESTS),
    )
    page.goto(f"/c/{session.pk}/")
    links = page.locator(".prose a[href]")
    addresses = links.evaluate_all("all => all.map(each => each.href)")
    assert len(addresses) > 8
    assert elsewhere == []
    for number in sorted(
        {
            addresses.index(each)
            for each in addresses
            if "canary.invalid" in each and each.startswith("http")
        }
    )[:6]:
        with page.context.expect_page() as new_page:
            links.nth(number).click()
        expect(new_page.value).to_have_title("null")
        new_page.value.close()
    assert len(elsewhere) >= 3
    assert not [each for each in elsewhere if str(session.pk) in each]
    assert page.evaluate("typeof ran") == "undefined"
    assert page.url.endswith(f"/c/{session.pk}/")
