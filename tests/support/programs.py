"""Random programs: what two people, two web processes and two workers can do to conversations."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from unittest import mock

from django.contrib.auth.models import User
from django.db import connection
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from rest_framework.test import APIClient

from chatcore.base.rest import turn_rate
from chatcore.base.runner import turn_runner
from chatcore.models import Message, Session, SessionEvent, Turn
from chatcore.turns import lifecycle
from compaction.models import CompactionRun
from compaction.runs import engine
from models_registry.models import AiModel, Provider
from tests.support.client_tool_requests import WEATHER
from tests.support.compaction_sessions import SUMMARY
from tests.support.database import empty_database
from tests.support.differences import find_difference
from tests.support.program_checks import Archive, CheckedModel, check_session
from tests.support.scripted_model import make_overflow, make_tool_call
from tests.support.scripted_wire import Reply, count_usage
from tests.support.waiting import wait_until

MAX_SESSIONS = 4
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
FINE = range(200, 300)
REFUSED = (400, 404, 409, 412, 422)  # what a client is told that asks for something impossible
WINDOW = 8192
EXCEPTION = re.compile(r"\w(Error|Exception)\b")  # in the reason of a run: our own fault
PROVIDER_FAILED = (502, 503, 504)
CHOICES = st.integers(0, 999)
SIZES = st.sampled_from([1, 40, 400])  # words of a message


def answer_by_default(request: dict[str, Any]) -> Reply:
    is_summary = "<transcript>" in str(request.get("messages", ""))
    return Reply(text=SUMMARY if is_summary else "Noted, and so on.")


def refuse_large_request(request: dict[str, Any]) -> Reply:
    """Refuse as a provider whose tokens are half as long as those of the estimate."""
    tokens = count_usage(Reply(), request)[0] * 2
    return make_overflow(tokens, WINDOW) if tokens > WINDOW else Reply(text="It fits.")


def name_alike(rows: Any) -> Any:
    """Number the branches of messages, which get new ids in each session."""
    numbers: dict[str, int] = {}
    for row in rows if isinstance(rows, list) else []:
        if row.get("branch"):
            row["branch"] = numbers.setdefault(row["branch"], len(numbers))
    return rows


class Conversations(RuleBasedStateMachine):
    """Each rule is one act over REST, or one accident; the invariants are checked after each."""

    scripted: CheckedModel  # set by run_programs()

    def __init__(self) -> None:
        super().__init__()
        self.archive = Archive()
        self.deleted: set[int] = set()
        self.count = 0

    @initialize(policy=st.sampled_from(["oneclaw", "chatcore", "neurolink", "lota"]))
    def begin(self, policy: str) -> None:
        self.user = User.objects.create(username="alice")
        provider = Provider.objects.create(
            name="scripted", protocol="openai", base_url=self.scripted.base_url, timeout_seconds=20
        )
        anthropic = Provider.objects.create(
            name="other", protocol="anthropic", base_url=self.scripted.anthropic_base_url
        )
        for each, name in ((provider, "one"), (anthropic, "two")):
            AiModel.objects.create(
                provider=each, name=name, context_window_size=WINDOW, supports_tools=True
            )
        self.scripted.default = answer_by_default
        self.create_session(policy)

    def teardown(self) -> None:
        turn_runner.stop()
        turn_rate.forget_turns()
        self.scripted.forget()
        empty_database()

    # What a program asks for

    def create_session(self, policy: str) -> None:
        body = {"policy": policy, "model": "scripted/one", "system_prompt": "Be brief."}
        assert self.ask("post", "sessions", body).status_code == 201

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Send a request as a web process of its own would get it."""
        client = APIClient(headers=headers)
        client.force_authenticate(self.user)
        return getattr(client, method)(f"/api/v1/{path}", body, format="json")

    def act(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        also: tuple[int, ...] = (),
        **headers: str,
    ) -> Any:
        answer = self.ask(method, path, body, **headers)
        assert answer.status_code in FINE or answer.status_code in (*REFUSED, *also), (
            answer.status_code,
            answer.content,
        )
        return answer

    def pick_session(self, choice: int) -> Session:
        sessions = list(Session.objects.order_by("created_at", "pk"))
        return sessions[choice % len(sessions)]

    def pick_message(self, choice: int, **filters: Any) -> Message | None:
        messages = list(Message.objects.filter(**filters).order_by("pk"))
        return messages[choice % len(messages)] if messages else None

    def name_words(self, size: int) -> str:
        self.count += 1
        return f"Message {self.count}. " + "a heron on a lake " * size

    def send(self, choice: int, *replies: Any, size: int = 1, **fields: Any) -> Any:
        self.scripted.script(*replies)
        session = self.pick_session(choice)
        body = {"content": self.name_words(size), **fields}
        return self.act(
            "post", f"sessions/{session.pk}/messages", body, also=(*PROVIDER_FAILED, 413)
        )

    # Acts

    @rule(choice=CHOICES, size=SIZES)
    def say(self, choice: int, size: int) -> None:
        self.send(choice, Reply(text=f"Answer {self.count}. " + "An egret. " * size), size=size)

    @rule(choice=CHOICES)
    def call_a_tool(self, choice: int) -> None:
        call = make_tool_call("calculate", {"expression": "6*7"}, id=f"c{self.count}")
        self.send(choice, Reply(tool_calls=[call]), Reply(text="It is 42."))

    @rule(choice=CHOICES)
    def wait_for_the_client(self, choice: int) -> None:
        calls = [make_tool_call("weather", {"city": city}, id=city) for city in ("Oslo", "Rome")]
        self.send(choice, Reply(tool_calls=calls), tools=[WEATHER])

    @rule(choice=CHOICES, cities=st.sets(st.sampled_from(["Oslo", "Rome"]), min_size=1))
    def bring_results(self, choice: int, cities: set[str]) -> None:
        """In time, twice, or late: after a cancel, an edit or a deletion."""
        session = self.pick_session(choice)
        results = [{"tool_call_id": city, "content": "It rains. " * 300} for city in sorted(cities)]
        self.act("post", f"sessions/{session.pk}/tool_results", {"results": results})

    @rule(choice=CHOICES)
    def cancel(self, choice: int) -> None:
        self.act("post", f"sessions/{self.pick_session(choice).pk}/cancel")

    @rule(choice=CHOICES, cut=st.integers(0, 4))
    def lose_the_provider(self, choice: int, cut: int) -> None:
        self.send(choice, Reply(chunks=["one ", "two ", "three ", "four "], cut_after=cut))

    @rule(choice=CHOICES)
    def overflow(self, choice: int) -> None:
        self.send(choice, refuse_large_request, Reply(text="Now it fits."))

    @rule(choice=CHOICES, size=SIZES)
    def edit(self, choice: int, size: int) -> None:
        message = self.pick_message(choice, role__in=["user", "assistant"])
        if message:
            body = {"content": self.name_words(size)}
            self.act("patch", f"messages/{message.pk}", body, also=PROVIDER_FAILED)

    @rule(choice=CHOICES)
    def regenerate(self, choice: int) -> None:
        message = self.pick_message(choice, role__in=["user", "assistant"])
        if message:
            self.act("post", f"messages/{message.pk}/regenerate", {}, also=PROVIDER_FAILED)

    @rule(choice=CHOICES)
    def restore(self, choice: int) -> None:
        message = self.pick_message(choice, branch__isnull=False)
        if message:
            self.act("post", f"messages/{message.pk}/restore")

    @rule(choice=CHOICES, method=st.sampled_from(["post", "delete"]))
    def pin(self, choice: int, method: str) -> None:
        message = self.pick_message(choice)
        if message:
            self.act(method, f"messages/{message.pk}/pin", also=(405,))

    @rule(choice=CHOICES)
    def delete(self, choice: int) -> None:
        message = self.pick_message(choice)
        if message is None:
            return
        rows = set(message.session.messages.values_list("pk", flat=True))
        if self.act("delete", f"messages/{message.pk}").status_code == 204:
            gone = rows - set(Message.objects.values_list("pk", flat=True))
            kinds = self.archive.find_roles(gone - {message.pk})
            assert kinds <= {"tool"}, "a deletion took more than the results of its calls"
            self.deleted |= gone

    @precondition(lambda self: Session.objects.count() < MAX_SESSIONS)
    @rule(choice=CHOICES)
    def fork(self, choice: int) -> None:
        message = self.pick_message(choice)
        if message:
            self.act("post", f"messages/{message.pk}/fork")

    @rule(choice=CHOICES, model=st.sampled_from(["scripted/one", "other/two"]))
    def switch_model(self, choice: int, model: str) -> None:
        self.act("patch", f"sessions/{self.pick_session(choice).pk}", {"model": model})

    @rule(choice=CHOICES, wait=st.booleans())
    def compact(self, choice: int, wait: bool) -> None:
        path = f"sessions/{self.pick_session(choice).pk}/compact"
        self.act("post", path, {"wait": wait})

    @rule(choice=CHOICES)
    def compact_while_it_is_edited(self, choice: int) -> None:
        """An edit comes between the loading of the messages and the install of the summary."""
        session = self.pick_session(choice)
        message = self.pick_message(choice, session=session, role="assistant", branch=None)

        def write_summary(_: Any) -> Reply:
            if message:
                self.act("patch", f"messages/{message.pk}", {"content": "Edited meanwhile."})
            connection.close()
            return Reply(text=SUMMARY)

        self.scripted.script(write_summary)
        self.act("post", f"sessions/{session.pk}/compact", {"wait": True})
        self.scripted.forget()

    @rule()
    def work_on_the_queue(self) -> None:
        for run in CompactionRun.objects.filter(status="queued"):
            engine.execute_run(run.pk)

    @rule(choice=CHOICES)
    def rewind(self, choice: int) -> None:
        runs = list(CompactionRun.objects.filter(status="applied").order_by("created_at"))
        if runs:
            self.act("post", f"compactions/{runs[choice % len(runs)].pk}/rewind")

    @rule(choice=CHOICES)
    def change_the_summary(self, choice: int) -> None:
        path = f"sessions/{self.pick_session(choice).pk}/summary"
        if choice % 2:
            self.act("patch", path, {"summary": self.name_words(4)})
        else:
            self.act("delete", path)

    @rule(choice=CHOICES, count=st.sampled_from([1, 6, 20]))
    def import_messages(self, choice: int, count: int) -> None:
        calls = [{"id": "look", "name": "look", "arguments": "{}"}]
        messages: list[dict[str, Any]] = [
            {"role": ("user", "assistant")[number % 2], "content": self.name_words(40)}
            for number in range(count)
        ]
        messages += [
            {"role": "assistant", "content": "", "tool_calls": calls},
            {"role": "tool", "content": "A gull.", "tool_call_id": "look", "tool_name": "look"},
        ]
        path = f"sessions/{self.pick_session(choice).pk}/messages/import"
        self.act("post", path, {"messages": messages})

    @precondition(lambda self: Session.objects.count() < MAX_SESSIONS)
    @rule(choice=CHOICES)
    def carry_over(self, choice: int) -> None:
        """What is exported, imported and exported again is the same."""
        session = self.pick_session(choice)
        first = self.ask("get", f"sessions/{session.pk}/export").json()
        imported = self.ask("post", "sessions/import", first)
        assert imported.status_code == 201, imported.content
        copy = imported.json()["id"]
        second = self.ask("get", f"sessions/{copy}/export").json()
        for part in ("messages", "context", "ledger"):
            difference = find_difference(name_alike(first[part]), name_alike(second[part]), part)
            assert difference is None, difference

    # Accidents

    @rule(choice=CHOICES)
    def die_before_the_answer(self, choice: int) -> None:
        """The process ends right after it has stored the question."""
        session = self.pick_session(choice)
        with mock.patch.object(turn_runner, "launch"):
            self.ask(
                "post",
                f"sessions/{session.pk}/messages",
                {"content": self.name_words(1)},
                Prefer="respond-async",
            )
        self.end_leases()

    @rule(choice=CHOICES)
    def be_taken_for_dead(self, choice: int) -> None:
        """A process is silent for longer than its lease, and wakes up when its turn is closed."""
        session = self.pick_session(choice)
        self.scripted.script(Reply(chunks=["one ", "two "], cut_after=1, hang=True))
        path, body = f"sessions/{session.pk}/messages", {"content": self.name_words(1)}
        answer = self.ask("post", path, body, Prefer="respond-async")
        if answer.status_code == 202:
            deltas = SessionEvent.objects.filter(session=session, name="message.delta")
            known = deltas.count()
            wait_until(lambda: deltas.count() > known, what="a word of the answer")
            self.end_leases()
            turn_runner.stop()
        self.scripted.forget()

    def end_leases(self) -> None:
        Turn.objects.filter(status="running").update(lease_until=LONG_AGO)
        lifecycle.recover_dead_turns()

    @rule(first=CHOICES, second=CHOICES, kinds=st.lists(st.integers(0, 5), min_size=2, max_size=3))
    def race(self, first: int, second: int, kinds: list[int]) -> None:
        """Several web processes are asked at once, about one session."""
        session = self.pick_session(first)
        message = self.pick_message(second, session=session, role="assistant")
        acts: list[Callable[[], Any]] = [
            lambda: self.send(first),
            lambda: message and self.act("patch", f"messages/{message.pk}", {"content": "Raced."}),
            lambda: self.act("post", f"sessions/{session.pk}/compact", {"wait": True}),
            lambda: self.act("post", f"sessions/{session.pk}/cancel"),
            lambda: message and self.act("post", f"messages/{message.pk}/restore"),
            lambda: message and self.act("post", f"messages/{message.pk}/regenerate", {}),
        ]

        def run_act(kind: int) -> None:
            try:
                acts[kind]()
            finally:
                connection.close()

        with ThreadPoolExecutor() as pool:
            list(pool.map(run_act, kinds))

    # Promises

    @invariant()
    def everything_holds(self) -> None:
        turn_runner.drain()
        self.archive.compare(self.deleted)
        for session in Session.objects.all():
            check_session(session)
        assert self.scripted.violations == []
        reasons = CompactionRun.objects.values_list("reason", "error")
        assert not [reason for reason in reasons if EXCEPTION.search(" ".join(reason))]
