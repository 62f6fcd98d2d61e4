"""What a model's own counts have taught, whatever the session: how many real tokens an estimated one stands for, its true window."""

from dataclasses import dataclass

from django.db import IntegrityError, connection, transaction

from compaction.models import ModelRatio

LEAST, MOST = (
    0.5,
    4.0,
)  # no vocabulary is further from a token for four characters: what is, counts something else, as hidden text
NEWEST = 0.2  # the weight of a new sample; the first ones weigh more, but never all
FEWEST_TOKENS = 1_000  # of a shorter request too much is framing, which says nothing of longer ones
SETTLED = 8  # samples after which small changes are not worth a write
SMALL = 0.01


@dataclass(frozen=True, kw_only=True)
class Learned:
    """Of one model. `ratio`: real tokens to one that STORED_CHARS_PER_TOKEN gives; `window` in tokens, None where no refusal told."""

    ratio: float = 1.0
    window: int | None = None
    samples: int = 0


NOTHING = Learned()


def of(model: str, registered: int | None) -> Learned:
    """What is known of a model (`provider/name`), in one query. A window told while the registry said another one is void."""
    if not model:
        return NOTHING
    with (
        connection.cursor() as cursor
    ):  # every check asks this, and the ORM takes longer to write it than the database to answer
        cursor.execute(
            f'SELECT ratio, "window", registered, samples FROM {ModelRatio._meta.db_table} WHERE model = %s',  # noqa: S608
            [model],
        )  # noqa: RUF100, S608
        row = cursor.fetchone()
    if row is None:
        return NOTHING
    ratio, window, then, samples = row
    return Learned(ratio=ratio, window=window if then == registered else None, samples=samples)


def learn_response(model: str, known: Learned, *, real: int, estimated: int) -> None:
    """After a response: what the provider counted of the whole request, and what had been estimated of it. Recent ones count more."""
    told_wrong = known.window is not None and real > known.window
    if told_wrong:
        ModelRatio.objects.filter(model=model).update(window=None)
    if not model or estimated < FEWEST_TOKENS or not LEAST <= real / estimated <= MOST:
        return
    weight = max(NEWEST, 1 / (known.samples + 2))
    ratio = known.ratio + weight * (real / estimated - known.ratio)
    if known.samples < SETTLED or abs(ratio - known.ratio) >= SMALL:
        _write(model, ratio=ratio, samples=known.samples + 1)


def learn_refusal(model: str, *, registered: int | None, window: int | None) -> None:
    """After a request was refused for its length: the window that the provider told, while the registry said `registered`."""
    if model and window and window > 0:
        _write(model, window=window, registered=registered)


def _write(model: str, **fields: float | None) -> None:
    if ModelRatio.objects.filter(model=model).update(**fields):
        return
    try:
        with transaction.atomic():
            ModelRatio.objects.create(model=model, **fields)
    except IntegrityError:  # another process learns the same
        ModelRatio.objects.filter(model=model).update(**fields)
