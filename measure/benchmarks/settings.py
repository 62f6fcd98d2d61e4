"""The settings of the tests, but with the durability of the product: commits wait for the disk."""

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES

if "sqlite3" in DATABASES["default"]["ENGINE"]:
    _pragmas = DATABASES["default"]["OPTIONS"]["init_command"]
    DATABASES["default"]["OPTIONS"]["init_command"] = _pragmas.replace(
        "synchronous=OFF", "synchronous=FULL"
    )
