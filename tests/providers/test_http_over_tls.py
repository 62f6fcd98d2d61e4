"""Connections to a provider over TLS."""

import asyncio
import datetime
import ipaddress
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from chatcore.base.net import certificates
from chatcore.providers.base import Connection
from chatcore.providers.openai import stream_answer
from tests.support.raw_servers import CHUNKED, answer_with, serve


def make_certificate(folder: Path) -> Path:
    """Write a self-signed certificate for 127.0.0.1 with its key, and return the file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "server.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return path


async def test_it_speaks_tls_and_uses_the_connection_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate_path = make_certificate(tmp_path)
    server_context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_context.load_cert_chain(certificate_path)
    client_context = ssl.create_default_context(cafile=str(certificate_path))
    monkeypatch.setattr(certificates, "get_ssl_context", lambda: client_context)
    connection_count = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connection_count
        connection_count += 1
        response = CHUNKED + b"186a0\r\n" + b"x" * 100_000 + b"\r\n0\r\n\r\n"
        await answer_with(response, response)(reader, writer)

    async with serve(answer, ssl_context=server_context) as address:
        connection = Connection(protocol="openai", base_url=address, api_key="k")
        for _ in range(2):
            chunks = [chunk async for chunk in stream_answer(connection, "completions", {})]
            assert len(b"".join(chunks)) == 100_000
    assert connection_count == 1
