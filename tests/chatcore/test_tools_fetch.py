"""fetch_url over real sockets: it reads pages, and only at addresses that the guard allows."""

import gzip
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from chatcore.base.net.address_guard import is_public
from chatcore.tools import fetch_url
from tests.support.sample_site import Site, allow, fetch, page, redirect, site, sites
from tests.support.slow_params import mark_others_slow

__all__ = ["allow", "site", "sites"]

pytestmark = pytest.mark.django_db  # a fetch gives the thread's connection back before it waits
HOSTILE = [
    "http://127.0.0.1/",
    "http://127.1/",
    "http://127.255.255.254/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.1/",
    "http://0177.0.0.1/",
    "http://0/",
    "http://0.0.0.0/",
    "http://localhost/",
    "http://LOCALHOST:80/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.168.1.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://168.63.129.16/",
    "http://100.64.0.1/",
    "http://100.100.100.200/",
    "http://192.0.0.192/",
    "http://198.18.0.1/",
    "http://224.0.0.1/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://[::1]/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::ffff:8.8.8.8]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:7f00:1::]/",
    "http://[fc00::1]/",
    "http://[fd00:ec2::254]/",
    "http://[fe80::1]/",
    "http://[ff02::1]/",
    "https://127.0.0.1/",
    "http://user:password@127.0.0.1/",
    "http://user@93.184.216.34/",
    "http://93.184.216.34:22/",
    "http://93.184.216.34:6379/",
    "http://127.0.0.1:443/",
    "ftp://93.184.216.34/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_FLUSHALL",
    "javascript:alert(1)",
    "//127.0.0.1/",
    "http:///etc/passwd",
    "http://",
    "127.0.0.1",
    "http://127.0.0.1\n.example.org/",
    "http://①②⑦.⓪.⓪.①/",
    "http://" + "a" * 70 + ".example/",
]


@pytest.mark.parametrize("url", mark_others_slow(HOSTILE, first=20))
def test_a_hostile_url_is_refused_before_anything_is_sent(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        socket.socket, "connect", lambda *args: pytest.fail("a connection was tried")
    )
    assert fetch(url).is_error


@pytest.mark.parametrize(
    "address",
    [
        "93.184.216.34",
        "1.1.1.1",
        "100.63.255.255",
        "172.32.0.1",
        "2606:4700:4700::1111",
        "2a00:1450::1",
    ],
)
def test_public_addresses_are_let_through(address: str) -> None:
    assert is_public(address)


def test_a_compressed_answer_is_refused_for_it_may_unfold_without_end(site: Site) -> None:
    site.pages["/"] = page(gzip.compress(b"0" * 10_000_000), "text/plain", Content_Encoding="gzip")
    assert "compressed" in fetch(site.url).content
    assert site.seen[0][1]["Accept-Encoding"] == "identity"


def test_a_server_that_drips_is_left_at_the_deadline(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = threading.Event()

    def drip(request: BaseHTTPRequestHandler) -> None:
        while not closed.wait(0.05):  # for ever, if the reader does not stop
            try:
                request.wfile.write(b"x")
            except OSError:
                closed.set()

    monkeypatch.setattr(fetch_url, "DEADLINE_SECONDS", 0.5)
    site.pages["/"] = drip
    assert fetch(site.url).is_error
    assert closed.wait(30)


def test_a_server_that_is_not_there_is_an_error(site: Site, allow: Callable[..., None]) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        allow(f"127.0.0.1:{port}")
        assert "cannot be reached" in fetch(f"http://127.0.0.1:{port}/").content


def test_five_redirects_are_followed_and_six_are_not(site: Site) -> None:
    for number in range(1, 7):
        site.pages[f"/{number}"] = redirect(f"/{number - 1}")
    site.pages["/0"] = page("the end", "text/plain")
    assert "the end" in fetch(f"{site.url}/5").content
    outcome = fetch(f"{site.url}/6")
    assert outcome.is_error
    assert "redirects" in outcome.content


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_a_refused_address_is_not_followed(
    sites: Callable[[], Site], site: Site, status: int
) -> None:
    inner = sites()
    inner.pages["/secret"] = page("the secret", "text/plain")
    site.pages["/"] = redirect(f"{inner.url}/secret", status)
    outcome = fetch(site.url)
    assert outcome.is_error
    assert inner.seen == []


@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/",
        "//[::1]/",
        "file:///etc/passwd",
        "http://user:pw@127.0.0.1/",
        "http://localhost/",
        "gopher://127.0.0.1/",
    ],
)
def test_every_redirect_is_checked_again(site: Site, target: str) -> None:
    site.pages["/"] = redirect(target)
    assert fetch(site.url).is_error


def test_no_cookie_and_no_netrc_travels_with_a_redirect(site: Site) -> None:
    site.pages["/"] = page("", status=302, Location="/next", Set_Cookie="tracked=1; Path=/")
    site.pages["/next"] = page("here", "text/plain")
    assert "here" in fetch(site.url).content
    assert not {"Cookie", "Authorization"} & site.seen[1][1].keys()


def test_the_checked_address_is_the_one_connected_to(
    site: Site, allow: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    real, asked = socket.getaddrinfo, []

    def rebinding(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        if host != "rebind.example":
            return real(host, port, *args, **kwargs)
        asked.append(host)
        return real("127.0.0.1" if len(asked) == 1 else "127.0.0.9", port, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    allow(f"rebind.example:{site.port}")
    site.pages["/"] = page("hello", "text/plain")
    assert "hello" in fetch(f"http://rebind.example:{site.port}/").content
    assert len(asked) == 1
    assert site.seen[0][1]["Host"] == f"rebind.example:{site.port}"


def test_a_name_with_one_private_address_among_public_ones_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def mixed(host: str, port: int, **kwargs: Any) -> Any:
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in ("93.184.216.34", "10.0.0.1")
        ]

    monkeypatch.setattr(socket, "getaddrinfo", mixed)
    assert "not on the public internet" in fetch("http://mixed.example/").content


def test_a_proxy_of_the_environment_is_not_asked(
    sites: Callable[[], Site], site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = sites()
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    monkeypatch.setenv("ALL_PROXY", proxy.url)
    site.pages["/"] = page("direct", "text/plain")
    assert "direct" in fetch(site.url).content
    assert proxy.seen == []


def test_an_allowed_host_opens_its_own_port_only(
    sites: Callable[[], Site], site: Site, allow: Callable[..., None]
) -> None:
    other = sites()
    allow("127.0.0.1", f"127.0.0.1:{site.port}")
    assert "Port" in fetch(other.url).content
    assert other.seen == []
