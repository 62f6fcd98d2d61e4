"""The product's settings over a data folder of this test process's own."""

import os
import tempfile

_folder = tempfile.mkdtemp(prefix="chatcore-tests-")
os.environ["CHATCORE_DATA_DIR"] = _folder
os.environ.setdefault(
    "CHATCORE_DATABASE_URL",
    os.environ.get("CHATCORE_TEST_DATABASE_URL", f"sqlite:///{_folder}/chatcore.sqlite3"),
)

from chatcore.settings import *  # noqa: E402, F403
from chatcore.settings import (  # noqa: E402
    DATABASES,
    LOGGING,  # noqa: E402, RUF100
)

# A file, not memory: threads and child processes must reach the same database, as in production.
DATABASES["default"]["TEST"] = (
    {"NAME": f"{_folder}/test.sqlite3"}
    if "sqlite3" in DATABASES["default"]["ENGINE"]
    else {"NAME": f"test_chatcore_{os.getpid()}"}
)
if "pool" in DATABASES["default"].get("OPTIONS", {}):
    DATABASES["default"]["OPTIONS"] = {}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
LOGGING["root"]["level"] = "WARNING"
DATABASES["default"]["CONN_MAX_AGE"] = 0  # as with a pool: whoever holds on to a connection shows
