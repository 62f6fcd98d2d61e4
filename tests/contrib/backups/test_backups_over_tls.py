"""Backup and restore as an operator has them: TLS that is verified, and a role of few rights."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support.postgres_server import PostgresServer
from tests.support.served_product import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.program,
    pytest.mark.skipif(not PostgresServer.is_installed(), reason="needs PostgreSQL's programs"),
]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate of 127.0.0.1, which signs itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    subject = (
        "-subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out cert.pem"
    )
    subprocess.run(
        f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 {subject}".split(),
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return folder


@pytest.fixture(scope="module")
def server(certificate: Path) -> Iterator[PostgresServer]:
    """A server that speaks TLS, with a database of whose schema the role `chat` owns nothing."""
    with PostgresServer() as server:
        for name in ("key.pem", "cert.pem"):
            path = server.folder / name
            shutil.copyfile(certificate / name, path)
            path.chmod(0o600)
            if os.geteuid() == 0:
                shutil.chown(path, "postgres")
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("CREATE ROLE chat LOGIN")
            connection.execute("CREATE ROLE reports LOGIN")
            for line in (
                f"ALTER SYSTEM SET ssl_cert_file = '{server.folder / 'cert.pem'}'",
                f"ALTER SYSTEM SET ssl_key_file = '{server.folder / 'key.pem'}'",
                "ALTER SYSTEM SET ssl = on",
                "SELECT pg_reload_conf()",
                "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
                "GRANT USAGE, CREATE ON SCHEMA public TO chat",
                "GRANT USAGE ON SCHEMA public TO reports",
                "CREATE EXTENSION pg_trgm",
            ):
                connection.execute(line.encode())
        yield server


def test_a_role_of_few_rights_backs_up_and_restores_over_verified_tls(
    server: PostgresServer, certificate: Path, tmp_path: Path
) -> None:
    root = tmp_path / "root.pem"
    shutil.copyfile(certificate / "cert.pem", root)
    address = (
        f"postgres://chat@127.0.0.1:{server.port}/postgres?sslmode=verify-full&sslrootcert={root}"
    )

    def run(*arguments: str) -> str:
        process = subprocess.run(
            [sys.executable, "-m", "chatcore", *arguments],
            cwd=ROOT,
            env={
                **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
                **server.variables,
                "DJANGO_SETTINGS_MODULE": "chatcore.settings",
                "CHATCORE_DATABASE_URL": address,
                "CHATCORE_DATA_DIR": str(tmp_path / "data"),
                "DJANGO_SUPERUSER_PASSWORD": "a password of tests",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert process.returncode == 0, process.stdout + process.stderr
        return process.stdout

    run("prepare")
    run("createsuperuser", "--username", "ann", "--email", "", "--noinput")
    run("backup", str(tmp_path / "backup"))
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("DELETE FROM auth_user_groups")
        connection.execute("UPDATE auth_user SET username = 'bob'")
        connection.execute("SET ROLE chat")
        connection.execute("CREATE TABLE of_a_newer_version (id int)")
    run("restore", str(tmp_path / "backup"), "--force")
    with psycopg.connect(server.url) as connection:
        assert connection.execute("SELECT username FROM auth_user").fetchall() == [("ann",)]
        assert connection.execute("SELECT to_regclass('of_a_newer_version')").fetchone() == (None,)
        may = connection.execute("SELECT has_schema_privilege('reports', 'public', 'USAGE')")
        assert may.fetchone() == (True,)
    assert "0 violations" in run("verify")
