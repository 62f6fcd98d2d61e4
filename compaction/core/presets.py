"""The policies of the core. A preset is data: what it sets differently from `oneclaw`."""

from compaction.core.policy import Policy

ONECLAW = Policy()
"""The default policy."""

_CHATCORE: dict[str, object] = {
    "files": {"sharing": "even"},
    "ledger": {"ratio": 0.15},
    "recall": {"tokens": 600},
    "summary": {
        "spans": "frozen",
        "room_ratio": 0.08,
        "max_words": 2_000,
        "prompt": "cheapest",
    },
    "tool_result": {"spill": True},
    "verify": {"checks": True, "repair": True, "extract": True},
}


PRESETS: dict[str, Policy] = {"oneclaw": ONECLAW, "chatcore": Policy.parse(_CHATCORE, ONECLAW)}
"""`chatcore` is our own. The other systems add theirs (`systems.py`)."""
