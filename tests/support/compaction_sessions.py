"""Sessions for the compaction tests, filled to a size and continued over real HTTP."""

import threading
from typing import Any

from django.db import connection

from chatcore.base.runner import turn_runner
from chatcore.models import Message, Session, SessionEvent, Turn
from chatcore.turns import control
from compaction.models import CompactionPolicy, CompactionRun
from compaction.runs import engine
from tests.support.scripted_model import Received, ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.waiting import PATIENCE_SECONDS, wait_until

WINDOW, THRESHOLD, PROTECTED_TOKENS = 8192, 6963, 2048
SUMMARY = (
    "Alice plans a trip to Lisbon in May with a budget of 2,000 euros. "
    "The hotel is booked; the flight is still open."
)
NOTICE = "Conversation history has been automatically trimmed"
LARGE_USAGE = (7000, 50)  # usage of a request that is over the threshold of 6,963


def fill_session(session: Session, *, messages: int = 14, tokens: int = 485) -> None:
    """Store alternating messages of that many estimated tokens each, the user's first."""
    newest_message = session.messages.order_by("-seq").first()
    start = newest_message.seq if newest_message else 0
    rows = [
        Message(
            session=session,
            seq=seq,
            role="user" if seq % 2 else "assistant",
            content=f"{seq:04d} " + "lisbon trip " * (tokens * 4 // 12),
        )
        for seq in range(start + 1, start + messages + 1)
    ]
    Message.objects.bulk_create(rows)
    Session.objects.filter(pk=session.pk).update(
        last_seq=start + messages, message_count=session.messages.count()
    )
    session.refresh_from_db()


def say(session: Session, content: str = "And what about the flight?") -> Turn:
    """Run one complete turn over HTTP, and the check after it."""
    session.refresh_from_db()
    turn = control.start_turn(session, content=content)
    turn_runner.drain(PATIENCE_SECONDS)
    return control.wait_for_turn(turn.pk, PATIENCE_SECONDS)


def list_event_names(session: Session, prefix: str = "") -> list[str]:
    names = SessionEvent.objects.filter(session=session, name__startswith=prefix).order_by("seq")
    return list(names.values_list("name", flat=True))


def list_event_data(session: Session, name: str) -> list[dict[str, Any]]:
    return list(
        SessionEvent.objects.filter(session=session, name=name)
        .order_by("seq")
        .values_list("data", flat=True)
    )


def is_summary_call(request: Received) -> bool:
    return "<transcript>" in str(request.json.get("messages", ""))


def list_summary_calls(scripted: ScriptedModel) -> list[Received]:
    return [
        request
        for request in scripted.requests
        if request.path.endswith(("completions", "messages")) and is_summary_call(request)
    ]


def read_prompt(scripted: ScriptedModel, index: int = 0) -> str:
    """Return what a summary call says last: the transcript and the instruction."""
    text: str = list_summary_calls(scripted)[index].json["messages"][-1]["content"]
    return text


def list_chat_calls(scripted: ScriptedModel) -> list[Received]:
    return [
        request
        for request in scripted.requests
        if request.path.endswith(("completions", "messages")) and not is_summary_call(request)
    ]


def summarize_or_chat(summary: Reply | None = None, chat: Reply | None = None) -> Any:
    """Return a default that answers summary calls with one reply and the chat with the other."""
    summary_reply = summary or Reply(text=SUMMARY)
    chat_reply = chat or Reply(text="I would look for flights from Porto.")

    def choose_reply(request: dict[str, Any]) -> Reply:
        return summary_reply if "<transcript>" in str(request["messages"]) else chat_reply

    return choose_reply


def read_stored_messages(session: Session) -> list[tuple[Any, ...]]:
    """Return all columns of the messages, to compare them before and after."""
    return list(Message.objects.filter(session=session).order_by("seq").values_list())


def use_anthropic(session: Session, scripted: ScriptedModel) -> None:
    """Switch the session's provider to the Anthropic protocol."""
    assert session.model is not None
    provider = session.model.provider
    provider.protocol = "anthropic"
    provider.base_url = scripted.anthropic_base_url
    provider.api_key = "sk-ant-test"
    provider.save()


def use_policy(session: Session, **groups: object) -> Session:
    """Give the session a policy with these overrides."""
    CompactionPolicy.objects.update_or_create(name="mine", defaults={"overrides": groups})
    Session.objects.filter(pk=session.pk).update(policy="mine")
    return session


def run_queued_compactions() -> None:
    """Execute the queued runs, as the worker does."""
    for run_id in CompactionRun.objects.filter(status="queued").values_list("pk", flat=True):
        engine.execute_run(run_id)


def compact_in_thread(run: CompactionRun) -> threading.Thread:
    """Execute the run in another thread, as another worker would. The caller joins it."""

    def execute() -> None:
        engine.execute_run(run.pk)
        connection.close()

    worker = threading.Thread(target=execute)
    worker.start()
    return worker


def start_summary_in_thread(run: CompactionRun, scripted: ScriptedModel) -> threading.Thread:
    """Execute the run in another thread, and return when its summary call has begun."""
    worker = compact_in_thread(run)
    wait_until(lambda: list_summary_calls(scripted) or not worker.is_alive(), what="a summary")
    assert list_summary_calls(scripted), "the run ended without a summary"
    return worker


def compact_long_session(session: Session, scripted: ScriptedModel) -> CompactionRun:
    """Fill the session, exceed its threshold with a response, and return the run that followed."""
    fill_session(session)
    scripted.script(Reply(text="Noted.", usage=LARGE_USAGE))
    say(session)
    run_queued_compactions()
    session.refresh_from_db()
    return CompactionRun.objects.latest("created_at")


def read_system_text(request: Any) -> str:
    """Join the system texts of a request of either protocol."""
    system = request.json.get("system") or ""
    texts = [system] if isinstance(system, str) else [block["text"] for block in system]
    return "\n\n".join(
        [
            *texts,
            *(
                str(m["content"])
                for m in request.json["messages"]
                if m["role"] in ("system", "developer")
            ),
        ]
    )


def read_message_texts(request: Any) -> list[str]:
    """Return the text of each message of a request, without the system messages."""
    texts = []
    for message in request.json["messages"]:
        content = message["content"]
        if message["role"] not in ("system", "developer"):
            texts.append(
                content
                if isinstance(content, str)
                else "".join(block.get("text", "") for block in content or [])
            )
    return texts
