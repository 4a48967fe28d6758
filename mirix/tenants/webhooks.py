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
from urllib.parse import SplitResult, urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError

STEP_SECONDS = 5
"""How long connecting, sending and each piece of the answer may take."""
TOTAL_SECONDS = 15
"""How long the whole may take, whatever the other side does."""


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
    connection = _connect(parts)
    # A receiver that sends its answer byte by byte would pass every single time-out.
    watchdog = Timer(TOTAL_SECONDS, _hang_up, args=(connection,))
    watchdog.start()
    try:
        path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        connection.request("POST", path, body=body, headers=headers)
        status = connection.getresponse().status
    except (OSError, HTTPException) as error:
        raise WebhookError(_in_words(error)) from error
    finally:
        watchdog.cancel()
        connection.close()
    if not 200 <= status < 300:
        raise WebhookError(f"It answered with status {status}.")


def _connect(parts: SplitResult) -> HTTPConnection:
    """Return a connection to one of the host's addresses, each of which was checked."""
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise WebhookError(f"The host {host} is not known.") from error
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if not all(map(_is_allowed, addresses)):
        raise WebhookError(
            f"The host {host} is no public one; this installation sends to public addresses alone."
        )
    try:
        return _open(parts.scheme, host, port, addresses)
    except OSError as error:
        raise WebhookError(_in_words(error)) from error


def _open(scheme: str, host: str, port: int, addresses: list[str]) -> HTTPConnection:
    """Connect to the first address that answers; the last one's error is raised where none does."""
    *others, last = addresses
    for address in others:
        try:
            raw = socket.create_connection((address, port), STEP_SECONDS)
            break
        except OSError:
            continue
    else:
        raw = socket.create_connection((last, port), STEP_SECONDS)
    connection: HTTPConnection
    if scheme == "https":
        context = ssl.create_default_context()
        connection = HTTPSConnection(host, port, timeout=STEP_SECONDS, context=context)
        try:
            connection.sock = context.wrap_socket(raw, server_hostname=host)
        except OSError:
            raw.close()
            raise
    else:
        connection = HTTPConnection(host, port, timeout=STEP_SECONDS)
        connection.sock = raw
    return connection


def _hang_up(connection: HTTPConnection) -> None:
    with suppress(OSError, AttributeError):  # it may end by itself at this very moment
        connection.sock.shutdown(socket.SHUT_RDWR)


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _is_allowed(address: str) -> bool:
    """Return whether we may connect to an address: any where private ones are allowed, else public ones."""
    if settings.MIRIX_WEBHOOK_ALLOW_PRIVATE:
        return True
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        ip = inner or ip
    return ip.is_global and not (ip.is_multicast or ip.is_reserved)


def _in_words(error: OSError | HTTPException) -> str:
    match error:
        case TimeoutError():
            return f"It did not answer within {STEP_SECONDS} seconds."
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
