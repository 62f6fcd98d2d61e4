"""How long the calls of a summary may take, by the measured speed of their model."""

from compaction.sessions.speed import Speed, learn_timeout, load_speed

# No call waits longer, however slow the model is: a run has half an hour for all of its calls.
MAX_CALL_SECONDS = 900.0
MARGIN = 2.0  # a machine that is busy is slower than it was when it was measured


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
