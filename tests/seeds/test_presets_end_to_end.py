"""One conversation with everything in it, under each preset and in both protocols.

The provider counts tokens by itself and refuses requests that are too long.
"""

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from chatcore.base.runner import turn_runner
from chatcore.context import builder
from chatcore.models import Message, Session, Turn
from chatcore.providers.base import Request
from chatcore.sessions import verification
from chatcore.turns import control
from chatcore.turns.messages import pin_message
from compaction.core.presets import PRESETS
from compaction.models import CompactionRun
from compaction.runs import engine
from tests.support.compaction_sessions import list_chat_calls, run_queued_compactions, use_anthropic
from tests.support.preset_sessions import (
    PROTOCOLS,
    is_within_budget,
    make_tool_calls,
    register_tool,
    set_policy,
    write_summary,
)
from tests.support.sample_files import build_png
from tests.support.scripted_model import ScriptedModel, make_overflow
from tests.support.scripted_wire import Reply
from tests.support.slow_params import mark_others_slow
from tests.support.strict_servers import UNKNOWN_SERVERS

pytestmark = pytest.mark.django_db(transaction=True)

WINDOW = 8_192
ENGLISH = (
    "We looked at the harbor, the old town and the train to the north, "
    "and wrote down what each of them costs. " * 14
)
CHINESE = "我們看了港口、老城和往北的火車，並且記下了每一項的費用。" * 22
CODE = (
    "def total(costs: list[int]) -> int:\n    return sum(cost for cost in costs if cost > 0)\n\n"
    * 14
)
TOLD = (
    "Alice has a budget of 2,000 euros. They looked at the harbor, the old town and the train "
    "to the north, and wrote down what each costs (港口、老城和往北的火車). "
    "The code adds up the costs above 0 and returns the total. "
    "look_up said: lorem ipsum dolor sit amet."
)
FIELDS = (
    "seq",
    "role",
    "content",
    "tool_calls",
    "tool_call_id",
    "tool_name",
    "is_error",
    "status",
    "created_at",
    "token_count_input",
)


def count_tokens(value: Any) -> int:
    """Count tokens as this provider does.

    A token is four Latin characters or one other character; an image is 1,000 tokens.
    """
    if isinstance(value, str):
        foreign = sum(ord(letter) > 0x2E80 for letter in value)
        return foreign + math.ceil((len(value) - foreign) / 4)
    if isinstance(value, dict):
        if value.get("type") in ("image", "image_url"):
            return 1_000
        return 4 + sum(count_tokens(each) for each in value.values())
    return sum(map(count_tokens, value)) if isinstance(value, list | tuple) else 1


class Provider:
    """A provider that refuses long requests, and records those that break the protocol."""

    def __init__(self, summary: str, protocol: str) -> None:
        self.summary, self.replies = summary, list[Reply]()
        self.protocol = protocol
        self.violations, self.refusal_count = list[str](), 0

    def __call__(self, request: dict[str, Any]) -> Reply:
        size = sum(
            count_tokens(request.get(name))
            for name in ("system", "messages", "tools")
            if request.get(name)
        )
        self.violations += UNKNOWN_SERVERS[self.protocol].find_refusals(request)
        if size > WINDOW:
            self.refusal_count += 1
            return make_overflow(tokens=size, window=WINDOW)
        if "<transcript>" in json.dumps(request["messages"]):
            return Reply(text=self.summary, usage=(size, count_tokens(self.summary)))
        reply = self.replies.pop(0) if self.replies else Reply(text="Noted.")
        return Reply(**{**vars(reply), "usage": (size, 1 + count_tokens(reply.words))})


class Talk:
    """A session and its provider. After each turn all invariants are checked."""

    def __init__(self, session: Session, provider: Provider) -> None:
        self.session, self.provider = session, provider
        self.stored_rows: dict[int, tuple[Any, ...]] = {}
        self.requests_by_version: dict[int, Request] = {}

    def say(self, content: str, *replies: Reply, status: str = "completed", **options: Any) -> Turn:
        return self._run(
            lambda: control.start_turn(self.session, content=content, **options), replies, status
        )

    def regenerate(self) -> Turn:
        """Regenerate the last answer."""
        answer = self.session.messages.exclude_superseded().filter(role="assistant").latest("seq")
        return self._run(
            lambda: control.regenerate_answer(answer),
            (Reply(text="Another answer. " + ENGLISH),),
            "completed",
        )

    def _run(self, begin: Callable[[], Turn], replies: tuple[Reply, ...], status: str) -> Turn:
        self.provider.replies[:] = replies
        self.session.refresh_from_db()
        turn = begin()
        turn_runner.drain(60)
        turn = control.wait_for_turn(turn.pk, timeout=60)
        assert (turn.status, self.provider.violations) == (status, []), turn.error
        self.check()
        run_queued_compactions()
        self.check()
        return turn

    def check(self) -> None:
        self.session.refresh_from_db()
        assert list(verification.find_violations(self.session)) == []
        now = {
            row[0]: row[1:]
            for row in Message.objects.filter(session=self.session).values_list("pk", *FIELDS)
        }
        assert {pk: now[pk] for pk in self.stored_rows} == self.stored_rows
        self.stored_rows = now
        self.requests_by_version.setdefault(
            self.session.context_version, builder.build_request(self.session)
        )

    def is_request_restored(self, version: int | None) -> bool:
        """Return True if a version's request is sent again, except for superseded messages."""
        earlier_request, request = (
            self.requests_by_version[version or 0],
            builder.build_request(self.session),
        )
        current = {None, *self.session.messages.exclude_superseded().values_list("seq", flat=True)}
        messages = [message for message in earlier_request.messages if message.seq in current]
        return (earlier_request.system, earlier_request.preface, messages) == (
            request.system,
            request.preface,
            list(request.messages[: len(messages)]),
        )

    def get_question(self, place: int) -> Message:
        return self.session.messages.exclude_superseded().filter(role="user").order_by("seq")[place]

    def switch_protocol(self, protocol: str, scripted: ScriptedModel) -> None:
        """Switch the session's provider to another protocol."""
        use_protocol(self.session, protocol, scripted)
        self.provider.protocol = protocol


