"""Learn how many tokens a second a language model reads and writes."""

from dataclasses import dataclass

from compaction.models import ModelRatio
from compaction.sessions.calibration import save_ratio

NEWEST_WEIGHT = 0.4
# A shorter prompt, or answer, says more of the network than of the model.
MIN_PROMPT_TOKENS = 200
MIN_ANSWER_TOKENS = 20
MIN_SECONDS = 0.001


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
