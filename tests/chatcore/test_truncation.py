"""Tool results are cut once, when they are stored (FEAT-011, Tool Result Truncation)."""

import json
from datetime import date
from typing import Any

import pytest
from django.db import transaction
from hypothesis import given
from hypothesis import strategies as st

from chatcore.base.truncation import TOOL_RESULT_MAX_CHARS, clean_text, cut_tool_result
from chatcore.models import Message, Session


def test_thirty_thousand_characters_stay_as_they_are() -> None:
    text = "x" * TOOL_RESULT_MAX_CHARS
    assert cut_tool_result(text) == (text, None)


def test_one_more_is_cut_and_stored_as_30076() -> None:
    text, original = cut_tool_result("x" * 30_001)
    assert (len(text), original) == (30_076, 30_001)
    assert text.endswith(
        "x\n\n[... content truncated, showing first 30000 characters of 30001 total ...]"
    )


@given(
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=400), st.integers(10, 200)
)
def test_cutting_twice_changes_nothing(text: str, limit: int) -> None:
    once, _ = cut_tool_result(text, limit)
    assert cut_tool_result(once, limit)[0] == once


def test_it_counts_code_points_and_never_splits_one() -> None:
    text, _ = cut_tool_result("👋🏽" * 20_000)
    assert text.startswith("👋🏽" * 15_000 + "\n\n[...")


@given(st.text())
def test_cleaning_leaves_what_can_be_stored_and_never_raises(text: str) -> None:
    assert "\x00" not in clean_text(text).encode().decode()


def test_surrogate_pairs_become_their_character_and_lone_ones_go() -> None:
    assert clean_text("a\ud83d\ude00b\ud83dc\x00d\ude00") == "a😀bcd"


@pytest.mark.django_db
@pytest.mark.parametrize("how", ["save", "bulk_create"])
@pytest.mark.parametrize(
    "content",
    ["x" * 40_000, json.dumps({"k": ["v" * 50] * 900}), "é" * 31_000],
    ids=["text", "json", "unicode"],
)
def test_every_way_into_the_database_cuts(session: Session, how: str, content: str) -> None:
    message = Message(session=session, seq=1, role="tool", content=content, is_error=True)
    message.save() if how == "save" else Message.objects.bulk_create([message])
    stored = Message.objects.get(session=session)
    assert stored.content.startswith(content[:TOOL_RESULT_MAX_CHARS] + "\n\n[... content truncated")
    assert stored.original_chars == len(content)
    stored.save()
    again = Message.objects.get(pk=stored.pk)
    assert (again.content, again.original_chars) == (stored.content, len(content))


