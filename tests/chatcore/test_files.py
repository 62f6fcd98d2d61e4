"""How much of attached files the model gets: NeuroLink's File Token Budget."""

import base64
import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.test import APIClient

from chatcore.context import builder, revisions
from chatcore.files import intake
from chatcore.models import Attachment, ContextRevision, Session
from compaction.core.attachments import (
    FileEntry,
    compute_file_budget,
    fit_files,
)
from compaction.core.presets import PRESETS
from compaction.models import CompactionPolicy, CompactionRun
from models_registry.models import AiModel, Provider
from tests.support.sample_files import build_png
from tests.support.scripted_model import ScriptedModel
from tests.support.slow_params import mark_others_slow

KNOBS = PRESETS["neurolink"].files
KB, MB = 1024, 1024 * 1024
answering = pytest.mark.django_db(transaction=True)  # turns are answered in another thread


def file(characters: int, *, char: str = "x") -> FileEntry:
    return FileEntry(characters, char * characters, characters // 4)


@pytest.mark.parametrize(
    ("window", "used", "reserve", "budget"),
    [
        (128_000, 0, 44_800, 49_920),
        (200_000, 50_000, 64_000, 51_600),
        (8_192, 1_000, 2_868, 2_594),
        (100_000, 60_000, 40_000, 0),
        (100_000, 90_000, 40_000, 0),
        (0, 0, 0, 0),
    ],
)
def test_files_take_sixty_percent_of_what_remains(
    window: int, used: int, reserve: int, budget: int
) -> None:
    """NeuroLink's calculateFileTokenBudget.

    It is floor((contextWindow - currentTokens - maxOutputTokens) * 0.6), and 0 if nothing remains.
    """
    assert compute_file_budget(window, used, reserve) == budget


@pytest.mark.parametrize(
    ("size", "budget", "shown"),
    [
        (100 * KB - 1, 25_600, 100 * KB - 1),
        (100 * KB, 25_600, 100 * KB),
        (100 * KB, 25_599, 102_396),
        (5 * MB, 10_000, 40_000),
        (5 * MB + 1, 2_000_000, 2_000),
        (5 * MB, 0, 0),
    ],
)
def test_the_fast_path_the_preview_and_what_lies_between(
    size: int, budget: int, shown: int
) -> None:
    """shouldTruncateFile, with FILE_FAST_PATH_SIZE, FILE_PREVIEW_MODE_SIZE, FILE_PREVIEW_CHARS."""
    assert fit_files([file(size, char="~")], budget, KNOBS)[0].count("~") == shown


def test_a_file_over_five_megabytes_is_a_preview_of_two_thousand_characters() -> None:
    text = fit_files([file(5 * MB + 1)], 10_000_000, KNOBS)[0]
    assert text == f"(5,242,881 chars) {'x' * 2_000}... [5,240,881 chars omitted]"
    assert fit_files([file(5 * MB + 1)], None, KNOBS) == [text]


def test_five_files_of_two_point_eight_megabytes_share_the_budget_in_proportion() -> None:
    """enforceAggregateFileBudget."""
    sizes = [900_000, 700_000, 600_000, 400_000, 200_000]
    texts = fit_files([file(size) for size in sizes], 49_920, KNOBS)
    kept = [text.count("x") for text in texts]
    assert sum(kept) <= 49_920 * 4
    assert [round(part / sum(kept), 2) for part in kept] == [
        round(size / sum(sizes), 2) for size in sizes
    ]
    assert texts[0].endswith(
        f"\n[... {900_000 - kept[0]:,} of the 900,000 characters of this file are left out]"
    )


def test_small_files_stay_whole_while_there_is_room_and_are_dropped_when_there_is_none() -> None:
    small, large = file(50_000), file(2_000_000)
    both = fit_files([small, large], 30_000, KNOBS)
    assert both[0] == small.text
    assert both[1].startswith("x" * 70_000 + "\n[... ")
    assert fit_files([small, small, small], 20_000, KNOBS)[0].startswith("x" * 26_664 + "\n[... ")
    assert (
        fit_files([small, large], 10, KNOBS)[1]
        == "[This file of 2,000,000 characters is left out: there is no room for it]"
    )
    assert fit_files([small, large], None, KNOBS) == [small.text, large.text]


@given(
    st.lists(st.integers(0, 6 * MB), max_size=20),
    st.integers(0, 300_000),
    st.builds(
        dataclasses.replace,
        st.just(KNOBS),
        fast_path_bytes=st.integers(0, 500 * KB),
        preview_chars=st.integers(1, 5_000),
    ),
)
def test_together_they_never_take_more_than_the_budget(
    sizes: list[int], budget: int, knobs: Any
) -> None:
    shared = "x" * max(sizes, default=0)
    texts = fit_files([FileEntry(size, shared[:size], size // 4) for size in sizes], budget, knobs)
    notes = 100 * len(texts)
    assert sum(len(text) for text in texts) // 4 <= budget + notes


def say(
    api: APIClient, session: Session, *given: tuple[str, bytes], content: str = "What is in it?"
) -> Any:
    """Upload files, and say something with them."""
    ids = [intake.store_file(session, name=name, data=data).pk for name, data in given]
    return api.post(
        f"/api/v1/sessions/{session.pk}/messages",
        {"content": content, "attachments": [str(pk) for pk in ids]},
    )


def sent(scripted: ScriptedModel) -> Any:
    """What the model was sent last, as one text."""
    content = scripted.requests[-1].json["messages"][-1]["content"]
    return (
        content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    )


@answering
@pytest.mark.parametrize(
    "policy", mark_others_slow(["oneclaw", "lota", "neurolink", "wolffish", "baseagent"], first=2)
)
def test_the_very_first_message_with_five_large_files_fits_the_window(
    api: APIClient, session: Session, model: AiModel, scripted: ScriptedModel, policy: str
) -> None:
    AiModel.objects.filter(pk=model.pk).update(context_window_size=128_000)
    Session.objects.filter(pk=session.pk).update(policy=policy)
    large = [
        (f"{n}.txt", f"line of file {n}\n".encode() * (size // 15))
        for n, size in enumerate([900_000, 700_000, 600_000, 400_000, 200_000])
    ]
    assert say(api, session, *large).status_code == 201
    assert len(scripted.requests) == 1
    text = sent(scripted)
    assert text.count("</attached_file>") == 5
    assert 20_000 < len(text) < 128_000 * 4
    assert not CompactionRun.objects.filter(status="failed").exists()
    again = api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": "And now?"})
    assert again.status_code == 201
    usage = api.get(f"/api/v1/sessions/{session.pk}/context").json()
    assert usage["breakdown"]["file_attachments"] > 0
    assert usage["estimated_input_tokens"] <= 128_000


@answering
def test_with_compaction_switched_off_files_are_fitted_all_the_same(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    Session.objects.filter(pk=session.pk).update(auto_compact=False)
    assert say(api, session, ("big.txt", b"word " * 100_000)).status_code == 201
    assert 10_000 < len(sent(scripted)) < 8_192 * 4


@answering
def test_a_policy_says_how_much_room_files_have(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    CompactionPolicy.objects.create(
        name="stingy",
        base="oneclaw",
        overrides={
            "files": {
                "budget_ratio": 0.1,
                "fast_path_bytes": 0,
                "preview_bytes": 50_000,
                "preview_chars": 7,
            }
        },
    )
    Session.objects.filter(pk=session.pk).update(policy="stingy")
    assert say(api, session, ("a.txt", b"a" * 40_000), ("b.txt", b"b" * 60_000)).status_code == 201
    text = sent(scripted)
    assert "(60,000 chars) bbbbbbb... [59,993 chars omitted]" in text
    assert 2_500 < text.count("a") < 3_500


@answering
@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
def test_an_image_reaches_a_model_that_sees(
    api: APIClient, session: Session, model: AiModel, scripted: ScriptedModel, protocol: str
) -> None:
    url = scripted.base_url if protocol == "openai" else scripted.anthropic_base_url
    Provider.objects.filter(pk=model.provider_id).update(protocol=protocol, base_url=url)
    AiModel.objects.filter(pk=model.pk).update(supports_images=True)
    picture = build_png(4, 3)
    assert say(api, session, ("cat.png", picture), ("facts.md", b"# Cats")).status_code == 201
    parts = scripted.requests[-1].json["messages"][-1]["content"]
    encoded = base64.b64encode(picture).decode()
    if protocol == "openai":
        assert {
            "type": "image_url",
            "image_url": {"url": f"data:image/png;base64,{encoded}"},
        } in parts
    else:
        source = {"type": "base64", "media_type": "image/png", "data": encoded}
        assert {"type": "image", "source": source} in parts
    assert (
        sent(scripted)
        == 'What is in it?\n\n<attached_file name="facts.md">\n# Cats\n</attached_file>'
    )


@answering
def test_a_model_that_does_not_see_is_told_that_there_was_an_image(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    assert say(api, session, ('my "cat".png', build_png(4, 3))).status_code == 201
    assert (
        sent(scripted) == "What is in it?\n\n"
        "[The image \"my 'cat'.png\" was attached; this model cannot see images.]"
    )


@pytest.mark.django_db
def test_of_very_many_images_the_newest_are_sent(
    session: Session, model: AiModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    AiModel.objects.filter(pk=model.pk).update(supports_images=True)
    session.model.refresh_from_db()  # type: ignore[union-attr]
    monkeypatch.setattr("chatcore.files.rendering.IMAGE_BYTES", 2 * len(build_png(4, 3)))
    for seq in (1, 2, 3):
        message = session.messages.create(seq=seq, role="user", content=f"Image {seq}.")
        intake.bind_files(
            message, [intake.store_file(session, name=f"{seq}.png", data=build_png(4, 3)).pk]
        )
    shown = builder.build_request(session).messages
    assert [len(message.images) for message in shown] == [0, 1, 1]
    assert (
        shown[0].content == 'Image 1.\n\n[The image "1.png" was attached; it is not shown again.]'
    )


@pytest.mark.django_db
def test_an_image_that_an_edit_strips_is_sent_no_more(session: Session, model: AiModel) -> None:
    AiModel.objects.filter(pk=model.pk).update(supports_images=True)
    session.model.refresh_from_db()  # type: ignore[union-attr]
    message = session.messages.create(seq=1, role="user", content="Look.")
    intake.bind_files(
        message, [intake.store_file(session, name="cat.png", data=build_png(4, 3)).pk]
    )
    assert len(builder.build_request(session).messages[0].images) == 1
    stripped = revisions.MessageEdit(
        message_seq=1, kind="images_stripped", replacement="Look.\n[gone]"
    )
    revisions.install_revision(
        session.pk,
        base_version=0,
        summary=None,
        boundary_seq=None,
        edits=[stripped],
        source=ContextRevision.Source.COMPACTION,
    )
    shown = builder.build_request(session).messages[0]
    assert (shown.content, shown.images, shown.files) == ("Look.\n[gone]", (), ())
    assert Attachment.objects.get().data


@answering
def test_compaction_strips_older_images_from_the_next_request(
    api: APIClient, session: Session, model: AiModel, scripted: ScriptedModel
) -> None:
    """Wolffish, Step 1."""
    AiModel.objects.filter(pk=model.pk).update(supports_images=True)
    stripping = {
        "stages": ["strip_images"],
        "protect": {"kind": "count", "count": 2, "first": 0, "min_chars": 0},
    }
    CompactionPolicy.objects.create(name="stripping", base="wolffish", overrides=stripping)
    Session.objects.filter(pk=session.pk).update(policy="stripping")
    for number in range(4):
        assert (
            say(
                api, session, (f"{number}.png", build_png(1_000, 1_000)), content=f"Image {number}."
            ).status_code
            == 201
        )
    ran = api.post(f"/api/v1/sessions/{session.pk}/compact", {"wait": True})
    assert (ran.status_code, ran.json()["status"]) == (200, "applied"), ran.json()
    assert (
        api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": "And now?"}).status_code
        == 201
    )
    asked = [
        message["content"]
        for message in scripted.requests[-1].json["messages"]
        if message["role"] == "user"
    ]
    assert [isinstance(content, list) for content in asked] == [False, False, False, True, False]
    assert asked[0] == "[Image omitted from context]\nImage 0."
    assert Attachment.objects.filter(size__gt=0).count() == 4