def use_protocol(session: Session, protocol: str, scripted: ScriptedModel) -> None:
    session.refresh_from_db()
    assert session.model is not None
    if protocol == "anthropic":
        return use_anthropic(session, scripted)
    session.model.provider.protocol, session.model.provider.base_url = protocol, scripted.base_url
    session.model.provider.save()


@pytest.fixture
def talk(
    request: pytest.FixtureRequest,
    session: Session,
    scripted: ScriptedModel,
    monkeypatch: pytest.MonkeyPatch,
) -> Talk:
    policy, protocol = request.param
    provider = Provider(write_summary(policy, first_item=TOLD), protocol)
    scripted.default = provider
    register_tool(monkeypatch, "look_up", 2_400)
    use_protocol(session, protocol, scripted)
    set_policy(
        session,
        policy,
        scripted,
        "openai",
        context_window_size=WINDOW,
        output_reserve=2_000,
        supports_images=True,
    )
    Session.objects.filter(pk=session.pk).update(tools=["look_up"])
    session.refresh_from_db()
    return Talk(session, provider)


def upload_file(api: APIClient, session: Session, name: str, data: bytes) -> Any:
    form = {"file": SimpleUploadedFile(name, data)}
    return api.post(f"/api/v1/sessions/{session.pk}/attachments", form, format="multipart").json()[
        "id"
    ]


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.parametrize(
    "talk",
    mark_others_slow(
        [(policy, PROTOCOLS[place % 2]) for place, policy in enumerate(PRESETS)], first=2
    ),
    indirect=True,
    ids=PRESETS,
)
def test_everything_that_is_said_ends_well(
    talk: Talk, api: APIClient, scripted: ScriptedModel
) -> None:
    session = talk.session
    talk.say("My name is Alice, and the budget is 2,000 euros.", Reply(text="Noted, Alice."))
    pin_message(session.messages.get(seq=1))
    talk.say(CHINESE, Reply(text=CHINESE))
    talk.say("What does this code do?\n" + CODE, Reply(text="It adds up.\n" + CODE))
    talk.say(
        "Look both up.", make_tool_calls("look_up", [1, 2], text="I look."), Reply(text=ENGLISH)
    )
    files = [
        upload_file(api, session, "notes.txt", ENGLISH.encode()),
        upload_file(api, session, "map.png", build_png(40, 30)),
    ]
    talk.say("Read this.", Reply(text=ENGLISH), attachments=files)
    talk.say("Tell me all of it.", Reply(text=ENGLISH, cut_after=3), status="failed")
    talk.say(
        "Look these up.",
        make_tool_calls("look_up", [3, 4, 5]),
        make_tool_calls("look_up", [6]),
        Reply(text="Found."),
    )
    talk.switch_protocol("anthropic" if talk.provider.protocol == "openai" else "openai", scripted)
    talk.say(
        "Look both up, again.",
        make_tool_calls("look_up", [7, 8]),
        Reply(text=ENGLISH),
        replaces=talk.get_question(3),
    )
    version_after_edit = session.context_version
    for number in range(6):
        talk.say(f"{number}. {CHINESE}", Reply(text=f"{number}. {ENGLISH}"))
    talk.regenerate()
    assert not CompactionRun.objects.exclude(status__in=["applied", "skipped"]).exists()
    assert talk.provider.refusal_count <= 2
    assert "2,000 euros" in json.dumps(list_chat_calls(scripted)[-1].json)  # it is pinned
    assert is_within_budget(session)
    rewindable_runs = CompactionRun.objects.filter(
        status="applied", version_before__gte=version_after_edit
    ).order_by("-version_before")
    assert rewindable_runs
    for run in list(rewindable_runs):
        engine.rewind_run(run)
        talk.check()
        assert talk.is_request_restored(run.version_before)
