"""Recall: everything that was said can be found again, by its owner, in bounded pieces."""

import json
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from chatcore.base.rest.pagination import Cursor
from chatcore.context import revisions
from chatcore.models import Message, Session
from chatcore.providers.base import ToolCall
from chatcore.search import query as search_query
from chatcore.search.ranking import MAX_PAIRS
from chatcore.search.snippets import SNIPPET_CHARS
from chatcore.search.tables import FILE_TABLE, STEM_TABLE, TABLE
from chatcore.tools import registry as tool_registry

pytestmark = pytest.mark.django_db
only_postgresql = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite's stems stand in virtual tables."
)


@pytest.fixture
def chat(user: User) -> Session:
    return Session.objects.create(owner=user)


def say(session: Session, *texts: str, **fields: Any) -> None:
    start = session.messages.count()
    Message.objects.bulk_create(
        Message(
            session=session,
            seq=seq,
            content=text,
            **{"role": "user", "created_at": timezone.now() + timedelta(seconds=seq), **fields},
        )
        for seq, text in enumerate(texts, start=start + 1)
    )


def found(scope: Any, query: str, **kwargs: Any) -> list[int]:
    return [hit.seq for hit in search_query.search_messages(scope, query, **kwargs)]


def ask(session_id: UUID, **arguments: Any) -> tool_registry.ToolOutcome:
    return tool_registry.run_tool(
        ToolCall(id="1", name="search_history", arguments=json.dumps(arguments)),
        session_id=session_id,
    )


def test_any_word_is_enough_and_those_that_hold_more_come_first(chat: Session) -> None:
    say(
        chat,
        "The red bicycle is in the cellar.",
        "The red car is in the garage.",
        "A Bicycle, painted RED.",
    )
    assert found(chat.pk, "bicycle red") == [3, 1, 2]


def test_a_hit_tells_where_it_was_said(chat: Session) -> None:
    say(chat, "The code is 4711.")
    (hit,) = search_query.search_messages(chat.pk, "4711")
    message = chat.messages.get()
    assert (hit.message_id, hit.session_id, hit.seq, hit.role, hit.created_at) == (
        message.pk,
        chat.pk,
        1,
        "user",
        message.created_at,
    )
    assert hit.snippet == "The code is 4711."


def test_messages_behind_the_boundary_are_found(chat: Session) -> None:
    say(chat, "My cat is called Minka.", "Let us talk of other things.", "Fine.")
    revisions.install_revision(
        chat.pk, base_version=0, summary="Small talk.", boundary_seq=3, source="compaction"
    )
    assert found(chat.pk, "minka") == [1]


@pytest.mark.parametrize("query", ["a_b", "\\", "'; DROP TABLE", '"', "%", "_"])
def test_wildcards_and_quotes_are_words_like_any_other(chat: Session, query: str) -> None:
    say(chat, f"It says {query} here.", "It says 100 or axb here.")
    assert found(chat.pk, query) == [1]


def test_half_a_character_is_no_word(chat: Session) -> None:
    say(chat, "A plover.")
    assert found(chat.pk, "\ud83d plover") == [1]
    assert not ask(chat.pk, query="\ud83d").is_error


