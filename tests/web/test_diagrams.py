"""Diagrams of mermaid: drawn on demand, in a frame that reaches neither the page nor a network."""

from collections.abc import Iterator

import pytest
from django.test import Client
from playwright.sync_api import FrameLocator, Locator, Page, expect

from chatcore.models import Session
from chatcore.web.diagrams import DIAGRAM_POLICY
from tests.conftest import Live
from tests.support.browsing import store_exchange
from tests.web.test_axe import find_objections

pytestmark = pytest.mark.django_db(transaction=True)
# The block of code after it was drawn, or could not be.
ENDED = "xpath=self::*[@data-diagram='shown' or .//*[@class='diagram-note'][text()]]"
KITCHEN = """flowchart LR
  Flour --> Dough
  Water --> Dough
  Dough -->|an hour| Bread"""
HOSTILE = {
    "a script": 'flowchart LR\n  A["<script>parent.ran=1</script>words"] --> B',
    "a handler": """flowchart LR\n  A["<img src=x onerror='parent.ran=1'>words"] --> B""",
    "a link": 'flowchart LR\n  A[words] --> B\n  click A href "https://evil.test/" _top',
    "a script's link": 'flowchart LR\n  A[words] --> B\n  click A href "javascript:parent.ran=1"',
    "a call": "flowchart LR\n  A[words] --> B\n  click A call eval('parent.ran=1')",
    "less security": """%%{init: {"securityLevel": "loose", "htmlLabels": true}}%%
flowchart LR
  A["<b onclick='parent.ran=1'>words</b>"] --> B
  click A href "javascript:parent.ran=1" """,
    "a frame": 'flowchart LR\n  A["<iframe srcdoc=x></iframe>words"] --> B',
    "a form": 'flowchart LR\n  A["<form action=//evil.test><button>words</button></form>"] --> B',
}


def show_code(page: Page, session: Session, text: str, language: str = "mermaid") -> Locator:
    store_exchange(session, "Draw it.", f"```{language}\n{text}\n```")
    page.goto(f"/c/{session.pk}/")
    figure = page.locator("figure.code")
    expect(figure.locator("code")).to_contain_text(text.split("\n")[-1].strip())
    return figure


def draw(figure: Locator) -> FrameLocator:
    figure.get_by_role("button", name="Show diagram").click()
    expect(figure.get_by_role("button", name="Show source")).to_be_visible()
    return figure.frame_locator("iframe")


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_a_diagram_is_drawn_on_demand_and_gives_way_to_its_source(
    page: Page, session: Session, scheme: str
) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url))
    figure = show_code(page, session, KITCHEN)
    assert not [url for url in loaded if "mermaid" in url or "diagram_frame" in url]
    frame = draw(figure)
    expect(frame.locator("svg").get_by_text("Dough")).to_be_visible()
    expect(figure).to_have_attribute("data-diagram", "shown")
    expect(figure.locator("pre")).to_be_hidden()
    box = figure.locator("iframe").bounding_box()
    assert box
    assert box["height"] > 60
    assert frame.locator("html").evaluate("(root) => root.style.colorScheme") == scheme
    assert not find_objections(page)
    page.emulate_media(media="print")
    expect(figure.locator("pre")).to_be_visible()
    expect(figure.locator("iframe")).to_be_hidden()
    page.emulate_media(media="screen")
    figure.get_by_role("button", name="Show source").click()
    expect(figure.locator("pre")).to_be_visible()
    expect(figure.locator("iframe")).to_have_count(0)


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize(
    "text", ["flowchart LR\n  A -->", "a cake", f"flowchart LR\n{'  A --> B' * 2500}"]
)
def test_one_that_cannot_be_drawn_shows_its_source_and_says_so(
    page: Page, session: Session, text: str
) -> None:
    figure = show_code(page, session, text)
    figure.get_by_role("button", name="Show diagram").click()
    expect(figure.get_by_role("status")).to_have_text(
        "This diagram could not be drawn. Its source is above."
    )
    expect(figure.locator("pre")).to_be_visible()
    expect(figure.locator("iframe")).to_have_count(0)


@pytest.mark.slow
@pytest.mark.browser
def test_other_code_has_no_diagram(page: Page, session: Session) -> None:
    figure = show_code(page, session, "print(1)", "python")
    expect(figure.get_by_role("button", name="Copy")).to_be_visible()
    expect(figure.get_by_role("button", name="Show diagram")).to_have_count(0)


@pytest.fixture
def unwatched_page(page: Page, live: Live) -> Iterator[Page]:
    """A page of the same user on which a policy may block something, as it must here."""
    assert page.context.browser
    context = page.context.browser.new_context(
        base_url=live.url, storage_state=page.context.storage_state(), service_workers="block"
    )
    yield context.new_page()
    context.close()


@pytest.mark.browser
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, id=name, marks=() if name == "less security" else pytest.mark.slow)
        for name, text in HOSTILE.items()
    ],
)
def test_a_hostile_diagram_reaches_neither_the_page_nor_a_network(
    unwatched_page: Page, session: Session, live: Live, text: str
) -> None:
    page = unwatched_page
    answered: list[str] = []
    asked: list[str] = []
    page.on("response", lambda response: answered.append(response.url))
    page.on("dialog", lambda dialog: asked.append(dialog.message))
    figure = show_code(page, session, text)
    address = page.url
    figure.get_by_role("button", name="Show diagram").click()
    expect(figure.locator(ENDED)).to_have_count(1)
    if figure.get_attribute("data-diagram"):
        frame = figure.frame_locator("iframe")
        frame.locator("svg").get_by_text("words").first.click(force=True)
        kinds = "script, iframe, form, img, object, [href]:not(use), [onclick], [onerror]"
        expect(frame.locator("#diagram").locator(kinds)).to_have_count(0)
        assert frame.locator("html").evaluate("() => self.origin") == "null"
        reach = "() => { try { return parent.document.title } catch (error) { return error.name } }"
        assert frame.locator("html").evaluate(reach) == "SecurityError"
    assert page.evaluate("() => window.ran") is None
    assert page.url == address
    assert len(page.context.pages) == 1
    assert not asked
    assert not [url for url in answered if not url.startswith(f"{live.url}/")]


def test_the_page_of_the_frame_loads_two_scripts_and_nothing_else(client: Client) -> None:
    answers = [client.get("/diagram/") for _ in range(2)]
    policies = [answer.headers["Content-Security-Policy"] for answer in answers]
    assert policies[0] != policies[1]
    for answer, policy in zip(answers, policies, strict=True):
        nonce = policy.partition("'nonce-")[2].partition("'")[0]
        assert policy == DIAGRAM_POLICY.format(nonce=nonce)
        assert answer.content.decode().count(f'nonce="{nonce}"') == 2
        assert answer.headers["X-Frame-Options"] == "SAMEORIGIN"
    assert policies[0].startswith("sandbox allow-scripts; default-src 'none'; ")
