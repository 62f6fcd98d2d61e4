"""Which model does what programs ask beside a conversation."""

from collections.abc import Sequence

from models_registry.models import AiModel

MIN_WINDOW = 32_768  # a program's own words and tools fill half of it


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
