"""A model's markdown on the page: live, after a reload, on a phone and by keyboard."""

import random
from functools import partial

import pytest
from playwright.sync_api import Locator, Page, expect

from chatcore.models import Session
from models_registry.models import AiModel
from tests.support.browsing import PHONE, PausedChunks, send_message, store_exchange, wait_until
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

WIDE = "+".join("abcdefghijklmnopqrstuvwxyz")
RICH = rf"""# A title with $x^2$

Some *words*, **strong** ones with `code $x$`, [a link](https://example.com/) and H<sub>2</sub>O;
it costs $5 or $10, \$3, and a note[^1].
We have
$$
\int_0^\infty e^{{-x^2}}\,dx
= \frac{{\sqrt{{\pi}}}}{{2}}
- 0
$$
so that \(a_1 * b_1\) and $a_2 * b_2$ are *formulas*, and $\frac{{1}}{{$ is none.

- [ ] one task with $x$
- [x] another
  1. nested

     with a second paragraph
  2. and code

     ```python
     def deep():
         '''Two
         lines.'''
     ```
- last

  \[ E = mc^2 \]

10. ten
11. eleven

| name | count | formula |
|:--|--:|:-:|
| one | 1 | $\alpha$ |
| two | `2` | **b** |
> A quotation
> - with a list
>
> and an end

Setext
------
```js
const answer = `${{6 * 7}}`;
// {"x" * 300}
```
    indented code

$${WIDE}{WIDE}$$

<details>shown as written</details> &copy; <b>bold</b>

***
[^1]: The note.

[^2]: https://example.com/other

See [the page][page].

[page]: https://example.com/page
"""
SCRAPS = """# Head
words *here*
**bold**
`code`
- item
-
* star
1. one
2. two
  - nested
    deep
```python
```
~~~
x = 1
> quote
| a | b |
|---|:--|
| 1 | 2 |
---
===
$$
$$x^2$$
\\[
\\]
= b
+ c
$a_1$ and $b*c$
costs $5 and $10
\\(z\\)
[link](http://x.y)
[ref]
[ref]: http://r.r
<b>bold
</b>
<div>
<!--
-->
- [ ] task
[^1]: foot
$$x$$ tail.



\t
&amp;
http://auto.link/x_y
~~del~~""".splitlines()
# Draw a text at each of the given lengths in one view, and at once in another; both must be equal.
# Nothing waits here: timers and animation frames run at once.
GROW = """async (texts) => {
    const { getMarkdownView } = await import("/static/chatcore/js/markdown.js");
    const { setTimeout, requestAnimationFrame } = window;
    const drawn = ([text, lengths]) => {
        const [live, whole] = [document.createElement("div"), document.createElement("div")];
        document.body.append(live, whole);
        for (const length of lengths) getMarkdownView(live).showPartial(text.slice(0, length));
        getMarkdownView(live).showFinal(text);
        getMarkdownView(whole).showFinal(text);
        const isSame = live.innerHTML === whole.innerHTML;
        const same = isSame ? null : [text, live.innerHTML, whole.innerHTML];
        live.remove();
        whole.remove();
        return same;
    };
    window.setTimeout = window.requestAnimationFrame = (work) => (work(performance.now()), 0);
    try {
        return texts.map(drawn).filter(Boolean);
    } finally {
        Object.assign(window, { setTimeout, requestAnimationFrame });
    }
}"""

DRAW = """async ([text, isFinal]) => {
    const { getMarkdownView } = await import("/static/chatcore/js/markdown.js");
    document.getElementById("drawn")?.remove();
    const place = document.createElement("div");
    place.id = "drawn";
    place.className = "prose";
    document.querySelector("main").prepend(place);
    const view = getMarkdownView(place);
    isFinal ? view.showFinal(text) : view.showPartial(text);
}"""


def show_answer(page: Page, session: Session, text: str) -> Locator:
    """Store an answer with this text, open its chat and return the element that shows it."""
    store_exchange(session, "Well?", text)
    page.goto(f"/c/{session.pk}/")
    return page.locator(".answer .prose")


def draw(page: Page, text: str, *, is_final: bool = True) -> Locator:
    """Show a text in an empty place of an open page, as the module of the answers draws it."""
    page.evaluate(DRAW, [text, is_final])
    return page.locator("#drawn")


