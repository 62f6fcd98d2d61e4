"""Other names of models: those that an operator sets, and those of programs' side models.

Programs ask small models of their makers for titles, searches and some of their agents, whatever
model a person has chosen. Where nobody has such a model, the cheapest that can do it answers.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from django.conf import settings

from chatcore.accounts.rights import select_models
from models_registry.models import AiModel

SIDE_MODELS = ("claude-haiku-*", "claude-*-haiku-*", "gpt-*-mini", "gpt-*-nano", "gemini-*-flash*")
MIN_WINDOW = 32_768  # a program's own words and tools fill half of it


def find_model(user_id: object, name: str) -> AiModel | None:
    """Return the model that a program means by a name, if the user may use it.

    An operator's alias wins over a model of this name, and such a model over a small one. A name
    that is there costs one query.
    """
    usable = select_models(user_id)
    target = _find_target(name)
    model = usable.find_by_name(target or name)
    if model is not None or target:
        return model
    base_name = name.rpartition("/")[2].lower()
    if not any(fnmatchcase(base_name, pattern) for pattern in SIDE_MODELS):
        return None
    main = usable.find_default()
    return choose_small_model(list(usable.list_usable()), main) if main else None


def list_aliases(models: Sequence[AiModel]) -> list[tuple[str, AiModel]]:
    """Return the names that an operator has given to one of these models, without patterns.

    Programs that list models, and take only names which begin as they know it, find them by these.
    """
    by_name = {each: model for model in models for each in (model.name, str(model))}
    return [
        (alias, by_name[target])
        for alias, target in _get_aliases().items()
        if target in by_name and "*" not in alias
    ]


def _get_aliases() -> Mapping[str, str]:
    aliases: Mapping[str, str] = settings.CHATCORE["MODEL_ALIASES"]
    return aliases


def _find_target(name: str) -> str:
    """Return the model that an operator names for this name; empty if there is none."""
    matches = (target for alias, target in _get_aliases().items() if fnmatchcase(name, alias))
    return next(matches, "")


def choose_small_model(models: Sequence[AiModel], main: AiModel) -> AiModel:
    """Return the cheapest of the models that can do a program's side work.

    It is the main model where no other is known to be cheaper.
    """
    fitting = [
        model
        for model in models
        if model.input_price is not None
        and model.output_price is not None
        and model.may_call_tools
        and (model.context_window_size or 0) >= MIN_WINDOW
    ]
    if main.input_price is None or main.output_price is None:
        return main
    return min([main, *fitting], key=lambda model: (model.input_price, model.output_price))
