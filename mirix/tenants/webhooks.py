"""Posting to an address that an administrator chose, without lending them our place in the network.

The host is resolved here once, every address it has must be public, and the connection goes to the very
address that was checked, so that a name cannot point elsewhere a moment later. Redirects are not followed
and answers are not read beyond their status. `MIRIX_WEBHOOK_ALLOW_PRIVATE` lifts the rule for receivers in
one's own network.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import socket
import ssl
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from threading import Timer
from time import monotonic
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError

STEP_SECONDS = 5
"""How long connecting to one address, sending and each piece of the answer may take."""
TOTAL_SECONDS = 15
"""How long the whole may take, whatever the other side does, once the resolver has answered."""

GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
RELAYS_OF_6TO4 = ipaddress.IPv4Network("192.88.99.0/24")


class WebhookError(Exception):
    """The receiver did not take it; the message says why, for a person, and quotes nothing of its answer."""


def check_url(url: str) -> None:
    """Raise `ValidationError` unless `url` is an address that a webhook may have.

    `https`, or `http` where private receivers are allowed; no user name or password in it, no fragment, and
    no literal address of a private network.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ValidationError("This is not an address of the web.") from error
    schemes = ("https", "http") if settings.MIRIX_WEBHOOK_ALLOW_PRIVATE else ("https",)
    if parts.scheme not in schemes or not host:
        raise ValidationError(f"Must begin with {' or '.join(f'{scheme}://' for scheme in schemes)}.")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ValidationError("May only hold plain ASCII characters; write other host names in punycode.")
    if "@" in parts.netloc or parts.fragment:
        raise ValidationError("May hold no user name, password or fragment.")
    if _is_literal(host) and not _is_allowed(host):
        raise ValidationError(f"{host} is no public address; this installation sends to public ones alone.")


def sign(*, secret: str, body: bytes, timestamp: int) -> str:
    """Return the signature's header: the time, and HMAC-SHA256 over `<time>.<body>` in hex.

    The time is signed too, so that the receiver can refuse an old message that somebody sends again.
    """
    signed = hmac.new(secret.encode(), b"%d." % timestamp + body, hashlib.sha256)
    return f"t={timestamp},v1={signed.hexdigest()}"


def post(*, url: str, body: bytes, headers: dict[str, str]) -> None:
    """POST `body` and return when the receiver answered 2xx. Raises `WebhookError` else."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    addresses = _resolve(host, port)
    deadline = monotonic() + TOTAL_SECONDS
    try:
        connection = _connect(parts.scheme, host, port, addresses, deadline)
        # A receiver that sends byte by byte would pass every single time-out.
        watchdog = Timer(deadline - monotonic(), _hang_up, args=(connection.sock,))
        watchdog.start()
        try:
            if isinstance(connection.sock, ssl.SSLSocket):
                connection.sock.do_handshake()
            path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
            connection.request("POST", path, body=body, headers=headers)
            status = connection.getresponse().status
        finally:
            watchdog.cancel()
            connection.close()
    except (OSError, HTTPException) as error:
        late = monotonic() >= deadline
        raise WebhookError(_too_slow(TOTAL_SECONDS) if late else _in_words(error)) from error
    if not 200 <= status < 300:
        raise WebhookError(f"It answered with status {status}.")


def _resolve(host: str, port: int) -> list[str]:
    """Return the host's addresses, each of which was checked."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise WebhookError(f"The host {host} is not known.") from error
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if not all(map(_is_allowed, addresses)):
        raise WebhookError(
            f"The host {host} is no public one; this installation sends to public addresses alone."
        )
    return addresses


def _connect(scheme: str, host: str, port: int, addresses: list[str], deadline: float) -> HTTPConnection:
    """Return a connection to the first address that answers in time, before its TLS begins."""
    raw = _open(addresses, port, deadline)
    raw.settimeout(STEP_SECONDS)
    if scheme != "https":
        connection = HTTPConnection(host, port, timeout=STEP_SECONDS)
        connection.sock = raw
        return connection
    context = ssl.create_default_context()
    connection = HTTPSConnection(host, port, timeout=STEP_SECONDS, context=context)
    connection.sock = context.wrap_socket(raw, server_hostname=host, do_handshake_on_connect=False)
    return connection


def _open(addresses: list[str], port: int, deadline: float) -> socket.socket:
    """Return a socket to the first address that answers; the last one's error is raised where none does."""
    failure: OSError = TimeoutError()
    for address in addresses:
        if (left := deadline - monotonic()) <= 0:
            break
        try:
            return socket.create_connection((address, port), min(STEP_SECONDS, left))
        except OSError as error:
            failure = error
    raise failure


def _hang_up(connection: socket.socket) -> None:
    with suppress(OSError):  # it may end by itself at this very moment
        # Below TLS, whose state belongs to the thread that waits.
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _is_allowed(address: str) -> bool:
    """Return whether we may connect to an address: any where private ones are allowed, else public ones.

    An IPv6 address that stands for one of IPv4 is as public as that one is.
    """
    if settings.MIRIX_WEBHOOK_ALLOW_PRIVATE:
        return True
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if ip in NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
        if inner is None:
            return ip.is_global and ip in GLOBAL_UNICAST
        ip = inner
    return ip.is_global and not (ip.is_multicast or ip.is_reserved or ip in RELAYS_OF_6TO4)


def _in_words(error: OSError | HTTPException) -> str:
    match error:
        case TimeoutError():
            return _too_slow(STEP_SECONDS)
        case ConnectionRefusedError():
            return "It refused the connection."
        case ssl.SSLCertVerificationError():
            return f"Its certificate is not accepted: {error.verify_message}."
        case ssl.SSLError():
            return "It speaks no TLS that we understand."
        case OSError():
            return "The connection failed."
        case _:
            return "Its answer is not HTTP."


def _too_slow(seconds: float) -> str:
    return f"It did not answer within {seconds} seconds."