def read_final_markup(prose: Locator) -> str:
    """Return the markup when every formula and every color is drawn."""
    expect(prose.locator(".katex")).to_have_count(8)
    expect(prose.locator("figure", has=prose.page.locator(".hljs-string"))).to_have_count(2)
    expect(prose.locator("[tabindex]")).to_have_count(2)
    return prose.inner_html()


def test_what_is_written_live_is_what_a_reload_shows(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    randomness = random.Random(5)
    pieces, rest = [], RICH
    while rest:
        length = randomness.randint(1, 9)
        pieces.append(rest[:length])
        rest = rest[length:]
    scripted.script(Reply(chunks=pieces, chunk_delay=0.005))
    page.goto(f"/c/{session.pk}/")
    send_message(page, "Tell me all")
    expect(page.locator(".answer")).to_have_attribute("data-status", "complete")
    live = read_final_markup(page.locator(".answer .prose"))
    page.reload()
    assert read_final_markup(page.locator(".answer .prose")) == live


def test_a_text_may_come_in_any_pieces(page: Page, session: Session) -> None:
    page.goto("/new/")
    texts = []
    for seed in range(60):
        randomness = random.Random(seed)
        text = "".join(
            randomness.choice(SCRAPS) + randomness.choice(("\n", "\n", "\n\n", " ", ""))
            for _ in range(randomness.randrange(2, 14))
        )
        texts.append(
            (
                text,
                sorted(
                    randomness.sample(
                        range(1, len(text) + 1), randomness.choice((len(text), len(text) // 2))
                    )
                ),
            )
        )
    assert page.evaluate(GROW, texts) == []


def test_formulas_are_set_and_what_is_none_stays_text(page: Page, model: AiModel) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto("/new/")

    texts = (
        "It was $5 and $10.",
        "$5, or 10$",
        "US$5 and A$6",
        "\\$x\\$",
        "`$x$`",
        "```\n$x$\n```",
        "a $ b $ c",
        "$$ never closed",
    )
    none = draw(page, "\n\n".join(texts))
    paragraphs = [text.strip("`\n").replace("\\", "") for text in texts]
    expect(none.locator("p, pre")).to_have_text(paragraphs)
    expect(none.locator(".math")).to_have_count(0)
    growing = draw(page, "We have\n$$\na\n- b\n= c\n", is_final=False)
    expect(growing).to_contain_text("- b = c")
    expect(growing.locator("ul, h1, .math")).to_have_count(0)
    assert not [url for url in asked if "katex" in url]  # it is not even fetched

    prose = draw(
        page,
        "An $a^2$, a \\(b\\),\n$$\nc\n- d\n$$\nand\n\\[ e \\]\n\n"
        "- in a list $f$\n\n| table |\n|---|\n| $g$ |",
    )
    expect(prose.locator(".katex")).to_have_count(6)
    expect(prose.locator(".display .katex-display")).to_have_count(2)
    assert prose.locator("math annotation").all_text_contents() == [
        "a^2",
        "b",
        "c\n- d",
        "e",
        "f",
        "g",
    ]
    expect(prose.locator(".katex-html[aria-hidden=true]")).to_have_count(6)
    assert prose.locator("math").first.evaluate("math => math.namespaceURI").endswith("MathML")

    wrong = draw(page, "First $\\frac{1}{$, then $\\nosuch<img src=x onerror=ran>$, at last $x$.")
    expect(wrong.locator(".katex")).to_have_count(1)
    expect(wrong.locator("[title*='end of input']")).to_have_text("$\\frac{1}{$")
    expect(wrong.locator("[title*='\\\\nosuch']")).to_have_text("$\\nosuch<img src=x onerror=ran>$")
    expect(wrong.locator("img")).to_have_count(0)

    hostile = (
        "\\href{https://e.invalid}{a}",
        "\\url{https://e.invalid}",
        "\\includegraphics{https://e.invalid/a.png}",
        "\\htmlId{dialog}{b}",
    )
    bad = draw(page, " and ".join(f"${formula}$" for formula in hostile))
    expect(bad.locator(".katex")).to_have_count(4)
    expect(bad.locator("a, img, [href], [src], [id]")).to_have_count(0)
    assert not [url for url in asked if "e.invalid" in url]


@pytest.mark.slow
def test_formulas_stay_the_source_they_were_when_copied(page: Page, session: Session) -> None:
    source = "So $a^2$ and\n\n$$\nb\n$$\n\nit *is*."
    prose = show_answer(page, session, source)
    expect(prose.locator(".katex")).to_have_count(2)
    page.locator(".answer").get_by_role("button", name="Copy the message").click()
    expect(page.locator(".answer [data-copied]")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == source


@pytest.mark.slow
def test_what_is_wide_scrolls_in_its_own_box_and_by_keyboard(page: Page, session: Session) -> None:
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    row = "|" + " many_words_in_a_cell |" * 6
    wide = [
        f"$${WIDE}{WIDE}$$",
        f"In a line $\\frac{{{WIDE}{WIDE}}}{{2}}$.",
        f"{row}\n{'|---' * 6}|\n{row}",
        f"```\n{'word ' * 40}\n```",
    ]
    prose = show_answer(
        page,
        session,
        "\n\n".join([*wide, "$$x$$", "$x$", "| a |\n|---|\n| b |", "```\nshort\n```"]),
    )
    expect(prose.locator(".katex")).to_have_count(4)
    boxes = prose.locator("[tabindex='0']")
    expect(boxes).to_have_count(4)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert prose.evaluate("prose => prose.scrollWidth <= prose.clientWidth")
    for box in boxes.all():
        box.focus()
        box.press("ArrowRight")
        wait_until(page, partial(box.evaluate, "box => box.scrollLeft > 0"))


@pytest.mark.slow
def test_long_code_is_colored_and_copied_as_it_is(page: Page, session: Session) -> None:
    code = '"""A text\n' + "of many lines\n" * 120 + '"""\n\n\nx = 1 < 2\n'
    prose = show_answer(page, session, f"```python\n{code}```")
    expect(prose.locator(".hljs-number").last).to_have_text("2")
    assert (
        "".join(prose.locator(".hljs-string").all_text_contents()) == code[: code.index("\n\n\n")]
    )
    assert prose.locator("code").text_content() == code
    prose.get_by_role("button", name="Copy").click()
    expect(prose.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == code
    selection = prose.locator("code").evaluate(
        "code => (getSelection().selectAllChildren(code), String(getSelection()))"
    )
    assert selection.rstrip("\n") == code.rstrip("\n")


@pytest.mark.slow
def test_what_was_drawn_is_not_drawn_again(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    chunks = PausedChunks(
        "| a |\n|---|\n| b |\n\n- one $x$\n- two\n\n  ```\n  first\n", "  second\n  ```\n- three"
    )
    scripted.script(Reply(chunks=chunks))
    page.goto(f"/c/{session.pk}/")
    send_message(page, "Well?")
    prose = page.locator(".answer .prose")
    expect(prose.locator("pre")).to_have_text("first\n")
    expect(prose.locator(".katex")).to_have_count(1)
    drawn_blocks = "td, li:first-child .katex, li:nth-child(2), pre"
    assert (
        prose.evaluate(
            "(prose, blocks) => [...prose.querySelectorAll(blocks)]"
            ".map((each) => (each.kept = true)).length",
            drawn_blocks,
        )
        == 4
    )
    chunks.resume.set()
    expect(prose.locator("li").last).to_have_text("three")
    assert (
        prose.evaluate(
            "(prose, blocks) => [...prose.querySelectorAll(blocks)].map((each) => each.kept)",
            drawn_blocks,
        )
        == [True] * 4
    )


@pytest.mark.slow
def test_headings_tasks_and_columns_look_like_what_they_are(page: Page, session: Session) -> None:
    prose = show_answer(page, session, RICH)
    sizes = [
        prose.locator(name).first.evaluate(
            "element => parseFloat(getComputedStyle(element).fontSize)"
        )
        for name in ("h1", "h2", "p")
    ]
    assert sizes == sorted(sizes, reverse=True)
    expect(prose.locator("li.task").first).to_contain_text("☐ one task")
    expect(prose.locator("li.task").first).to_have_css("list-style-type", "none")
    read_alignment = (
        "cells => cells.slice(0, 3)"
        ".map((cell) => getComputedStyle(cell).textAlign.replace('-webkit-', ''))"
    )
    assert prose.locator("td").evaluate_all(read_alignment) == ["left", "right", "center"]
    prose.get_by_role("link", name="1", exact=True).click()
    expect(prose.locator("p.note").first).to_be_focused()
    expect(prose.locator("p.note")).to_have_text(["1 The note.", "2 https://example.com/other"])
    expect(prose.get_by_role("link", name="the page")).to_have_attribute(
        "href", "https://example.com/page"
    )
