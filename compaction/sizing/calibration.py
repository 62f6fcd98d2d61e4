"""Learn from a model's counts its true window, and the real tokens for each estimated one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction

from compaction.models import ModelRatio
from compaction.sizing import queries

# No vocabulary is further than this from a token for four characters. Counts beyond these limits
# include something else, such as hidden text.
MIN_RATIO = 0.5
MAX_RATIO = 4.0
NEWEST_SAMPLE_WEIGHT = 0.2  # the first samples weigh more, but never everything
MIN_SAMPLE_TOKENS = 1_000  # a shorter request is mostly framing, and says nothing of longer ones
STABLE_SAMPLES = 8  # after this many samples, small changes are not worth a write
MIN_RATIO_CHANGE = 0.01


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What is known of a model's counts.

    `ratio` is real tokens for each token that STORED_CHARS_PER_TOKEN gives. `window` is in tokens;
    None if no refusal named one.
    """

    ratio: float = 1.0
    window: int | None = None
    samples: int = 0


NO_CALIBRATION = Calibration()


def load_calibration(model: str, registered_window: int | None) -> Calibration:
    """Return what is known of a model (`provider/name`), in one query.

    A window that a refusal named is void once the registry's window has changed since then.
    """
    row = queries.load_ratio_row(model) if model else None
    return build_calibration(row, registered_window)


def build_calibration(row: Mapping[str, Any] | None, registered_window: int | None) -> Calibration:
    """Return what a model's ModelRatio says, given by its columns; None if it has none."""
    if row is None:
        return NO_CALIBRATION
    is_window_current = row["registered"] == registered_window
    return Calibration(
        ratio=row["ratio"],
        window=row["window"] if is_window_current else None,
        samples=row["samples"],
    )


def learn_from_response(
    model: str, calibration: Calibration, *, real_tokens: int, estimated_tokens: int
) -> None:
    """Move a model's ratio towards a provider's count; recent counts weigh more."""
    if calibration.window is not None and real_tokens > calibration.window:
        # The request was accepted, so the window that a refusal named is wrong.
        ModelRatio.objects.filter(model=model).update(window=None)
    if not model or estimated_tokens < MIN_SAMPLE_TOKENS:
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
        save_ratio(model, window=window, registered=registered_window)


def save_ratio(model: str, **fields: float | None) -> None:
    """Store these columns of a model's ModelRatio."""
    if ModelRatio.objects.filter(model=model).update(**fields):
        return
    try:
        with transaction.atomic():
            ModelRatio.objects.create(model=model, **fields)
    except IntegrityError:
        # Another process has just learned about the same model; its row is updated instead.
        ModelRatio.objects.filter(model=model).update(**fields)
