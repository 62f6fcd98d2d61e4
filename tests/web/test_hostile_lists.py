"""Hostile texts stay texts in the list of chats, in the search and in the settings."""

from collections.abc import Sequence
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Page, expect

from chatcore.base.truncation import clean_text
from chatcore.models import Session
from models_registry.models import AiModel, Provider
from tests.support.hostile import HOSTILE, SAMPLE_TEXTS
from tests.support.hostile_pages import (
    audit_paths,
    check_page_is_sound,
    guarded_page,
    read_texts,
    show_text,
    store_texts,
    widen_window,
)
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

__all__ = ["guarded_page", "widen_window"]

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.hostile,
    pytest.mark.django_db(transaction=True),
]
SCROLL_CHATS = """async () => {
    for (let more; (more = document.querySelector(".chats-more")); ) {
        const swap = new Promise((resolve) => {
            document.addEventListener("htmx:afterSwap", resolve, { once: true });
        });
        more.scrollIntoView();
        await swap;
    }
}"""


def create_chats(user: User, titles: Sequence[str]) -> list[Session]:
    now = timezone.now()
    return Session.objects.bulk_create(
        Session(
            owner=user, title=clean_text(text)[:200], updated_at=now - timedelta(minutes=number)
        )
        for number, text in enumerate(titles)
    )


def test_titles_stay_words_in_list_head_and_dialogs(guarded_page: Page, user: User) -> None:
    breaking = [
        text
        for text in SAMPLE_TEXTS
        if text.startswith(("</title>", "' onmouse", "%(title)s", "$&"))
    ]
    chats = create_chats(
        user, [*breaking, *(text for text in SAMPLE_TEXTS if text not in breaking)]
    )
    guarded_page.goto(f"/c/{chats[0].pk}/")
    guarded_page.evaluate(SCROLL_CHATS)
    assert read_texts(guarded_page.locator(".chat-row > a")) == [
        show_text(chat.title) or "New chat" for chat in chats
    ]
    check_page_is_sound(guarded_page)
    audit_paths(guarded_page, [f"/c/{chat.pk}/rename/" for chat in chats if '"' in chat.title])
    for chat in chats[: len(breaking)]:
        guarded_page.goto(f"/c/{chat.pk}/")
        expect(guarded_page).to_have_title(f"{chat.title} · Chatcore")
        expect(guarded_page.locator(".chat-title")).to_have_text(chat.title)
        choose_action(guarded_page, chat, "Rename")
        expect(guarded_page.get_by_label("Title of the chat")).to_have_value(chat.title)
        guarded_page.keyboard.press("Escape")
        choose_action(guarded_page, chat, "Delete")
        expect(guarded_page.locator("#snackbar")).to_contain_text(chat.title)
        guarded_page.locator("#snackbar button").click()
        expect(guarded_page.locator(".chat-title")).to_have_text(chat.title)
        check_page_is_sound(guarded_page)


def choose_action(page: Page, chat: Session, label: str) -> None:
    """Choose an action from the menu of a chat's row."""
    page.locator(f"#row-{chat.pk} .row-more").click()
    page.locator(f"#menu-{chat.pk}").get_by_text(label).click()


def test_what_is_searched_and_found_stays_words(guarded_page: Page, session: Session) -> None:
    store_texts(session, HOSTILE)
    guarded_page.goto(f"/c/{session.pk}/")
    words = [" ".join(clean_text(text).split())[:200] for text in SAMPLE_TEXTS]
    audit_paths(guarded_page, [f"/search/?{urlencode({'q': each})}" for each in words])
    audit_paths(
        guarded_page, [f"/chats/?{urlencode({'q': each, 'after': each})}" for each in words[:100]]
    )
    guarded_page.keyboard.press("Control+k")
    field = guarded_page.locator("#palette [role=combobox]")
    for text in (
        "onerror ran",
        "<script>",
        "</title>",
        '"><img',
        "javascript:ran=1",
        "{{ %}",
        "<b id=dialog>",
        "\\href",
    ):
        with guarded_page.expect_response("**/search/*"):
            field.fill(text)
        expect(field).to_have_value(text)
        wrong = guarded_page.evaluate("audit(document)")
        assert not wrong, wrong[:20]
    found = guarded_page.locator("#found .found")
    field.fill("xyzzy")
    expect(found).to_have_count(0)  # so that what is found next is of the last words
    field.fill("<script>ran=1</script> after")
    expect(found.first).to_have_attribute("aria-selected", "true")
    guarded_page.keyboard.press("Enter")
    expect(guarded_page.locator("#palette")).to_be_hidden()
    expect(guarded_page.locator("[data-found]")).to_be_visible()
    check_page_is_sound(guarded_page)


def create_providers(model: AiModel) -> None:
    """Create providers and models with hostile names."""
    for number, text in enumerate(map(clean_text, SAMPLE_TEXTS)):
        name = f"{number} {text}"[:64].strip()
        provider = Provider.objects.create(
            name=name, protocol="openai", base_url=model.provider.base_url, api_key_env=text[:32]
        )
        if number % 8 == 0:
            AiModel.objects.create(
                provider=provider, name=text[:100] or "x", context_window_size=8192
            )


def test_settings_stay_words(
    guarded_page: Page, session: Session, user: User, model: AiModel, scripted: ScriptedModel
) -> None:
    User.objects.filter(pk=user.pk).update(
        is_staff=True, is_superuser=True, username='"><img src=x onerror=ran=1>'
    )
    create_providers(model)
    Session.objects.filter(pk=session.pk).update(
        system_prompt="</textarea><script>ran=1</script>",
        policy='"><img src=x>',
        params={"a": "'>\"<b>"},
    )
    guarded_page.goto("/settings/")
    expect(guarded_page.locator(".provider")).to_have_count(len(SAMPLE_TEXTS) + 1)
    check_page_is_sound(guarded_page)
    scripted.script(
        Reply(
            status=401,
            body=b'{"error": {"message": "<img src=x onerror=ran=1>", "code": "</p><script>"}}',
        )
    )
    guarded_page.locator(f"#provider-{model.provider_id}").get_by_role(
        "button", name="Test"
    ).click()
    expect(guarded_page.locator(f"#tried-{model.provider_id} .field-error")).to_be_visible()
    check_page_is_sound(guarded_page)
    guarded_page.goto(f"/c/{session.pk}/")
    guarded_page.locator("[data-chat-settings='']").click()
    expect(guarded_page.get_by_label("System prompt")).to_have_value(
        "</textarea><script>ran=1</script>"
    )
    wrong = guarded_page.evaluate("audit(document)")
    assert not wrong, wrong[:20]
    guarded_page.keyboard.press("Escape")
    guarded_page.locator(".composer textarea").press_sequentially("/model ")
    expect(guarded_page.locator("#slash li").first).to_be_visible()
    wrong = guarded_page.evaluate("audit(document)")
    assert not wrong, wrong[:20]
