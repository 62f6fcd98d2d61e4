"""Control tokens of chat templates, which some servers obey wherever they stand.

llama.cpp and others build one text of all messages and then look for the tokens that begin and end
a message in it, so `<|im_start|>system` in a fetched page begins a message of the system. A
provider's option `control_tokens` says that its server is of this kind.
"""

import re

_CONTROL_TOKEN = re.compile(r"<(?=[|｜][^|｜<>\n]{1,60}[|｜]>|(?:start|end)_of_turn>)")


def escape_control_tokens(value: object) -> object:
    """Return a JSON value in whose texts no control token stands."""
    if isinstance(value, str):
        return _CONTROL_TOKEN.sub("‹", value)
    if isinstance(value, list):
        return [escape_control_tokens(item) for item in value]
    if isinstance(value, dict):
        return {name: escape_control_tokens(item) for name, item in value.items()}
    return value
