"""What a run does after a failed call of its summary model, by the kind of the failure.

What a retry changes is decided here alone, and what was learned is stored with what the chat's own
calls have learned of the model (`models_registry.models.Provider.learned`). Fields and limits that
a server refuses are learned below, where requests are sent (`chatcore/providers/adaptation.py`).
"""

from collections.abc import Callable, Collection, Sequence

from compaction.core.summary import SummaryFailed
from compaction.summaries import model_calls
from compaction.summaries.call_log import Filtered, NoAnswer, ProviderBusy, Refused, Throttled
from compaction.summaries.model_calls import CallFailed, CallResult

SPACE_GROWTH = 4  # how many times more room a model gets at first that only reasoned
SPACE_SHARE = 2  # then, and at most, half of the window
LONGEST_WAIT = 60.0  # seconds that a run waits for a provider before it is put back
# What was paid for would be lost then, so a run that has some of its answers waits longer.
LONGEST_WAIT_WITH_ANSWERS = 300.0
# The seconds that a run is put back for, where a busy provider does not say how long: at its first
# execution, at its second, and so on.
UNNAMED_RESTS = (60.0, 120.0, 300.0, 900.0)
# A run that has some of its answers waits so many seconds first, for example for a provider that
# allows one request a second.
UNNAMED_WAITS = (2.0, 10.0, 30.0)
# The most waits of a run whose length the provider says. One that always says "0" would otherwise
# be called without a pause.
MAX_NAMED_WAITS = 5
MAX_LEFT_OUT = 8  # messages of one run; where a filter refuses more, it is not about single ones

THOUGHTS_EXCEED = (
    "Thoughts, or a limit of its server, leave {model} no room for a summary in {tokens} output"
    " tokens. It is tried again once a day and when you ask for it. Choose another model for"
    " summaries, or allow this one a longer answer."
)
ONLY_CALLS = "The model calls tools that it does not have instead of writing a summary."


