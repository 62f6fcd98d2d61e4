"""Files that come with messages: taken in, bound to what the user says, shown to the model, forgotten when never sent."""

from chatcore.files.intake import MAX_BYTES, MAX_FILES, NotTaken, TooManyWaiting, Unavailable, bind, carry_over, look, prune, store
from chatcore.files.names import label
from chatcore.files.shown import Attached, attached, reworded

__all__ = [
    "MAX_BYTES",
    "MAX_FILES",
    "Attached",
    "NotTaken",
    "TooManyWaiting",
    "Unavailable",
    "attached",
    "bind",
    "carry_over",
    "label",
    "look",
    "prune",
    "reworded",
    "store",
]
