"""Learn from a model's counts its true window, and the real tokens for each estimated one."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from chatcore.base.databases.clock import read_clock
from compaction.models import ModelRatio, SessionState
from models_registry.models import AiModel

# No vocabulary is further than this from a token for four characters. Counts beyond these limits
# include something else, such as hidden text.
MIN_RATIO = 0.5
MAX_RATIO = 4.0
NEWEST_SAMPLE_WEIGHT = 0.2  # the first samples weigh more, but never everything
TRUST = timedelta(days=1)  # in a learned window, until a longer request is tried again
MIN_SAMPLE_TOKENS = 1_000  # a shorter request is mostly framing, and says nothing of longer ones
STABLE_SAMPLES = 8  # after this many samples, small changes are not worth a write
MIN_RATIO_CHANGE = 0.01


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What is known of a model's counts.

    `ratio` is real tokens for each token that CHARS_PER_TOKEN_ESTIMATE gives. `window` is in
    tokens; None if no refusal named one.
    """

    ratio: float = 1.0
    window: int | None = None
    samples: int = 0
    window_learned_at: datetime | None = None

    @property
    def is_window_doubtful(self) -> bool:
        """True if no request longer than the learned window was sent for a day."""
        learned_at = self.window_learned_at
        return learned_at is None or read_clock() - learned_at > TRUST


NO_CALIBRATION = Calibration()


def load_calibration(model: str, registered_window: int | None) -> Calibration:
    """Return what is known of a model (`provider/name`), in one query.

    A window that a refusal named is void once the registry's window has changed since then.
    """
    ratio = ModelRatio.objects.filter(model=model).first() if model else None
    return build_calibration(ratio, registered_window)


def build_calibration(ratio: ModelRatio | None, registered_window: int | None) -> Calibration:
    """Return what a model's ModelRatio says; None if it has none."""
    if ratio is None:
        return NO_CALIBRATION
    return Calibration(
        ratio=ratio.ratio,
        window=ratio.window if ratio.registered == registered_window else None,
        samples=ratio.samples,
        window_learned_at=ratio.window_learned_at,
    )


def learn_from_response(
    model: str, calibration: Calibration, *, real_tokens: int, estimate: Callable[[], int]
) -> None:
    """Move a model's ratio towards a provider's count; recent counts weigh more.

    `estimate` returns the estimated tokens of what was counted. It is asked only where the count is
    large enough to say something.
    """
    if calibration.window is not None and real_tokens > calibration.window:
        # The request was accepted, so the window that a refusal named is wrong.
        _forget_window(model)
    if not model or real_tokens < MIN_RATIO * MIN_SAMPLE_TOKENS:
        return
    estimated_tokens = estimate()
    if estimated_tokens < MIN_SAMPLE_TOKENS:
        return
    sample_ratio = real_tokens / estimated_tokens
    if not MIN_RATIO <= sample_ratio <= MAX_RATIO:
        return
    weight = max(NEWEST_SAMPLE_WEIGHT, 1 / (calibration.samples + 2))
    change = weight * (sample_ratio - calibration.ratio)
    if calibration.samples < STABLE_SAMPLES or abs(change) >= MIN_RATIO_CHANGE:
        save_ratio(model, ratio=calibration.ratio + change, samples=calibration.samples + 1)


def learn_refusal_window(model: str, *, registered_window: int | None, window: int | None) -> None:
    """Store the window in tokens that a provider named when it refused a request for its length.

    `registered_window` is the registry's at that time.
    """
    if model and window and window > 0:
        save_ratio(
            model, window=window, registered=registered_window, window_learned_at=read_clock()
        )


def doubt_window(model: str) -> None:
    """Note that a longer request than the learned window is sent now; the next day again."""
    ModelRatio.objects.filter(model=model).update(window_learned_at=read_clock())


def forget_window(model: AiModel) -> None:
    """Forget the window that refusals have shown."""
    _forget_window(str(model))


def _forget_window(model: str) -> None:
    ModelRatio.objects.filter(model=model).update(window=None, window_learned_at=None)
    SessionState.objects.filter(learned_for__startswith=f"{model} ").update(learned_window=None)


def save_ratio(model: str, **fields: float | datetime | None) -> None:
    """Store these columns of a model's ModelRatio."""
    if ModelRatio.objects.filter(model=model).update(**fields):
        return
    # Another process may just have learned about the same model: then its row is updated.
    ModelRatio.objects.bulk_create(
        [ModelRatio(model=model, **fields)],
        update_conflicts=True,
        unique_fields=["model"],
        update_fields=list(fields),
    )
