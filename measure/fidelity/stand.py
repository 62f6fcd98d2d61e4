"""The place of the measurements: sessions under a policy, and what the model is sent of them.

Everything goes the public ways: the import, the engine of compaction, whole turns to a provider on
loopback, and the REST API. Times are those of the processor in this process, with the scripted
provider's, so that they hold on a busy machine; a database server's would not be in them.
"""

import json
import statistics
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from rest_framework.test import APIClient

from chatcore.models import Session
from chatcore.transfer import importer
from chatcore.turns import control, deletion
from compaction.models import CompactionRun
from compaction.runs import engine
from measure.fidelity.facts import TextIndex
from measure.fidelity.summarizers import read_summary_prompt
from measure.fidelity.talks import CHARS_PER_TOKEN, Talk
from models_registry.models import AiModel, Provider
from tests.support.scripted_model import ScriptedModel

FULL, EMPTY = "full context", "empty context"
HUGE_WINDOW = 100_000_000  # tokens; nothing is ever compacted in it
LAST_QUESTION = "Good. Shall we go on?"
# A measurement does not wait between retries, and nothing else of a policy is changed.
OVERRIDES: dict[str, Any] = {"summary": {"backoff": []}}


@dataclass(frozen=True)
class Sent:
    """What the provider was sent in one turn: all texts but the question, and their tokens."""

    text: str
    tokens: int
    milliseconds: float  # of the whole turn

    @property
    def index(self) -> TextIndex:
        """Return the text, ready to be searched."""
        return TextIndex(self.text)


@dataclass
class Costs:
    """What a preset spent: runs, their milliseconds with the calls on loopback, and tokens."""

    runs: int = 0
    milliseconds: float = 0.0
    tokens: int = 0
    applied: int = 0
    reasons: list[str] = field(default_factory=list)

    def add_run(self, run: CompactionRun, milliseconds: float) -> None:
        """Add a run that has ended."""
        self.runs += 1
        self.milliseconds += milliseconds
        self.tokens += run.input_tokens + run.output_tokens
        self.applied += run.status == CompactionRun.Status.APPLIED
        if run.reason:
            self.reasons.append(run.reason)

    @property
    def run_milliseconds(self) -> float:
        """Return the milliseconds of one run."""
        return self.milliseconds / self.runs if self.runs else 0.0


class Stand:
    """Creates sessions, compacts them and asks in them."""

    def __init__(self, scripted: ScriptedModel) -> None:
        self.scripted = scripted
        self.user = User.objects.create_user("fidelity")
        self.provider = Provider.objects.create(
            name="fidelity", protocol=Provider.Protocol.OPENAI, base_url=scripted.base_url
        )
        self.client = APIClient(SERVER_NAME="localhost")
        self.client.force_authenticate(self.user)

    def create_session(self, policy: str, window: int, talk: Talk | None = None) -> Session:
        """Create a session with a window of so many tokens, and the messages of a talk.

        `policy` may be FULL or EMPTY: no compaction at all, and for EMPTY no messages either.
        """
        is_measured = policy not in (FULL, EMPTY)
        size = window if is_measured else HUGE_WINDOW
        model, _ = AiModel.objects.get_or_create(
            provider=self.provider,
            name=f"window-{size}",
            defaults={"context_window_size": size, "supports_tools": True},
        )
        session = Session.objects.create(
            owner=self.user, model=model, policy=policy if is_measured else "oneclaw"
        )
        if talk is not None and policy != EMPTY:
            self.add_messages(session, talk.messages)
        return session

    def add_messages(self, session: Session, messages: list[dict[str, Any]]) -> None:
        """Append messages, as an import does."""
        if messages:
            importer.import_messages(session, messages)

    def compact(self, session: Session, costs: Costs) -> CompactionRun:
        """Compact the session now, in this thread, and add what it took to the costs."""
        start = time.process_time()
        run = engine.compact_now(
            session.pk, trigger=CompactionRun.Trigger.MANUAL, overrides=OVERRIDES
        )
        costs.add_run(run, (time.process_time() - start) * 1000)
        return run

    def grow(self, session: Session, talk: Talk, cycles: int, costs: Costs) -> None:
        """Add the talk in so many parts, and compact after each of them."""
        for messages in talk.split_messages(cycles):
            self.add_messages(session, messages)
            self.compact(session, costs)

    def ask(self, session: Session, question: str = LAST_QUESTION) -> Sent:
        """Run a whole turn and return what the provider was sent; then delete the turn again."""
        first = len(self.scripted.requests)
        session.refresh_from_db()
        last_seq = session.last_seq
        start = time.process_time()
        turn = control.wait_for_turn(control.start_turn(session, content=question).pk, timeout=60)
        milliseconds = (time.process_time() - start) * 1000
        requests = [
            request.json
            for request in self.scripted.requests[first:]
            if "messages" in request.json and read_summary_prompt(request.json) is None
        ]
        assert requests, f"no request was sent: {turn.status}"
        del self.scripted.requests[:]
        for message in session.messages.filter(seq__gt=last_seq).order_by("-seq"):
            deletion.delete_message(message)
        text = "\n".join(_list_texts(requests[0])).replace(question, "")
        return Sent(text, len(text) // CHARS_PER_TOKEN, milliseconds)

    def list_lines(self, session: Session) -> list[tuple[str, str]]:
        """Return the kinds and texts of the ledger's current lines that may be sent."""
        lines: list[dict[str, Any]] = []
        url = f"/api/v1/sessions/{session.pk}/ledger?status=current"
        while url:
            page = self._get(url)
            lines += page["results"]
            url = page["next"]
        return [(line["kind"], line["text"]) for line in lines if line["holds"] != "answer"]

    def time_preview(self, session: Session, *, times: int = 5) -> float:
        """Return the median of the milliseconds that the next request takes over REST."""
        values = []
        for _ in range(times):
            start = time.process_time()
            self._get(f"/api/v1/sessions/{session.pk}/context/preview")
            values.append((time.process_time() - start) * 1000)
        return statistics.median(values)

    def search(self, session: Session, question: str, limit: int = 10) -> tuple[Any, float]:
        """Return the hits for a question, as REST has them, and the milliseconds."""
        start = time.process_time()
        body = self._get(f"/api/v1/sessions/{session.pk}/search", q=question, limit=limit)
        return body["results"], (time.process_time() - start) * 1000

    def _get(self, path: str, **params: Any) -> Any:
        response = self.client.get(path, params)
        assert response.status_code == 200, (path, response.status_code, response.content[:300])
        return json.loads(response.content)


def _list_texts(request: dict[str, Any]) -> Iterable[str]:
    for message in request["messages"]:
        content = message["content"]
        if isinstance(content, str):
            yield content
        else:
            yield from (block.get("text", "") for block in content or [])
        yield from (call["function"]["arguments"] for call in message.get("tool_calls") or [])
