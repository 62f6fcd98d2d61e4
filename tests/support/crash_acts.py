"""What a process does when it is hurt at a crash point, and what must hold afterwards."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from chatcore.base.runner import turn_runner
from chatcore.models import ContextRevision, Message, Session, SessionEvent, Turn
from chatcore.sessions import deletion as session_deletion
from chatcore.sessions import verification
from chatcore.sessions.deletion import purge_due_sessions
from chatcore.transfer import importer
from chatcore.turns import control, deletion, forks, lifecycle, versions
from chatcore.turns.client_tools import ClientToolResult
from chatcore.turns.messages import pin_message
from compaction.models import OPEN_STATUSES, CompactionRun
from compaction.runs import engine, tasks
from models_registry.models import AiModel
from tests.support.compaction_sessions import SUMMARY, fill_session, use_policy
from tests.support.scripted_model import make_tool_call
from tests.support.scripted_wire import Reply
from tests.support.waiting import wait_until

CHUNKS = ["It ", "is ", "forty", "-two", ", no ", "more", " and ", "no less."]
ANSWER = "".join(CHUNKS)
FAILING = "Its summaries fail"  # the title of such a session
CLIENT_TOOL: dict[str, Any] = {"name": "look", "parameters": {}}
TURN_SECONDS = 30  # for a turn; one whose end cannot be stored stays open until its lease ends
IMPORTED = [{"role": "user", "content": f"{number}: " + "Carp. " * 20} for number in range(200)]


def reply_to_acts(request: dict[str, Any]) -> Reply:
    """Answer as the provider of all acts, by what the request asks for."""
    text = str(request["messages"])
    newest = request["messages"][-1]
    if "<transcript>" in text and has_failing_summaries():
        return Reply(status=500, text="No.")
    if "<transcript>" in text:
        return Reply(text=SUMMARY, usage=(100, 20))
    if newest["role"] == "tool" or "seven" not in str(newest["content"]):
        # What is cancelled takes longer than it takes a busy machine to cancel it.
        is_cancelled = str(newest["content"]).endswith(SENT_AGAIN["cancel"])
        return Reply(chunks=CHUNKS, chunk_delay=0.5 if is_cancelled else 0.03)
    if CLIENT_TOOL["name"] in str(request.get("tools")):
        return Reply(tool_calls=[make_tool_call("look", {"at": "the sum"}, id="c1")])
    return Reply(tool_calls=[make_tool_call("calculate", {"expression": "6*7"}, id="c1")])


def has_failing_summaries() -> bool:
    """Return True if summaries of the session fail; the provider's threads ask."""
    try:
        return Session.objects.filter(title=FAILING).exists()
    finally:
        connection.close()


@dataclass
class Stage:
    """A session, and what whoever acts on it was told: `sent` are questions that were accepted."""

    session_id: UUID
    sent: list[str] = field(default_factory=list)
    tell: Callable[[str], None] = lambda _: None

    @property
    def session(self) -> Session:
        return Session.objects.get(pk=self.session_id)

    def send(self, content: str, **options: Any) -> Turn:
        turn = control.start_turn(self.session, content=content, idempotency_key=content, **options)
        self.sent.append(content)
        self.tell(content)
        return turn

    def get_message(self, seq: int) -> Message:
        return Message.objects.get(session=self.session_id, seq=seq)


def talk(stage: Stage) -> None:
    """Ask what the model answers after a call of a tool."""
    control.wait_for_turn(stage.send("How much is six times seven?").pk, TURN_SECONDS)


def use_client_tool(stage: Stage) -> None:
    turn = stage.send("How much is six times seven, by your tool?", tools=[CLIENT_TOOL])
    if not wait_until_waiting(turn):
        return
    results = [ClientToolResult(tool_call_id="c1", content="42")]
    control.submit_tool_results(stage.session, results)
    control.wait_for_turn(turn.pk, TURN_SECONDS)


def cancel(stage: Stage) -> None:
    turn = stage.send("Go on.")
    wait_until(lambda: SessionEvent.objects.filter(session=stage.session_id, message__gt=0))
    control.cancel_turn(stage.session_id)
    control.wait_for_turn(turn.pk, TURN_SECONDS)


def cancel_waiting(stage: Stage) -> None:
    turn = stage.send("How much is six times seven, by your tool?", tools=[CLIENT_TOOL])
    wait_until_waiting(turn)
    control.cancel_turn(stage.session_id)