class Unspeakable:
    """A result of a tool whose own text raises."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.django_db
@pytest.mark.parametrize("how", ["save", "bulk_create"])
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"é": [1, None, "x"]}, '{"é": [1, null, "x"]}'),
        ([], "[]"),
        (b"caf\xc3\xa9 \xff\x00", "café \ufffd"),
        (0, "0"),
        (False, "false"),
        (None, ""),
        (date(2026, 1, 2), '"2026-01-02"'),
        (Unspeakable(), "[Unspeakable]"),
    ],
    ids=["dict", "list", "bytes", "int", "bool", "none", "date", "unspeakable"],
)
def test_a_result_of_any_kind_is_stored_as_text(
    session: Session, how: str, value: Any, text: str
) -> None:
    message = Message(session=session, seq=1, role="tool", content=value)
    message.save() if how == "save" else Message.objects.bulk_create([message])
    assert Message.objects.get().content == text


@pytest.mark.django_db
def test_a_long_list_is_cut_like_a_text(session: Session) -> None:
    numbers: Any = [7] * 40_000
    message = Message.objects.create(session=session, seq=1, role="tool", content=numbers)
    assert (len(message.content), message.original_chars) == (30_077, 120_000)


@pytest.mark.django_db
def test_a_list_that_holds_itself_is_stored_too(session: Session) -> None:
    endless: Any = []
    endless.append(endless)
    Message.objects.create(session=session, seq=1, role="tool", content=endless)
    assert Message.objects.get().content == "[list]"


@pytest.mark.django_db
def test_no_update_puts_a_long_result_past_the_cut(session: Session) -> None:
    result = Message.objects.create(session=session, seq=1, role="tool", content="short")
    words = Message.objects.create(session=session, seq=2, role="user", content="short")
    with pytest.raises(ValueError, match="stored by save"):
        session.messages.update(content="x" * 40_000)
    result.content = words.content = "x" * 40_000
    with pytest.raises(ValueError, match="stored by save"), transaction.atomic():
        Message.objects.bulk_update([words, result], ["content"])
    assert list(Message.objects.values_list("content", flat=True)) == ["short", "short"]
    session.messages.filter(role="user").update(content="other words")
    session.messages.update(pinned=True)
    result.save()
    assert Message.objects.get(pk=result.pk).original_chars == 40_000


@pytest.mark.django_db
def test_only_tool_results_are_cut(session: Session) -> None:
    message = Message.objects.create(session=session, seq=1, role="user", content="x" * 40_000)
    message.refresh_from_db()
    assert (len(message.content), message.original_chars) == (40_000, None)


@pytest.mark.django_db
def test_no_text_of_a_message_holds_what_no_database_stores(session: Session) -> None:
    calls = [{"id": "\x00a\ud800", "name": "\x00b\ud800", "arguments": "\x00c"}]
    texts = {
        "content": "\x00",
        "reasoning": "\ud800",
        "tool_call_id": "\x00a\ud800",
        "tool_name": "\ud800b\x00",
        "tool_calls": calls,
    }
    Message.objects.create(session=session, seq=1, role="tool", **texts)
    stored = Message.objects.get()
    assert (stored.content, stored.reasoning, stored.tool_call_id, stored.tool_name) == (
        "",
        "",
        "a",
        "b",
    )
    assert stored.tool_calls == [{"id": "a", "name": "b", "arguments": "c"}]


def store(session: Session, how: str, **columns: Any) -> Message:
    message = Message(session=session, seq=1, **columns)
    message.save() if how == "save" else Message.objects.bulk_create([message])
    return Message.objects.get(session=session)


@pytest.mark.django_db
@pytest.mark.parametrize("how", ["save", "bulk_create"])
@pytest.mark.parametrize(
    ("calls", "stored_calls"),
    [
        (None, []),
        ({}, []),
        ([{}], [{"id": "", "name": "", "arguments": ""}]),
        ([{"name": "a"}], [{"id": "", "name": "a", "arguments": ""}]),
        (
            [{"id": 7, "name": None, "arguments": None}],
            [{"id": "7", "name": "", "arguments": ""}],
        ),
        (
            [{"id": "a", "name": "b", "arguments": {"c": float("nan"), 1: (2, b"d")}}],
            [{"id": "a", "name": "b", "arguments": '{"c": "NaN", "1": [2, "d"]}'}],
        ),
        ([{"id": "a", 2: {3: "e"}}], [{"id": "a", "name": "", "arguments": "", "2": {"3": "e"}}]),
        (["words"], [{"id": "", "name": "", "arguments": "words"}]),
        ("words", [{"id": "", "name": "", "arguments": "words"}]),
        ([{"id": "i" * 300, "name": date(2026, 1, 2)}],
         [{"id": "i" * 255, "name": '"2026-01-02"', "arguments": ""}]),
    ],
)  # fmt: skip
def test_calls_of_any_kind_are_stored(
    session: Session, how: str, calls: Any, stored_calls: list[Any]
) -> None:
    message = store(session, how, role="assistant", content="Look", tool_calls=calls)
    assert message.tool_calls == stored_calls
    message.save()
    assert Message.objects.get().tool_calls == stored_calls


@pytest.mark.django_db
@pytest.mark.parametrize("how", ["save", "bulk_create"])
@pytest.mark.parametrize(
    "value", [None, 7, b"words", {"a": 1}, [None], Unspeakable(), float("inf")]
)
def test_no_column_of_any_kind_makes_it_raise(session: Session, how: str, value: Any) -> None:
    names = ("content", "reasoning", "finish_detail", "tool_call_id", "tool_name")
    message = store(
        session,
        how,
        role="tool",
        tool_calls=[{"id": value, "name": value, "arguments": value, "more": value}],
        provider_data={1: value},
        **dict.fromkeys(names, value),
    )
    for name in names:
        assert isinstance(getattr(message, name), str)


@pytest.mark.django_db
def test_values_that_hold_themselves_do_not_either(session: Session) -> None:
    endless: Any = {}
    endless["again"] = [endless]
    message = store(session, "save", role="tool", provider_data=endless, tool_calls=[endless])
    assert (message.provider_data, message.tool_calls[0]["id"]) == ("[dict]", "")


@pytest.mark.django_db
@pytest.mark.parametrize("how", ["save", "bulk_create"])
@pytest.mark.parametrize("limit", [3_000_000, 30_001, None])
def test_no_row_raises_its_own_limit(session: Session, how: str, limit: int | None) -> None:
    text = "x" * 3_000_000
    message = store(session, how, role="tool", content=text, tool_result_limit=limit)
    assert (len(message.content), message.original_chars) == (30_078, 3_000_000)
    assert message.tool_result_limit is None
    message.tool_result_limit, message.content = limit, text + "y"
    message.save(update_fields=["content"])
    assert len(Message.objects.get().content) == 30_078


@pytest.mark.django_db
def test_a_row_lowers_its_limit(session: Session) -> None:
    message = store(session, "save", role="tool", content="x" * 40_000, tool_result_limit=100)
    assert message.content.startswith("x" * 100 + "\n\n[... content truncated")
    assert (message.original_chars, message.tool_result_limit) == (40_000, 100)


@pytest.mark.django_db
def test_what_is_derived_is_stored_with_each_column_that_it_comes_from(session: Session) -> None:
    message = store(session, "save", role="tool", content="short")
    message.content = "x" * 40_000
    message.save(update_fields=["content"])
    message = Message.objects.get()
    assert (message.original_chars, message.token_estimate) == (40_000, 30_076 // 4)
    message.save(update_fields=["content"])
    assert Message.objects.get().original_chars == 40_000
    message.content = "short again"
    message.save(update_fields={"content"})
    message = Message.objects.get()
    assert (message.original_chars, message.token_estimate) == (None, 2)
    message.tool_calls = [{"id": "a", "name": "b" * 400, "arguments": ""}]
    message.save(update_fields=["tool_calls"])
    assert Message.objects.get().token_estimate == 411 // 4


@pytest.mark.django_db
def test_a_message_that_becomes_a_tool_result_is_cut(session: Session) -> None:
    message = store(session, "save", role="user", content="x" * 40_000)
    message.role = Message.Role.TOOL
    message.save(update_fields=["role"])
    message = Message.objects.get()
    assert (len(message.content), message.original_chars) == (30_076, 40_000)


@pytest.mark.django_db
def test_a_bulk_update_stores_what_is_derived(session: Session) -> None:
    message = store(session, "save", role="user", content="short")
    message.content = "word " * 100 + "\x00"
    assert Message.objects.bulk_update([message], ["content"]) == 1
    stored = Message.objects.get()
    assert (stored.content, stored.token_estimate) == ("word " * 100, 125)


@pytest.mark.django_db
def test_a_saved_column_of_another_kind_stores_no_text(session: Session) -> None:
    message = store(session, "save", role="user", content="short")
    message.content, message.pinned = "not to be stored", True
    message.save(update_fields=["pinned"])
    assert (Message.objects.get().content, Message.objects.get().pinned) == ("short", True)
