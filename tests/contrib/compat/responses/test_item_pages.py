"""Pages of items: each item once in both directions, and only as much read as a page needs."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatcore.contrib.compat.responses import item_lists
from chatcore.models import Message, Session
from models_registry.models import AiModel

pytestmark = pytest.mark.django_db
SYSTEM_ITEM = {"id": "msg_system", "type": "message"}


@pytest.fixture
def talk(user: User, model: AiModel) -> Session:
    """Sixty rounds, each with an answer of three items and a result."""
    session = Session.objects.create(owner=user, model=model)
    calls = [{"id": f"call_{name}", "name": name, "arguments": "{}"} for name in ("one", "two")]
    for number in range(60):
        seq = 3 * number
        rows = [
            Message(session=session, seq=seq + 1, role="user", content=f"q{number}"),
            Message(
                session=session,
                seq=seq + 2,
                role="assistant",
                content=f"a{number}",
                tool_calls=calls,
                model="m",
            ),
            Message(
                session=session, seq=seq + 3, role="tool", content="r", tool_call_id="call_one"
            ),
        ]
        Message.objects.bulk_create(rows)
    return session


def read_page(session: Session, **query: str) -> dict[str, Any]:
    return item_lists.paginate(session.messages.all(), query, first_items=[SYSTEM_ITEM])


@pytest.mark.parametrize("limit", ["4", "7", "100"])
def test_each_item_comes_once_in_both_directions(talk: Session, limit: str) -> None:
    found: dict[str, list[str]] = {}
    for order in ("asc", "desc"):
        after = ""
        found[order] = []
        while True:
            page = read_page(talk, order=order, limit=limit, after=after)
            found[order] += [item["id"] for item in page["data"]]
            if not page["has_more"]:
                break
            after = page["last_id"]
    assert len(found["asc"]) == len({*found["asc"]}) == 1 + 5 * 60
    assert found["asc"][0] == "msg_system"
    assert found["desc"] == found["asc"][::-1]


def test_a_page_reads_no_more_messages_than_it_needs(talk: Session) -> None:
    with CaptureQueriesContext(connection) as captured:
        read_page(talk, limit="20")
    statements = [query["sql"] for query in captured if "chatcore_message" in query["sql"]]
    assert all("LIMIT" in statement for statement in statements)
    assert len(statements) <= 3


def test_an_id_that_is_nobodys_is_followed_by_nothing(talk: Session, user: User) -> None:
    other = Session.objects.create(owner=user)
    for after in ("msg_unknown", f"msg_{other.pk.hex}{1:08x}", f"msg_{talk.pk.hex}{999:08x}"):
        assert read_page(talk, after=after)["data"] == []