def edit(stage: Stage) -> None:
    """Ask, ask otherwise, have it answered again, and go back."""
    control.wait_for_turn(stage.send("Hello.").pk, TURN_SECONDS)
    question = stage.session.messages.filter(role="user").order_by("seq").last()
    assert question is not None
    control.wait_for_turn(stage.send("Hello again.", replaces=question).pk, TURN_SECONDS)
    again = control.regenerate_answer(stage.session.messages.order_by("-seq")[0])
    control.wait_for_turn(again.pk, TURN_SECONDS)
    versions.restore_version(Message.objects.get(pk=question.pk))


def compact(stage: Stage) -> None:
    engine.request_run(stage.session_id, trigger="manual")
    run = CompactionRun.objects.get(session=stage.session_id)
    engine.execute_run(run.pk)


def compact_and_rewind(stage: Stage) -> None:
    compact(stage)
    run = CompactionRun.objects.get(session=stage.session_id)
    if run.status == "applied":
        engine.rewind_run(run)


def compact_in_vain(stage: Stage) -> None:
    """Compact with a summary model that fails."""
    compact(stage)


def compact_too_little(stage: Stage) -> None:
    Message.objects.filter(session=stage.session_id, seq__gt=1).delete()
    Session.objects.filter(pk=stage.session_id).update(message_count=1)
    compact(stage)


def delete_message(stage: Stage) -> None:
    deletion.delete_message(stage.get_message(3))


def delete_session(stage: Stage) -> None:
    session_deletion.delete_session(stage.session_id)


def import_session(stage: Stage) -> None:
    data = {"format": "chatcore-session-1", "messages": IMPORTED}
    importer.import_session(stage.session.owner, data)


def import_messages(stage: Stage) -> None:
    importer.import_messages(stage.session, IMPORTED)


def fork(stage: Stage) -> None:
    forks.fork_session(stage.get_message(4))


def pin(stage: Stage) -> None:
    pin_message(stage.get_message(3))


ACTS: dict[str, Callable[[Stage], None]] = {
    act.__name__: act
    for act in (
        talk,
        use_client_tool,
        cancel,
        cancel_waiting,
        edit,
        compact,
        compact_and_rewind,
        compact_in_vain,
        compact_too_little,
        delete_message,
        delete_session,
        import_session,
        import_messages,
        fork,
        pin,
    )
}
SENT_AGAIN = {"talk": "How much is six times seven?", "cancel": "Go on."}


def wait_until_waiting(turn: Turn) -> bool:
    """Wait until the turn waits for its client; return False if it is over instead."""
    return control.wait_for_turn(turn.pk, TURN_SECONDS).status == Turn.Status.WAITING


def prepare_stage(act: str, owner: User, model: AiModel) -> Stage:
    """Store a session for the act, in place of all earlier ones."""
    Session.all_objects.all().delete()
    is_full = act.startswith("compact")
    session = Session.objects.create(owner=owner, model=model, title="Sums")
    if act == "compact_in_vain":
        use_policy(session, summary={"retries": 0})
        Session.objects.filter(pk=session.pk).update(title=FAILING)
    fill_session(session, messages=14 if is_full else 6, tokens=500 if is_full else 20)
    return Stage(session.pk)


def restart() -> None:
    """Do what the processes do that live on, or are started again, when leases are over."""
    long_ago = timezone.now() - timedelta(hours=1)
    Turn.objects.filter(status=Turn.Status.RUNNING).update(lease_until=long_ago)
    Session.all_objects.exclude(discard_at=None).update(discard_at=long_ago)
    lifecycle.recover_dead_turns()
    lifecycle.mend_streaming_messages()
    for run_id in list(CompactionRun.objects.filter(status="running").values_list("pk", flat=True)):
        tasks.requeue_run(run_id)
    CompactionRun.objects.update(enqueued_at=long_ago, created_at=long_ago)
    engine.resend_lost_runs()
    _execute_open_runs()
    purge_due_sessions()


