"""What must hold after each step of a random program: the promises of a stored conversation."""

from collections import defaultdict
from typing import Any

from chatcore.context import builder
from chatcore.models import Message, Session, Turn
from chatcore.sessions import verification
from tests.support.scripted_model import Received, ScriptedModel
from tests.support.scripted_wire import Reply, count_usage
from tests.support.strict_servers import UNKNOWN_SERVERS, find_refusals

ENDS = ("turn.completed", "turn.failed", "turn.cancelled")
# What is written once and never again, whatever happens to the message.
ORIGINAL_COLUMNS = ("session_id", "seq", "role", "content", "tool_calls", "tool_call_id")


class Archive:
    """Remembers every finished message that was ever stored, and what was deleted on purpose."""

    def __init__(self) -> None:
        self.originals: dict[int, tuple[Any, ...]] = {}

    def find_roles(self, pks: set[int]) -> set[str]:
        """Return the roles of these messages."""
        return {self.originals[pk][2] for pk in pks}

    def compare(self, deleted: set[int]) -> None:
        """Check that all that was stored is there unchanged, and remember what is new."""
        for pk in deleted:
            self.originals.pop(pk, None)
        finished = Message.objects.exclude(status=Message.Status.STREAMING)
        stored = {row[0]: row[1:] for row in finished.values_list("pk", *ORIGINAL_COLUMNS)}
        lost = self.originals.keys() - stored.keys()
        assert not lost, f"messages are gone: {lost}"
        changed = {pk for pk, row in self.originals.items() if stored[pk] != row}
        assert not changed, f"messages were changed: {[stored[pk] for pk in changed]}"
        assert not deleted & stored.keys(), "a deleted message is back"
        self.originals = stored


def check_session(session: Session) -> None:
    """Check the stored rows, the next request, and the event log of one session."""
    session.refresh_from_db()
    assert list(verification.find_violations(session)) == []
    turns = list(session.turns.all())
    assert sum(turn.status in Turn.OPEN_STATUSES for turn in turns) <= 1
    request = builder.build_request(session)
    if request.messages:
        assert find_refusals(request) == []
    check_events(session, turns)


def check_events(session: Session, turns: list[Turn]) -> None:
    """Check that the log has an end for each turn, and the words of each answer."""
    events = list(session.events.order_by("seq").values_list("seq", "name", "data"))
    seqs = [seq for seq, _, _ in events]
    assert len(set(seqs)) == len(seqs)
    assert not seqs or seqs[-1] <= session.last_event_seq
    begun = {data["turn"] for _, name, data in events if name == "turn.started"}
    ended = {data["turn"] for _, name, data in events if name in ENDS}
    over = {str(turn.pk) for turn in turns if turn.status not in Turn.OPEN_STATUSES}
    assert (begun & over) <= ended, "a replay shows a turn that never ends"
    replay_words(session, events)


def replay_words(session: Session, events: list[tuple[int, str, Any]]) -> None:
    """Check that whoever applies the deltas has read each stored answer."""
    words: dict[int, str] = defaultdict(str)
    for _, name, data in events:
        if name == "message.delta":
            text = words[data["message"]]
            assert data["offset"] <= len(text), "a replay misses words"
            words[data["message"]] = text[: data["offset"]] + data["text"]
    for message in session.messages.filter(pk__in=words).exclude(status="streaming"):
        assert words[message.pk] == message.content, "a replay differs from the stored answer"


class CheckedModel(ScriptedModel):
    """A provider that refuses what real ones refuse, and keeps the refusals."""

    def __init__(self) -> None:
        super().__init__()
        self.window = 8192
        self.violations: list[str] = []

    def take_reply(self, request: Received) -> Reply:
        """Check a request before it is answered."""
        if "completions" in request.path:
            self.violations += UNKNOWN_SERVERS["openai"].find_refusals(request.json)
        tokens = count_usage(Reply(), request.json)[0]
        if tokens > self.window:
            self.violations.append(f"a request of {tokens} tokens for a window of {self.window}")
        self.requests.clear()
        return super().take_reply(request)

    def forget(self) -> None:
        """Drop the replies that nobody asked for."""
        with self._lock:
            self._replies.clear()