def test_every_migration_leaves_the_index_in_place(db: None) -> None:
    """SQLite loses the triggers of a table that a migration makes anew."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(
                "SELECT name FROM sqlite_master"
                " WHERE type = 'trigger' AND tbl_name = 'chatcore_message' ORDER BY name"
            )
            assert [name for (name,) in cursor] == [
                f"{TABLE}_{event}" for event in ("delete", "insert", "update")
            ]
        assert (
            TABLE in connection.introspection.get_constraints(cursor, "chatcore_message")
            or connection.vendor == "sqlite"
        )


@pytest.mark.parametrize("query", ["", "   ", "\n\t", "\x00"])
def test_a_query_without_a_word_finds_nothing(chat: Session, query: str) -> None:
    say(chat, "Something.")
    assert found(chat.pk, query) == []


def test_chinese_and_emoji_are_found(chat: Session) -> None:
    say(chat, "我的猫叫米卡。", "🚲 is mine")
    assert found(chat.pk, "猫叫") == [1]
    assert found(chat.pk, "🚲") == [2]


def test_the_case_of_other_letters_does_not_matter_either(chat: Session) -> None:
    say(chat, "ÄPFEL, Äpfel, äpfel.", "Es gab viele Äpfel" + " und Birnen" * 20, "Ein Apfel.")
    hits = found(chat.pk, "äPFEL")
    assert (hits[0], sorted(hits)) == (1, [1, 2, 3])


def test_a_part_of_a_word_is_found_only_where_its_letters_stand_side_by_side(chat: Session) -> None:
    """The index of SQLite knows the pieces of `lover`, `lov`, `ove` and `ver`, alone."""
    say(chat, "Explore what you love over there.", "A plover.")
    assert found(chat.pk, "lover") == [2]


def test_one_session_never_shows_another(chat: Session, user: User) -> None:
    say(Session.objects.create(owner=user), "secret")
    assert found(chat.pk, "secret") == []


def test_a_user_finds_in_all_own_sessions_and_in_no_one_elses(chat: Session, user: User) -> None:
    other = User.objects.create_user("bob")
    say(chat, "plan alpha")
    say(Session.objects.create(owner=user), "plan beta")
    say(Session.objects.create(owner=other), "plan gamma")
    assert {hit.snippet for hit in search_query.search_messages(user, "plan")} == {
        "plan alpha",
        "plan beta",
    }


def test_the_newest_come_first_and_no_more_than_the_limit(chat: Session) -> None:
    say(chat, *["word"] * 120)
    assert found(chat.pk, "word", limit=3) == [120, 119, 118]
    assert len(found(chat.pk, "word", limit=1000)) == search_query.MAX_HITS + 1
    assert found(chat.pk, "word", limit=0) == []
    assert found(chat.pk, "word", limit=-1) == []


def test_a_snippet_is_the_text_around_the_word(chat: Session) -> None:
    say(chat, "before " * 500 + "NEEDLE\n\n" + "after " * 500)
    snippet = search_query.search_messages(chat.pk, "needle")[0].snippet
    assert "before NEEDLE after" in snippet
    assert snippet.startswith("…")
    assert snippet.endswith("…")
    assert len(snippet) <= SNIPPET_CHARS + 2


def test_a_search_of_a_long_chat_takes_a_few_queries_more_than_that_of_a_short_one(
    chat: Session, user: User
) -> None:
    long_chat = Session.objects.create(owner=user)
    say(chat, *["a word in a sentence"] * 20)
    say(long_chat, *["a word in a sentence"] * 2_000)
    with CaptureQueriesContext(connection) as short_queries:
        found(chat.pk, "Which sentence has a word?")
    with CaptureQueriesContext(connection) as long_queries:
        found(long_chat.pk, "Which sentence has a word?")
    assert len(long_queries) <= len(short_queries) + MAX_PAIRS


def test_the_tool_answers_with_the_messages_of_its_own_session(chat: Session, user: User) -> None:
    say(chat, "My sister lives in Oslo.")
    say(Session.objects.create(owner=user), "My brother lives in Oslo.")
    outcome = ask(chat.pk, query="oslo lives")
    assert not outcome.is_error
    assert outcome.content.startswith("[message 1, user, ")
    assert "sister" in outcome.content
    assert "brother" not in outcome.content


def test_the_tool_says_so_when_nothing_is_found(chat: Session) -> None:
    outcome = ask(chat.pk, query="nowhere")
    assert not outcome.is_error
    assert "No earlier message" in outcome.content


def test_the_tool_does_not_find_its_own_former_results(chat: Session) -> None:
    say(chat, "The word is plover.")
    say(
        chat,
        ask(chat.pk, query="plover").content,
        role="tool",
        tool_name="search_history",
        tool_call_id="1",
    )
    assert found(chat.pk, "plover") == [1]


def test_the_message_that_says_it_most_comes_before_newer_ones(chat: Session) -> None:
    say(
        chat,
        "Plover, plover, plover.",
        "A plover was seen once, " + "far away over the water, " * 20,
    )
    assert found(chat.pk, "plover") == [1, 2]


def test_superseded_messages_are_not_found(chat: Session) -> None:
    say(chat, "The old password is swordfish.", "The new one is trout.")
    chat.messages.filter(seq=1).update(branch=uuid4())
    assert found(chat.pk, "is") == [2]
    assert found(chat.pk, "swordfish") == []


def test_a_changed_or_deleted_text_leaves_the_index(chat: Session) -> None:
    say(chat, "swordfish", "trout")
    chat.messages.filter(seq=1).update(content="halibut")
    chat.messages.filter(seq=2).delete()
    assert [found(chat.pk, word) for word in ("swordfish", "halibut", "trout")] == [[], [1], []]


def test_the_indexes_are_used(chat: Session) -> None:
    """SQLite uses the virtual tables, and PostgreSQL can use its indexes.

    The test forbids PostgreSQL's planner the other ways.
    """
    say(chat, *[f"noise {number}" for number in range(300)], "the needle")
    if connection.vendor == "sqlite":
        conditions = {
            STEM_TABLE: f"id IN (SELECT rowid FROM {STEM_TABLE} WHERE {STEM_TABLE} MATCH 'needle')",
            TABLE: f"id IN (SELECT rowid FROM {TABLE} WHERE {TABLE} MATCH 'needle')",
        }
    else:
        conditions = {
            f"{STEM_TABLE}_terms": (
                f"id IN (SELECT id FROM {STEM_TABLE} WHERE stems @@ to_tsquery('needle') OFFSET 0)"
            ),
            TABLE: "upper(content) LIKE upper('%needle%')",
        }
    for index, condition in conditions.items():
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off")
            explain = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN"
            cursor.execute(f"{explain} SELECT id FROM chatcore_message WHERE {condition}")
            assert index in str(cursor.fetchall())
    assert found(chat.pk, "needle") == [301]


@only_postgresql
def test_fresh_rows_are_found_by_the_index_and_no_stem_is_computed_again(
    chat: Session, user: User
) -> None:
    """The planner knows nothing of rows that were never analyzed, and took the worst way."""
    say(chat, *[f"noise {number}" for number in range(300)], "the needle in the haystack")
    for scope in (chat.pk, user):
        with CaptureQueriesContext(connection) as queries:
            assert found(scope, "needle haystack") == [301]
        look_ups = [query["sql"] for query in queries if "to_tsquery" in query["sql"]]
        assert look_ups
        for statement in look_ups:
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN (ANALYZE) {statement}")
                plan = "\n".join(line for (line,) in cursor)
            assert f"{STEM_TABLE}_terms" in plan or FILE_TABLE in plan, plan
            assert "chatcore_stems(" not in plan
            # A user's sessions are listed once, and not a word for each of them.
            assert "Join Filter" not in plan, plan


@only_postgresql
def test_nothing_of_a_deleted_message_stays_in_the_tables_of_stems(chat: Session) -> None:
    say(chat, "a plover", "an avocet")
    chat.messages.filter(seq=1).delete()
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT stems::text FROM {STEM_TABLE}")
        rows = cursor.fetchall()
    assert len(rows) == 1
    assert "plover" not in str(rows)


def test_pages_of_hits_do_not_shift_under_new_messages(api: APIClient, user: User) -> None:
    chat = Session.objects.create(owner=user)
    say(chat, *["a plover"] * 5)
    first = api.get(f"/api/v1/sessions/{chat.pk}/search", {"q": "plover", "limit": "2"}).json()
    say(chat, "a plover")
    second = api.get(first["next"]).json()
    third = api.get(second["next"]).json()
    assert [[hit["seq"] for hit in page["results"]] for page in (first, second, third)] == [
        [5, 4],
        [3, 2],
        [1],
    ]
    assert third["next"] is None
    assert api.get(third["previous"]).json()["results"] == second["results"]
    assert api.get(f"/api/v1/search?q=plover&cursor={Cursor(['x']).encode()}").status_code == 400
