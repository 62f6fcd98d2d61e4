"""The product's settings over a data folder of this test process's own."""

import base64
import os
import tempfile

_folder = tempfile.mkdtemp(prefix="chatcore-tests-")
os.environ["CHATCORE_DATA_DIR"] = _folder
# A title would take the scripted reply to the next message; its own tests turn titles on.
os.environ.setdefault("CHATCORE_MODEL_TITLES", "false")
os.environ.setdefault(
    "CHATCORE_DATABASE_URL",
    os.environ.get("CHATCORE_TEST_DATABASE_URL", f"sqlite:///{_folder}/chatcore.sqlite3"),
)
if not os.environ["CHATCORE_DATABASE_URL"].startswith("sqlite"):
    # A database that machines share needs secrets that they share; child processes get these too.
    os.environ.setdefault("CHATCORE_SECRET_KEY", "a secret of tests, which guards nothing at all")
    os.environ.setdefault(
        "CHATCORE_KEY_ENCRYPTION_KEYS", base64.urlsafe_b64encode(os.urandom(32)).decode()
    )

from chatcore.settings import *  # noqa: E402, F403
from chatcore.settings import DATABASES, LOGGING  # noqa: E402

# Commits are real, but nobody pulls the plug of the machine: waiting for the disk would only slow
# the tests. The database is a file, not memory: threads and child processes must reach it too.
if "sqlite3" in DATABASES["default"]["ENGINE"]:
    DATABASES["default"]["TEST"] = {"NAME": f"{_folder}/test.sqlite3"}
    pragmas = DATABASES["default"]["OPTIONS"]["init_command"]
    DATABASES["default"]["OPTIONS"]["init_command"] = pragmas.replace(
        "synchronous=FULL", "synchronous=OFF"
    )
else:
    DATABASES["default"]["TEST"] = {"NAME": f"test_chatcore_{os.getpid()}"}
    DATABASES["default"]["OPTIONS"] = {"options": "-c synchronous_commit=off"}
    # As with a pool: whoever holds on to a connection shows. On SQLite, threads keep theirs, as in
    # the product: to open one for each step of a turn takes as long as the turn itself.
    DATABASES["default"]["CONN_MAX_AGE"] = 0
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
LOGGING["root"]["level"] = "WARNING"
