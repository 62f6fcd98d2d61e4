"""Where pages meet the world: other scripts, the clipboard, proxies, chats deleted elsewhere."""

import pytest
from playwright.sync_api import Page, Route, expect

from chatcore.models import Session
from tests.support.browsing import send_message, store_exchange
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.slow_params import mark_others_slow

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

EMPHASIS = {
    "**「強調」**です": "<strong>「強調」</strong>です",
    "これは**強調（注）**です": "これは<strong>強調（注）</strong>です",
    "これは***「両方」***です": "これは<em><strong>「両方」</strong></em>です",
    "普通**强调。**后面": "普通<strong>强调。</strong>后面",
    "**注意：**重要": "<strong>注意：</strong>重要",
    "這是**“重要”**的": "這是<strong>“重要”</strong>的",
    "**안녕(인사)**은": "<strong>안녕(인사)</strong>은",
    "日本語~~（取消）~~です": "日本語<del>（取消）</del>です",
    "**強調**word": "<strong>強調</strong>word",
    "**a** 文。**b**c": "<strong>a</strong> 文。<strong>b</strong>c",
    "雪 ** 花 ** 月": "雪 ** 花 ** 月",
    "`**「a」**で`": "<code>**「a」**で</code>",
    "see **“x”** and **y.**z": "see <strong>“x”</strong> and **y.**z",
}


NESTED = """Here:

```markdown
# Title

```python
print(1)
```

Words
```

After"""
UNCLOSED = "```markdown\n# A\n```python\nx\n```\n\nAfter\n\nand more\n"
SAME_WHILE_IT_GROWS = """async (texts) => {
    const { getMarkdownView } = await import("/static/chatcore/js/markdown.js");
    const { setTimeout, requestAnimationFrame } = window;
    window.setTimeout = window.requestAnimationFrame = (work) => (work(performance.now()), 0);
    try {
        return texts.map((text) => {
            const [live, whole] = [document.createElement("div"), document.createElement("div")];
            document.body.append(live, whole);
            for (let at = 1; at < text.length; at += 1)
                getMarkdownView(live).showPartial(text.slice(0, at));
            getMarkdownView(live).showFinal(text);
            getMarkdownView(whole).showFinal(text);
            const codes = [...whole.querySelectorAll("code")].map((code) => code.textContent);
            return [live.innerHTML === whole.innerHTML, codes, whole.lastChild.textContent];
        });
    } finally {
        Object.assign(window, { setTimeout, requestAnimationFrame });
    }
}"""


def test_blocks_of_code_stand_in_a_block_of_markdown(page: Page, session: Session) -> None:
    page.goto(f"/c/{session.pk}/")
    nested, unclosed = page.evaluate(SAME_WHILE_IT_GROWS, [NESTED, UNCLOSED])
    assert nested == [
        True,
        ["# Title\n\n```python\nprint(1)\n```\n\nWords\n"],
        "After",
    ]
    assert unclosed == [True, ["# A\n```python\nx\n"], "and more"]


@pytest.mark.slow
def test_emphasis_stands_beside_chinese_japanese_and_korean_signs(
    page: Page, session: Session
) -> None:
    page.goto(f"/c/{session.pk}/")
    drawn = page.evaluate(
        """async (texts) => {
            const { getMarkdownView } = await import("/static/chatcore/js/markdown.js");
            return texts.map((text) => {
                const place = document.createElement("div");
                document.body.append(place);
                getMarkdownView(place).showFinal(text);
                return place.querySelector("p").innerHTML;
            });
        }""",
        list(EMPHASIS),
    )
    assert drawn == list(EMPHASIS.values())


@pytest.mark.parametrize("way", ["http", "refused"])
def test_an_answer_is_copied_without_the_clipboard_interface(
    page: Page, session: Session, way: str
) -> None:
    page.add_init_script(
        "Object.defineProperty(navigator, 'clipboard', { value: undefined })"
        if way == "http"
        else "navigator.clipboard.writeText = () => Promise.reject(new Error('denied'))"
    )
    store_exchange(session, "Well?", "Copied words")
    page.goto(f"/c/{session.pk}/")
    page.locator(".answer [data-act=copy]").click()
    expect(page.locator(".answer [data-copied]")).to_be_attached()
    page.get_by_label("Your message").focus()
    page.keyboard.press("Control+v")
    expect(page.get_by_label("Your message")).to_have_value("Copied words")


@pytest.mark.slow
def test_a_paste_over_the_limit_becomes_a_file(page: Page, session: Session) -> None:
    store_exchange(session, "One", "Two")
    page.goto(f"/c/{session.pk}/")
    field = page.get_by_label("Your message")
    field.evaluate(
        """(field) => {
            const clipboardData = new DataTransfer();
            clipboardData.setData("text/plain", "x".repeat(300 * 1024));
            const options = { clipboardData, bubbles: true, cancelable: true };
            field.dispatchEvent(new ClipboardEvent("paste", options));
        }"""
    )
    expect(page.locator(".chips .file-name")).to_have_text("pasted.txt")
    expect(field).to_have_value("")


@pytest.mark.parametrize("status", mark_others_slow([502, 504]))
def test_a_message_waits_while_the_proxy_reaches_no_server(
    page: Page, session: Session, scripted: ScriptedModel, status: int
) -> None:
    store_exchange(session, "One", "Two")
    page.goto(f"/c/{session.pk}/")
    address = f"**/api/v1/sessions/{session.pk}/messages"
    body = "<html><h1>Bad Gateway</h1></html>"
    page.route(address, lambda route: route.fulfill(status=status, body=body), times=1)
    scripted.script(Reply(chunks=["It came"]))
    send_message(page, "Do you hear me?")
    expect(page.locator(".answer .prose").last).to_have_text("It came")
    assert session.messages.filter(content="Do you hear me?").count() == 1


@pytest.mark.slow
def test_the_proxys_413_is_told_in_words_and_the_message_stays(
    page: Page, session: Session
) -> None:
    def refuse(route: Route) -> None:
        route.fulfill(status=413, body="<html>413 Request Entity Too Large</html>")

    store_exchange(session, "One", "Two")
    page.goto(f"/c/{session.pk}/")
    page.route(f"**/api/v1/sessions/{session.pk}/messages", refuse)
    send_message(page, "Much")
    expect(
        page.get_by_text("Not sent: That is more than a server on the way takes.")
    ).to_be_visible()
    expect(page.get_by_label("Your message")).to_have_value("Much")


def test_a_chat_deleted_elsewhere_says_so_and_keeps_the_words(page: Page, session: Session) -> None:
    store_exchange(session, "One", "Two")
    page.goto(f"/c/{session.pk}/")
    expect(page.get_by_label("Your message")).to_be_visible()
    Session.objects.filter(pk=session.pk).delete()
    send_message(page, "Still there?")
    expect(page.get_by_text("Not sent: This chat no longer exists.")).to_be_visible()
    expect(page.get_by_label("Your message")).to_have_value("Still there?")


def test_a_keyboard_that_lies_over_the_page_does_not_hide_the_composer(
    page: Page, session: Session
) -> None:
    """As in Safari, which the meta element of the viewport does not move."""
    store_exchange(session, "Hello", "Hi")
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(f"/c/{session.pk}/")
    show_keyboard = """(height) => {
        Object.defineProperty(visualViewport, "height", { value: height, configurable: true });
        visualViewport.dispatchEvent(new Event("resize"));
    }"""
    for height in (400, 740):
        page.evaluate(show_keyboard, height)
        box = page.locator(".composer").bounding_box()
        assert box
        assert height - 40 < box["y"] + box["height"] <= height
