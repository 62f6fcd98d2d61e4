"""Read from a refusal how many tokens a model may write in one answer."""

import re

_ABOUT_OUTPUT = re.compile(
    r"max[_ ]?(?:(?:completion|output|new)[_ ]?)?tokens|maximum tokens|num_predict"
    r"|(?:output|completion|answer|response|generation) (?:length|token limit|size)"
    r"|(?:output|completion|generated|generation) tokens"
    r"|tokens (?:to generate|per (?:response|answer))",
    re.IGNORECASE,
)
# Thoughts that need more room than the answer has, and a request that fills the window: there a
# smaller answer is no help, or not the only one.
_ABOUT_OTHER = re.compile(
    r"budget_tokens|thinking_budget|context (?:length|limit|window|size)|at least|must be positive",
    re.IGNORECASE,
)
# The request was begun, and its thoughts took all of the output that it allows.
_WANTS_MORE = re.compile(
    r"(?<!cannot )(?<!can't )(?<!not )\b(?:higher|larger|bigger|increas(?:e|ing)|rais(?:e|ing))"
    r"(?: the| your)?(?: value (?:of|for))?\W{1,3}"
    r"(?:max[_ ]?(?:\w{3,10}[_ ]?)?tokens|output (?:token )?limit)"
    r"|(?:max_\w*tokens|output (?:token )?limit)\b.{0,40}\b(?:was|were|has been) (?:reached|hit)",
    re.IGNORECASE,
)
_TOO_LARGE = re.compile(
    r"too (?:large|high|big|many)|at most|exceed|range|less than|lower than|below|up to|maximum"
    r"|cannot be (?:greater|larger|more)|must not be (?:greater|larger|more)|>|<=|limit",
    re.IGNORECASE,
)
# They tell something only with a number that is smaller than what was asked for.
_BOUND = re.compile(
    r"(?:greater|larger|more|higher) than|not less or equal|between|out of bounds|above|allows"
    r"|取值范围|范围|不能(?:大于|超过)|最大",
    re.IGNORECASE,
)
_STATUS = re.compile(r"\AThe provider refused the request with \d+: ")
_NUMBER = re.compile(r"(?<![\w.-])\d[\d,_]*(?![\w-]|\.\d)(?P<exclusive>\W{0,3}exclusive)?")


def wants_more(refusal: str) -> bool:
    """Return whether a refusal says that the answer needs more room than it was given."""
    return _WANTS_MORE.search(refusal) is not None


def find_limit(refusal: str, max_tokens: int | None) -> int | None:
    """Return the most tokens of an answer that a refusal of `max_tokens` leaves.

    That is the largest number that it names below what was asked for, or the half where it names
    none; None where the refusal is about something else.
    """
    text = _STATUS.sub("", refusal)
    if not max_tokens or _ABOUT_OTHER.search(text) or wants_more(text):
        return None
    names_excess = _TOO_LARGE.search(text)
    if not (_ABOUT_OUTPUT.search(text) and (names_excess or _BOUND.search(text))):
        return None
    limits = []
    for match in _NUMBER.finditer(text):
        number = int(re.sub("[,_]", "", match[0].split()[0].rstrip(",_"))[:18])
        limits.append(number - bool(match["exclusive"]))
    smaller_limits = [limit for limit in limits if 1 < limit < max_tokens]
    if not smaller_limits:
        return max_tokens // 2 or None if names_excess else None
    return max(smaller_limits)
