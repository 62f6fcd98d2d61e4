"""Facts that are written down twice, because neither app may import the other: they are equal.

Chatcore never imports compaction, and the pure core of compaction imports nothing but itself. So a
fact that both need has one owner on each side, and this file is what holds the two together.
"""

import re
from pathlib import Path
from typing import get_args

from chatcore.base import token_estimate, truncation
from chatcore.context import summary_block
from chatcore.providers.protocols import load_protocol
from chatcore.web.message_pages import MAX_PAGE_SIZE
from compaction.core.counter import CHARS_PER_TOKEN
from compaction.core.presets import ONECLAW
from compaction.systems.kit.settings import OutputKnobs, Place
from models_registry.models import Provider

SCRIPTS = Path(token_estimate.__file__).parents[1] / "static/chatcore/js"


def read_page_number(script: str, name: str) -> float:
    """Return the value of a constant in one of the page's modules."""
    match = re.search(rf"const {name} = ([\d.]+);", (SCRIPTS / script).read_text())
    assert match, f"{script} has no constant {name}"
    return float(match[1])


def test_the_page_keeps_as_many_messages_as_the_server_gives() -> None:
    assert read_page_number("message_pager.js", "MAX_MESSAGES") == MAX_PAGE_SIZE


def test_a_token_is_as_many_characters_everywhere() -> None:
    assert {
        CHARS_PER_TOKEN,
        ONECLAW.estimate.chars_per_token,
        token_estimate.CHARS_PER_TOKEN_ESTIMATE,
        read_page_number("token_estimate.js", "CHARACTERS_PER_TOKEN"),
    } == {4}


def test_a_tool_result_is_cut_alike_with_and_without_compaction() -> None:
    assert truncation.TOOL_RESULT_MAX_CHARS == ONECLAW.tool_result.limit == 30_000
    assert ONECLAW.get(OutputKnobs).marker == truncation.MARKER
    assert (ONECLAW.get(OutputKnobs).unit, ONECLAW.get(OutputKnobs).keep) == ("chars", "head")


def test_chatcore_knows_every_place_that_a_policy_may_give_a_summary() -> None:
    assert get_args(Place) == summary_block.PLACES


def test_every_protocol_that_a_provider_row_may_name_has_a_class() -> None:
    for protocol in Provider.Protocol.values:
        assert load_protocol(protocol).vendor_host
