"""An identity provider on loopback whose answers a test may forge."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm


def make_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass
class ForgingProvider:
    """What the provider says: `claims` of the id token, `userinfo`, and how it is signed."""

    url: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    userinfo: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    key: Any = field(default_factory=make_key)
    signing_key: Any = None  # the published one unless another is set
    algorithm: str = "RS256"
    sends_id_token: bool = True

    def reset(self, nonce: str) -> None:
        """Say the truth about Dora, for the sign-on with this nonce."""
        now = int(time.time())
        self.claims = {
            "iss": self.url,
            "sub": "dora-1",
            "aud": "chatcore",
            "iat": now,
            "exp": now + 300,
            "nonce": nonce,
        }
        self.userinfo = {"sub": "dora-1", "preferred_username": "dora"}

    def answer(self, path: str) -> dict[str, Any]:
        if path.startswith("/.well-known/"):
            names = ("authorization", "token", "userinfo")
            endpoints = {f"{name}_endpoint": f"{self.url}/{name}" for name in names}
            return {"issuer": self.url, "jwks_uri": f"{self.url}/keys"} | endpoints | self.config
        if path == "/keys":
            public = json.loads(RSAAlgorithm.to_jwk(self.key.public_key()))
            return {"keys": [public | {"kid": "one", "alg": "RS256", "use": "sig"}]}
        if path == "/userinfo":
            return self.userinfo
        token = jwt.encode(
            self.claims,
            self.key if self.signing_key is None else self.signing_key,
            algorithm=self.algorithm,
            headers={"kid": "one"},
        )
        answer = {"access_token": "access", "token_type": "Bearer", "expires_in": 60}
        return answer | ({"id_token": token} if self.sends_id_token else {})


@contextmanager
def run_forging_provider() -> Iterator[ForgingProvider]:
    """Run a provider until the block ends."""
    provider = ForgingProvider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(provider.answer(self.path)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, *args: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