class RefusedCalls:
    """The failed calls of one run, and what they have taught.

    `thought_room` is how many tokens an answer needs with the model's thoughts, and
    `thoughts_exceed` how many of them it has used up before without an answer. `left_out_seqs` are
    the numbers of the messages that a filter refuses. `refuses_anything` says whether a harmless
    message is refused too; None if that was not tried. `has_changed_form` is True once other forms
    of it were tried, `has_repeated` once a refused call was made again, and `shortened` is how many
    times chunks were halved. `works_around` is True once a run looks for what is refused although
    nothing says so, and `words` is what the model wrote then. `tells_of_no_tools` is True for a
    model that calls tools that it does not have. `attempts` is how many times the run was begun.
    `wait` waits so many seconds.
    """

    def __init__(
        self,
        model: str,
        *,
        thought_room: int,
        thoughts_exceed: int = 0,
        attempts: int,
        wait: Callable[[float], None],
    ) -> None:
        self.model = model
        self.attempts = attempts
        self.thoughts_exceed = thoughts_exceed
        # There is no use in trying less again.
        self.thought_room = max(thought_room, thoughts_exceed)
        self.left_out_seqs: list[int] = []
        self.has_answers = False
        self.works_around = False
        self.words = ""
        self.tells_of_no_tools = False
        self.refuses_anything: bool | None = None
        self.has_changed_form = False
        self.has_repeated = False
        self.shortened = 0
        self._wait = wait
        self._waited = 0.0
        self._named_waits = 0
        self._unnamed_waits = 0
        self._room_cuts = 0
        self._spent_tokens = 0
        self._facts: dict[str, object] = {}

    def build_failure(self, error: CallFailed) -> NoAnswer:
        """Return the failure of a call that ended without an answer."""
        if error.is_throttled:
            return Throttled(str(error), retry_after=error.retry_after)
        if error.is_filtered:
            return Filtered(str(error))
        if error.is_refused and not error.is_final:
            return Refused(str(error))
        return NoAnswer(str(error), is_final=error.is_final)

    def require_rest(self, seqs: Collection[int]) -> None:
        """Raise Filtered if a filter refuses all of these messages: there is no summary of them."""
        if seqs and set(seqs) <= set(self.left_out_seqs):
            self.left_out_seqs = [seq for seq in self.left_out_seqs if seq not in seqs]
            raise Filtered("A filter of the provider refuses every message of this summary.")

    def note_temperature(self) -> None:
        """Note that the model refuses the temperature, which is kept if it answers without."""
        self._facts["summary_temperature"] = False

    def keep_output_limit(self, tokens: int) -> None:
        """Remember how long an answer of the model may be, for the calls of the chat too."""
        model_calls.keep_fact(self.model, output_limit=tokens)

    def note_chunk_limit(self, tokens: int) -> None:
        """Note how long a chunk may be, which is kept if the model summarizes such a one."""
        self._facts["summary_chunk_tokens"] = tokens

    def note_tool_call(self) -> None:
        """Note that the model calls tools where it is to summarize the conversation."""
        self._facts["summary_in_talk"] = False

    def note_invented_call(self) -> bool:
        """Note that the model calls a tool that the call does not have.

        The next prompt says that there are no tools. If the model then writes a summary, all later
        prompts say so. Return whether this prompt said so already: then no summary is requested
        of the model for a day.
        """
        was_told = self.tells_of_no_tools
        self.tells_of_no_tools = True
        self._facts["summary_without_tools"] = "unless told"
        if was_told:
            model_calls.keep_fact(self.model, summary_without_tools="always")
        return was_told

    def make_room(self, spent_tokens: int, window: int) -> None:
        """Let the next answer have more room than this, which thoughts took."""
        half = window // SPACE_SHARE
        self._room_cuts += 1
        self._spent_tokens = spent_tokens
        self.thought_room = min(half, spent_tokens * SPACE_GROWTH) if self._room_cuts == 1 else half

    def give_up_room(self, spent_tokens: int) -> SummaryFailed | None:
        """Return the failure of a model whose thoughts took all the room that it can have.

        None if a retry is due: no smaller room was tried in this run, and none in an earlier one.
        """
        if self._room_cuts < 2 and self.thoughts_exceed < spent_tokens:
            return None
        model_calls.keep_fact(self.model, thoughts_exceed=spent_tokens)
        return self.explain_thoughts(spent_tokens)

    def explain_thoughts(self, tokens: int) -> SummaryFailed:
        """Return the failure of a model whose thoughts take so many tokens."""
        return SummaryFailed(THOUGHTS_EXCEED.format(model=self.model, tokens=f"{tokens:,}"))

    def note_answer(self, answer: CallResult) -> None:
        """Remember what helped, now that there is an answer."""
        if self.thoughts_exceed:
            self._facts["thoughts_exceed"] = None
        self.has_answers = True
        self._waited = 0.0
        self._named_waits = 0
        self._unnamed_waits = 0
        if self._room_cuts:
            needed_tokens = 2 * answer.output_tokens
            # Some providers do not count thoughts: then the room that helped is all that is known.
            if needed_tokens > self._spent_tokens:
                self.thought_room = min(self.thought_room, needed_tokens)
            self._facts["thought_room"] = self.thought_room
            self._room_cuts = 0
        if self._facts:
            model_calls.keep_fact(self.model, **self._facts)
            self._facts = {}

    def wait_for_provider(self, failure: Throttled) -> None:
        """Wait as long as the provider asks.

        Raises ProviderBusy if that is too long to wait for in a run, or if it does not say how long
        and the run has no answers yet, or has waited several times. A provider that still refuses
        when its time is over has not said how long.
        """
        seconds = failure.retry_after
        self._named_waits += seconds is not None
        if seconds is None or self._named_waits > MAX_NAMED_WAITS:
            seconds = max(seconds or 0.0, self._choose_unnamed_wait(failure))
        longest = LONGEST_WAIT_WITH_ANSWERS if self.has_answers else LONGEST_WAIT
        if self._waited + seconds >= longest:
            raise ProviderBusy(str(failure), seconds=max(seconds, 1.0))
        self._waited += seconds
        self._wait(seconds)

    def _choose_unnamed_wait(self, failure: Throttled) -> float:
        if not self.has_answers or self._unnamed_waits >= len(UNNAMED_WAITS):
            rest = UNNAMED_RESTS[min(max(self.attempts, 1), len(UNNAMED_RESTS)) - 1]
            raise ProviderBusy(str(failure), seconds=rest)
        self._unnamed_waits += 1
        return UNNAMED_WAITS[self._unnamed_waits - 1]


def find_refused(
    pieces: Sequence[str], is_refused: Callable[[Sequence[str]], bool], *, is_certain: bool
) -> int | None:
    """Return which of the pieces a filter refuses; None if it is none of them alone.

    Together they were refused. `is_certain` says that nothing else stood beside them.
    """
    low, high = 0, len(pieces)
    while high - low > 1:
        middle = (low + high) // 2
        if is_refused(pieces[low:middle]):
            high, is_certain = middle, True
        elif is_certain or is_refused(pieces[middle:high]):
            low = middle
        else:
            return None  # each half is taken: they are too long together
    return low if is_certain or is_refused(pieces[low:high]) else None


def describe_left_out(seqs: Sequence[int]) -> str:
    """Return the sentence about the messages that are in no summary; empty if there are none."""
    if not seqs:
        return ""
    numbers = ", ".join(map(str, sorted(set(seqs))))
    if len(set(seqs)) == 1:
        return (
            f"Message {numbers} is not part of this summary: a filter of the provider refuses it."
        )
    return (
        f"Messages {numbers} are not part of this summary: a filter of the provider refuses them."
    )


def add_note(summary: str, seqs: Sequence[int]) -> str:
    """Return a summary that says which messages are not in it."""
    note = describe_left_out(seqs)
    return summary if not note or note in summary else f"{summary}\n\n{note}".strip()
