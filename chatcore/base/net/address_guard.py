"""Decide which addresses a request may go to: public ones, and hosts that the operator allows.

This prevents server-side request forgery. The decision is made on resolved addresses, and the
caller connects to exactly these: a name that resolves differently the second time (DNS rebinding)
gains nothing.
"""

import asyncio
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING

from django.conf import settings

from chatcore.base.stored_settings import read_stored
from chatcore.base.threads import ThreadPool

if TYPE_CHECKING:
    from httpx2 import URL

PORTS = {"http": 80, "https": 443}
# Ends of names that are never public: RFC 6761, RFC 6762, RFC 8375 and ICANN's list of 2024.
INNER_NAMES = (".localhost", ".local", ".internal", ".home.arpa", ".test", ".invalid", ".onion")
# One text for both: who names addresses must not learn which names of the inner network exist.
_REFUSAL = "{host} is not known, or not on the public internet, so nothing is sent to it."

# From IANA's special-purpose registries, written out because `is_global` of the standard library
# differs between Python versions.
_BLOCKLIST_V4 = [
    ip_network(block)
    for block in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT; the metadata service of one cloud
        "127.0.0.0/8",
        "168.63.129.16/32",  # the metadata service of another, at a public address
        "169.254.0.0/16",  # link-local; the metadata service of most clouds
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
]
# Of IPv6 only global unicast is public. That excludes mapped, translated, loopback, unique local,
# link-local and multicast addresses.
_GLOBAL_V6 = ip_network("2000::/3")
_BLOCKLIST_V6 = [
    ip_network(block) for block in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
]

# Name lookups have threads of their own. asyncio.run() waits for the threads of the loop's default
# executor, so a lookup that hangs there would delay the end of a call beyond its deadline.
_RESOLVERS = ThreadPoolExecutor(max_workers=4, thread_name_prefix="resolve")
# Reads what staff allow from the database, which no event loop may wait for.
_SETTINGS_READER = ThreadPool("allowed-hosts", 1)


# No public name has another sign of ASCII (RFC 1123); letters of other scripts are encoded.
_NO_SIGN_OF_NAMES = re.compile(r"(?![a-z0-9.-])[\x00-\x7f]")


class NotReached(Exception):
    """A request was not sent or not answered; the text says why, to people and to models."""


class AddressRefused(NotReached):
    """The URL leads to an address that requests must not reach."""


def is_public(address: str) -> bool:
    """Return True if a numeric IPv4 or IPv6 address belongs to the public internet.

    Metadata services of clouds do not count as public. Raises ValueError for other texts.
    """
    ip = ip_address(address)
    if isinstance(ip, IPv6Address):
        return ip in _GLOBAL_V6 and not any(ip in block for block in _BLOCKLIST_V6)
    return not any(ip in block for block in _BLOCKLIST_V4)


def check_url(url: "URL") -> None:
    """Refuse a URL that no request will be sent to, as far as its text tells.

    No name is looked up: where a name of the inner network leads nowhere, that would tell so. Of
    names only those are refused that no public name can be. Raises AddressRefused.
    """
    if _check_parts(url):
        return
    if _is_inner_name(url.host):
        raise AddressRefused(_REFUSAL.format(host=url.host))


async def resolve_addresses(url: "URL") -> list[str]:
    """Return the numeric addresses to connect to for `url`; all of them are checked.

    Raises AddressRefused.
    """
    is_allowed = await _SETTINGS_READER.run(_check_parts, url)
    addresses = await _resolve_host(url.host, url.port or PORTS[url.scheme])
    if not is_allowed and not all(is_public(address) for address in addresses):
        raise AddressRefused(_REFUSAL.format(host=url.host))
    return addresses


def _check_parts(url: "URL") -> bool:
    """Return True if the operator allows the host and port. Raises AddressRefused."""
    if url.scheme not in PORTS:
        raise AddressRefused("Only http and https URLs can be fetched.")
    if not url.host:
        raise AddressRefused("The URL names no host.")
    if url.userinfo:
        raise AddressRefused("URLs with a user name or password are not fetched.")
    port = url.port or PORTS[url.scheme]
    is_allowed = _is_allowed_host(url.host, port)
    if not is_allowed and port not in PORTS.values():
        raise AddressRefused(
            f"Port {port} is not allowed; only 80 and 443 are. An administrator can allow"
            f" {url.host}:{port} in the admin's settings."
        )
    return is_allowed


def _is_inner_name(host: str) -> bool:
    """Return True for the number of an address that is not public, and for names of no public host.

    A number may be written in every form that a lookup takes: 127.1, 0x7f000001, 2130706433.
    """
    try:
        return not is_public(host)
    except ValueError:
        pass
    try:
        return not is_public(socket.inet_ntoa(socket.inet_aton(host)))
    except (OSError, UnicodeError):
        pass
    name = host.lower().rstrip(".")
    return "." not in name or name.endswith(INNER_NAMES) or bool(_NO_SIGN_OF_NAMES.search(name))


def _is_allowed_host(host: str, port: int) -> bool:
    """Return True if the operator lists `host` (for ports 80 and 443) or `host:port`."""
    host_label = f"[{host}]" if ":" in host else host
    allowed = settings.CHATCORE["FETCH_ALLOW_HOSTS"] or read_stored("allowed_hosts").split()
    hosts = {entry.lower() for entry in allowed}
    return f"{host_label}:{port}" in hosts or (host_label in hosts and port in PORTS.values())


async def _resolve_host(host: str, port: int) -> list[str]:
    loop = asyncio.get_running_loop()
    try:
        address_infos = await loop.run_in_executor(
            _RESOLVERS, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        )
    except (OSError, UnicodeError):
        raise AddressRefused(_REFUSAL.format(host=host)) from None
    return list(dict.fromkeys(str(address[0]) for *_, address in address_infos))
