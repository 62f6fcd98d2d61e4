"""What a model's own counts have taught, whatever the session: how many real tokens an estimated one stands for, its true window."""

from dataclasses import dataclass

from django.db import IntegrityError, transaction

from compaction.models import ModelRatio
from compaction.sizing import queries

MIN_RATIO, MAX_RATIO = (
    0.5,
    4.0,
)  # no vocabulary is further from a token for four characters: what is, counts something else, as hidden text
NEWEST_SAMPLE_WEIGHT = 0.2  # the weight of a new sample; the first ones weigh more, but never all
MIN_SAMPLE_TOKENS = (
    1_000  # of a shorter request too much is framing, which says nothing of longer ones
)
STABLE_SAMPLES = 8  # samples after which small changes are not worth a write
MIN_RATIO_CHANGE = 0.01


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Of one model. `ratio`: real tokens to one that STORED_CHARS_PER_TOKEN gives; `window` in tokens, None where no refusal told."""

    ratio: float = 1.0
    window: int | None = None
    samples: int = 0


NO_CALIBRATION = Calibration()


def load_calibration(model: str, registered_window: int | None) -> Calibration:
    """What is known of a model (`provider/name`), in one query. A window told while the registry said another one is void."""
    if not model:
        return NO_CALIBRATION
    row = queries.load_ratio_row(model)
    if row is None:
        return NO_CALIBRATION
    # A refusal's window is void once an operator has changed the one in the registry.
    is_window_current = row["registered"] == registered_window
    return Calibration(
        ratio=row["ratio"],
        window=row["window"] if is_window_current else None,
        samples=row["samples"],
    )


def learn_from_response(
    model: str, calibration: Calibration, *, real_tokens: int, estimated_tokens: int
) -> None:
    """After a response: what the provider counted of the whole request, and what had been estimated of it. Recent ones count more."""
    is_window_wrong = calibration.window is not None and real_tokens > calibration.window
    if is_window_wrong:
        ModelRatio.objects.filter(model=model).update(window=None)
    if (
        not model
        or estimated_tokens < MIN_SAMPLE_TOKENS
        or not MIN_RATIO <= real_tokens / estimated_tokens <= MAX_RATIO
    ):
        return
    weight = max(NEWEST_SAMPLE_WEIGHT, 1 / (calibration.samples + 2))
    ratio = calibration.ratio + weight * (real_tokens / estimated_tokens - calibration.ratio)
    if calibration.samples < STABLE_SAMPLES or abs(ratio - calibration.ratio) >= MIN_RATIO_CHANGE:
        _save_ratio(model, ratio=ratio, samples=calibration.samples + 1)


def learn_refusal_window(model: str, *, registered_window: int | None, window: int | None) -> None:
    """After a request was refused for its length: the window that the provider told, while the registry said `registered`."""
    if model and window and window > 0:
        _save_ratio(model, window=window, registered=registered_window)


def _save_ratio(model: str, **fields: float | None) -> None:
    if ModelRatio.objects.filter(model=model).update(**fields):
        return
    try:
        with transaction.atomic():
            ModelRatio.objects.create(model=model, **fields)
    except IntegrityError:  # another process learns the same
        ModelRatio.objects.filter(model=model).update(**fields)