def go_on(stage: Stage, act: str) -> None:
    """Send what may not have arrived again, and ask once more."""
    if not Session.objects.filter(pk=stage.session_id).exists():
        return
    control.cancel_turn(stage.session_id)  # one that waits for its client
    if act in SENT_AGAIN:
        control.wait_for_turn(stage.send(SENT_AGAIN[act]).pk, TURN_SECONDS)
    turn = control.wait_for_turn(stage.send("And now?").pk, TURN_SECONDS)
    assert turn.status == Turn.Status.COMPLETED, turn.error
    turn_runner.drain()  # the check after an answer, which no reply waits for, may request a run
    _execute_open_runs()


def _execute_open_runs() -> None:
    open_runs = CompactionRun.objects.filter(status__in=OPEN_STATUSES)
    for run_id in list(open_runs.values_list("pk", flat=True)):
        engine.execute_run(run_id)


def check(stage: Stage, act: str) -> None:
    """Check all that must hold after any fault at any place."""
    for session in Session.objects.all():
        assert verification.check_session(session.pk) == []
    assert not Session.all_objects.exclude(discard_at=None).exists(), "a draft was left"
    assert not Turn.objects.filter(status__in=Turn.OPEN_STATUSES).exists()
    assert not CompactionRun.objects.filter(status__in=OPEN_STATUSES).exists()
    messages = Message.objects.filter(session=stage.session_id)
    if act == "delete_session":
        is_there = Session.objects.filter(pk=stage.session_id).exists()
        assert messages.exists() == is_there
        return
    _check_words(stage, list(messages.order_by("seq")))
    _check_turns(stage)
    _check_runs(stage)
    _check_other_sessions(stage)


def _check_words(stage: Stage, messages: list[Message]) -> None:
    """What was acknowledged is stored once; what was shown is stored; nothing is stored twice."""
    contents = Counter(message.content for message in messages if message.role == "user")
    assert set(contents.values()) <= {1}, "a question is stored twice"
    assert set(stage.sent) <= contents.keys(), "a question that was accepted is gone"
    shown: dict[int, str] = {}
    events = SessionEvent.objects.filter(session=stage.session_id).order_by("seq")
    for event in events:
        if event.name == "message.delta":
            assert event.data["offset"] == len(shown.get(event.data["message"], ""))
            shown[event.data["message"]] = shown.get(event.data["message"], "") + event.data["text"]
    for message in messages:
        assert message.status != Message.Status.STREAMING
        assert message.content.startswith(shown.get(message.pk, "")), "words that were shown"
        if message.role == "assistant" and message.turn_id:
            assert ANSWER.startswith(message.content), "words in another order, or twice"
    completed = Counter(
        event.data["message"] for event in events if event.name == "message.completed"
    )
    assert set(completed.values()) <= {1}


def _check_turns(stage: Stage) -> None:
    """Each turn ended once, and has one answer at most."""
    names = Counter(
        (event.data["turn"], "start" if event.name == "turn.started" else "end")
        for event in SessionEvent.objects.filter(session=stage.session_id, name__startswith="turn.")
        if event.name != "turn.waiting"
    )
    for turn in Turn.objects.filter(session=stage.session_id):
        assert (names[str(turn.pk), "start"], names[str(turn.pk), "end"]) == (1, 1)
        answers = turn.messages.filter(role="assistant", status="complete", tool_calls=[])
        assert answers.count() <= 1
        if turn.status == Turn.Status.COMPLETED:
            assert answers.get().content == ANSWER


def _check_runs(stage: Stage) -> None:
    """Each run was announced and installed once, and paid once unless its worker died."""
    events = SessionEvent.objects.filter(session=stage.session_id, name__startswith="compaction.")
    counts = Counter((event.name, event.data["run"]) for event in events)
    assert set(counts.values()) <= {1}
    runs = list(CompactionRun.objects.filter(session=stage.session_id))
    installed = ContextRevision.objects.filter(session=stage.session_id, source="compaction")
    assert installed.count() == sum(run.status in ("applied", "rewound") for run in runs)
    for run in runs:
        assert run.provider_calls <= 1 + run.deaths


def _check_other_sessions(stage: Stage) -> None:
    """An import or a fork is there as a whole, or not at all."""
    for session in Session.objects.exclude(pk=stage.session_id):
        assert session.messages.count() in (len(IMPORTED), 4)
    imported = Message.objects.filter(session=stage.session_id, content__contains="Carp.").count()
    assert imported in (0, len(IMPORTED))


def stop_turns() -> None:
    """End what still runs in this process."""
    turn_runner.stop()
