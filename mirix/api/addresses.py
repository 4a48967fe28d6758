"""Where a request comes from."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address, ip_network

from django.conf import settings
from django.http import HttpRequest

IPV6_SITE = 64
"""Bits of an IPv6 address that stay the same for one household or host, which may choose the rest at will."""


def client_address(request: HttpRequest) -> str | None:
    """Return the caller's address; None where it is not known.

    It is that of the connection, or, behind `MIRIX_TRUSTED_PROXIES` proxies of our own, the one that the
    outermost of them has seen. What callers say of themselves in `X-Forwarded-For` counts for nothing.
    """
    seen = [request.META.get("REMOTE_ADDR", "")]
    if proxies := settings.MIRIX_TRUSTED_PROXIES:
        seen = [*request.META.get("HTTP_X_FORWARDED_FOR", "").split(","), *seen]
        seen = seen[-proxies - 1 :]
    try:
        address = ip_address(seen[0].strip())
    except ValueError:
        return None
    # What listens for both kinds sees IPv4 in the form of IPv6.
    return str((isinstance(address, IPv6Address) and address.ipv4_mapped) or address)


def site_address(request: HttpRequest) -> str | None:
    """Return the address to count by, of IPv6 the network of one site; None where it is not known."""
    address = client_address(request)
    if address and isinstance(ip_address(address), IPv6Address):
        return str(ip_network(f"{address.partition('%')[0]}/{IPV6_SITE}", strict=False).network_address)
    return address


def site_of(request: HttpRequest) -> str:
    """Return the address to count by as text; `unknown` where there is none."""
    return site_address(request) or "unknown"
