"""Learn from a provider's refusal what a language model cannot do."""

from chatcore.models import Turn
from chatcore.providers.base import StreamEnd
from chatcore.providers.errors import ImagesRefused, ToolsRefused
from chatcore.turns import client_tools

WHERE_TO_CHANGE_IMAGES = (
    "If it does see images, an operator changes that in the admin: Language models, the field"
    " Supports images."
)


def learn(turn: Turn, error: ToolsRefused | ImagesRefused) -> None:
    """Store what the model cannot do; the turn goes on without it if nobody needs it.

    Raises the error, with where to change it, where the client's tools were refused, or where an
    operator has said that the model can do it.
    """
    if isinstance(error, ImagesRefused):
        _learn_of_images(turn, error)
    else:
        _learn_of_tools(turn, error)


def note_refused_tools(turn: Turn, completion: StreamEnd) -> None:
    """Tell the person of tools without which the answer was made."""
    if completion.refused_tools:
        names = ", ".join(completion.refused_tools)
        notice = f"The provider refuses the description of these tools, which are left out: {names}"
        turn.add_notices(notice)


def unlearn(turn: Turn, error: ToolsRefused | ImagesRefused) -> None:
    """Forget what was learned, because the request without it was refused too."""
    model = turn.session.model
    assert model is not None
    model.forget_refused(
        "supports_images" if isinstance(error, ImagesRefused) else "supports_tools"
    )


def _learn_of_tools(turn: Turn, error: ToolsRefused) -> None:
    model = turn.session.model
    assert model is not None
    if not model.note_refused("supports_tools") or turn.tools:
        raise ToolsRefused(f"{error.detail} {client_tools.WHERE_TO_CHANGE}") from None


def _learn_of_images(turn: Turn, error: ImagesRefused) -> None:
    """Images become a sentence from now on, and the turn says so once."""
    model = turn.session.model
    assert model is not None
    if not model.note_refused("supports_images"):
        raise ImagesRefused(f"{error.detail} {WHERE_TO_CHANGE_IMAGES}") from None
    notice = f"The language model {model} sees no images. {WHERE_TO_CHANGE_IMAGES}"
    turn.add_notices(notice)
