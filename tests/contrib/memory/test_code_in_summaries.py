"""Code in a summary is kept whole with its indentation, or left out whole."""

import pytest
from rest_framework.test import APIClient

from chatcore.models import Session
from compaction.core.outcome import Segment
from compaction.memory.core.segments.composition import compose_summary, shorten_by_rank
from compaction.memory.core.verify.checks import find_untruths
from compaction.memory.core.verify.extract import write_extract
from compaction.memory.core.verify.sources import Source, SourceIndex
from models_registry.models import AiModel
from tests.support.compaction_sessions import fill_session, say
from tests.support.ledger_sessions import compact, session  # noqa: F401
from tests.support.scripted_model import Reply, ScriptedModel
from tests.support.slow_params import mark_others_slow
from textkit.sentences import split_sentences

CODE = """```python
def price(rate):
    if rate > 3:
        return rate * 2

    return 7
```"""
TILDES = CODE.replace("```", "~~~")
BARE = CODE.split("\n", 1)[1].removesuffix("\n```")
INDENTED = "\n".join(f"    {line}".rstrip() for line in BARE.splitlines())
SCRIPT = """function price(rate) {
  if (rate > 3) {
    return rate * 2;
  } else {
    return 7;
  }
}"""
SETTINGS = """rates:
  - name: rate one
    price: 7
  - name: rate two
    price: 9"""
SHELL = """>>> def price(rate):
...     return rate * 2"""
FORMS = {
    "backticks": CODE,
    "bare backticks": CODE.replace("python", ""),
    "tildes": TILDES,
    "in a list": f"- {CODE}",
    "four spaces": INDENTED,
    "tabs": INDENTED.replace("    ", "\t"),
    "pre": f"<pre>\n{BARE}\n</pre>",
    "pre and code": f'<pre><code class="python">{BARE}\n</code></pre>',
    "quoted": "\n".join(f"> {line}" for line in BARE.splitlines()),
    "quoted fence": "\n".join(f"> {line}" for line in CODE.splitlines()),
    "nothing": BARE,
    "braces": SCRIPT,
    "settings": SETTINGS,
    "shell": SHELL,
}
PROSE = "The rack {0} stands in room {0}. It was bought by Ada in the year {0}. "


def count(text: str) -> int:
    return len(text) // 4


@pytest.mark.parametrize("code", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("space", [20, 100, 380, *mark_others_slow(range(40, 400, 20), first=0)])
def test_a_shortened_text_has_a_block_whole_or_not_at_all(code: str, space: int) -> None:
    before = "".join(PROSE.format(number) for number in range(100, 110))
    text = f"{before}\nThey agreed on this:\n\n{code}\n\nAfter it came lunch. {before}"
    shorter_text = shorten_by_rank(text, space, count)
    assert code in shorter_text or "rate" not in shorter_text
    segments = [Segment(first_seq=1, last_seq=9, text=text)] * 3
    summary = compose_summary(segments, space=space, limit=2_000, count_tokens=count)
    assert summary.count("rate") == summary.count(code) * code.count("rate")


def test_a_block_that_is_cut_is_left_out() -> None:
    assert shorten_by_rank(CODE, 20, count) == "[code left out]"


@pytest.mark.parametrize("code", FORMS.values(), ids=FORMS)
def test_code_of_the_messages_is_true_and_ends_a_summary_well(code: str) -> None:
    index = SourceIndex([Source("user", f"Use this:\n{code}"), Source("assistant", "I will.")])
    assert find_untruths(f"The user wants this function:\n\n{code}", index) == []


@pytest.mark.parametrize("code", FORMS.values(), ids=FORMS)
def test_an_extract_has_code_as_it_was_written(code: str) -> None:
    text = write_extract(None, [Source("user", f"Never change this:\n\n{code}", 4)], max_chars=900)
    assert code in text


@pytest.mark.parametrize(
    "text",
    [
        "Facts:\n- Ada rents a rack.\n    - It is in room 4.\n    - It has two doors.",
        "The user said:\n    The rack is in room 4.\n    It has two doors.",
        "> The rack is in room 4.\n> It has two doors.",
        "decisions:\n  - Rent the rack.\n  - Paint it.",
    ],
)
def test_indented_prose_and_lists_are_shortened_sentence_by_sentence(text: str) -> None:
    assert not any(sentence.is_code for sentence in split_sentences(text))


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_each_summary_of_a_chat_has_its_code_whole_or_not_at_all(
    session: Session,  # noqa: F811
    scripted: ScriptedModel,
    api: APIClient,
) -> None:
    AiModel.objects.update(context_window_size=4_000)
    Session.objects.update(policy="chatcore")
    shown: list[str] = []
    for number in range(8):
        session.refresh_from_db()
        fill_session(session, messages=20)
        say(session, f"Use this in room {number}:\n\n{INDENTED}\n\nNever change it.")
        session.refresh_from_db()
        fill_session(session, messages=20)
        facts = PROSE.format(number + 100)
        summary = f"{facts}They agreed on this:\n\n{INDENTED}\n\n{facts}"
        scripted.default = Reply(text=f"{summary}\nThe weather of Lisbon was spoken of.")
        compact(session)
        shown.append(api.get(f"/api/v1/sessions/{session.pk}").json()["compacted_summary"])
    assert any(INDENTED in summary for summary in shown)
    for summary in shown:
        assert summary.count("rate") == summary.count(INDENTED) * INDENTED.count("rate")
