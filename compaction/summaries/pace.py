"""How long the calls of a summary may take, by the measured speed of their model."""

from dataclasses import dataclass

from compaction.models import ModelRatio
from compaction.sessions.calibration import save_ratio

NEWEST_WEIGHT = 0.4
# A shorter prompt, or answer, says more of the network than of the model.
MIN_PROMPT_TOKENS = 200
MIN_ANSWER_TOKENS = 20
MIN_SECONDS = 0.001

# No call waits longer, however slow the model is: a run has half an hour for all of its calls.
MAX_CALL_SECONDS = 900.0
MARGIN = 2.0  # a machine that is busy is slower than it was when it was measured


@dataclass(frozen=True, kw_only=True)
class Speed:
    """What a model was measured at, in tokens a second."""

    prompt: float
    answer: float

    def estimate_seconds(self, prompt_tokens: float, answer_tokens: float) -> float:
        """Return how long a call of this size takes."""
        return prompt_tokens / self.prompt + answer_tokens / self.answer


@dataclass(frozen=True, kw_only=True)
class CallTimes:
    """The sizes of one finished call, and how long its two parts took.

    `prompt_tokens` leaves out what came from a cache.
    """

    prompt_tokens: int
    prompt_seconds: float
    answer_tokens: int
    answer_seconds: float


def load_speed(model: str) -> Speed | None:
    """Return the measured speed of a model (`provider/name`); None before the first call."""
    row = ModelRatio.objects.filter(model=model, prompt_speed__gt=0, answer_speed__gt=0).first()
    if row is None or row.prompt_speed is None or row.answer_speed is None:
        return None
    return Speed(prompt=row.prompt_speed, answer=row.answer_speed)


def learn_speed(model: str, times: CallTimes) -> None:
    """Move a model's speed towards that of a call, unless the call was too short to tell."""
    if times.prompt_tokens < MIN_PROMPT_TOKENS or times.answer_tokens < MIN_ANSWER_TOKENS:
        return
    prompt_speed = times.prompt_tokens / max(MIN_SECONDS, times.prompt_seconds)
    answer_speed = times.answer_tokens / max(MIN_SECONDS, times.answer_seconds)
    known_speed = load_speed(model)
    if known_speed:
        prompt_speed = _mix(known_speed.prompt, prompt_speed)
        answer_speed = _mix(known_speed.answer, answer_speed)
    save_ratio(model, prompt_speed=prompt_speed, answer_speed=answer_speed)


def learn_timeout(
    model: str, *, prompt_tokens: float, answer_tokens: float, seconds: float
) -> Speed:
    """Store and return a speed at which a call that was stopped would just have ended in time."""
    prompt_tokens, answer_tokens = max(1.0, prompt_tokens), max(1.0, answer_tokens)
    known_speed = load_speed(model) or Speed(
        prompt=2 * prompt_tokens / seconds, answer=2 * answer_tokens / seconds
    )
    expected_seconds = known_speed.estimate_seconds(prompt_tokens, answer_tokens)
    factor = min(1.0, expected_seconds / seconds)
    speed = Speed(prompt=known_speed.prompt * factor, answer=known_speed.answer * factor)
    save_ratio(model, prompt_speed=speed.prompt, answer_speed=speed.answer)
    return speed


def _mix(known_speed: float, new_speed: float) -> float:
    return known_speed + NEWEST_WEIGHT * (new_speed - known_speed)


class Pace:
    """The deadlines of one run's calls.

    `floor` is the policy's own limit of seconds, which a fast model never needs. A model that was
    never measured gets it; one that is slower gets twice the time that a call should take. A call
    that was stopped is not repeated as it was: the next one is half as long.
    """

    def __init__(self, model: str, *, floor: float) -> None:
        self.model = model
        self.floor = floor
        self.speed: Speed | None = load_speed(model)
        self._max_prompt_tokens: float | None = None

    @property
    def ceiling(self) -> float:
        """The seconds that no call may exceed."""
        return max(self.floor, MAX_CALL_SECONDS)

    def choose_deadline(self, prompt_tokens: float, answer_tokens: float) -> float:
        """Return the seconds that a call of this size may take."""
        if self.speed is None:
            return self.floor
        expected_seconds = self.speed.estimate_seconds(prompt_tokens, answer_tokens)
        return min(self.ceiling, max(self.floor, MARGIN * expected_seconds))

    def choose_first_wait(self, prompt_tokens: float) -> float:
        """Return the seconds that the first word of a call may take; 0 where nothing is known."""
        return MARGIN * prompt_tokens / self.speed.prompt if self.speed else 0.0

    def limit_prompt_tokens(self, answer_tokens: float) -> float | None:
        """Return the most prompt tokens of a call that ends in time; None without a limit."""
        limits = []
        if self._max_prompt_tokens is not None:
            limits.append(self._max_prompt_tokens)
        if self.speed is not None:
            reading_seconds = self.ceiling - answer_tokens / self.speed.answer
            limits.append(max(0.0, reading_seconds * self.speed.prompt))
        return min(limits, default=None)

    def limit_answer_tokens(self) -> float | None:
        """Return the most tokens of an answer, thoughts included; None where nothing is known."""
        return None if self.speed is None else self.ceiling / MARGIN * self.speed.answer

    def note_timeout(self, *, prompt_tokens: float, answer_tokens: float, seconds: float) -> None:
        """Make the next call half as long as one that did not end, and remember the speed."""
        self._max_prompt_tokens = prompt_tokens / 2
        self.speed = learn_timeout(
            self.model, prompt_tokens=prompt_tokens, answer_tokens=answer_tokens, seconds=seconds
        )

    def estimate_seconds(self, prompt_tokens: float, answer_tokens: float) -> int | None:
        """Return how long calls of this size together take; None where nothing was measured."""
        if self.speed is None:
            return None
        return max(1, round(self.speed.estimate_seconds(prompt_tokens, answer_tokens)))

    def describe_slowness(self) -> str:
        """Return why no call can end in time."""
        if self.speed is None:
            return "The model did not finish a summary in time."
        return (
            f"The model reads {self.speed.prompt:.3g} and writes {self.speed.answer:.3g} tokens a"
            f" second: no summary would be finished within {self.ceiling:.0f} seconds."
        )
