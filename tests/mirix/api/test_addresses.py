"""Whom a request comes from: the connection, or what our own proxies have seen; never what callers claim."""

from __future__ import annotations

import pytest

from mirix.api.addresses import client_address, site_of


@pytest.mark.parametrize(
    ("proxies", "forwarded", "connection", "address"),
    [
        (0, "", "192.0.2.1", "192.0.2.1"),
        (0, "203.0.113.9", "192.0.2.1", "192.0.2.1"),
        (1, "203.0.113.9", "192.0.2.1", "203.0.113.9"),
        (1, "claimed, 203.0.113.9", "192.0.2.1", "203.0.113.9"),
        (2, "claimed, 203.0.113.9, 198.51.100.7", "192.0.2.1", "203.0.113.9"),
        (2, "203.0.113.9", "192.0.2.1", "203.0.113.9"),
        (1, "", "192.0.2.1", None),
        (1, "nonsense", "192.0.2.1", None),
        (0, "", "", None),
        (0, "", "2001:DB8::1", "2001:db8::1"),
        (0, "", "::ffff:192.0.2.1", "192.0.2.1"),
    ],
)
def test_the_address_of_a_request(rf, settings, proxies, forwarded, connection, address):
    settings.MIRIX_TRUSTED_PROXIES = proxies
    request = rf.get("/", REMOTE_ADDR=connection, HTTP_X_FORWARDED_FOR=forwarded)

    assert client_address(request) == address


def test_one_site_of_ipv6_counts_as_one(rf):
    def site(address: str) -> str:
        return site_of(rf.get("/", REMOTE_ADDR=address))

    assert site("2001:db8::1") == site("2001:db8::ffff") == "2001:db8::"
    assert site("2001:db8:0:1::1") == "2001:db8:0:1::"
    assert site("192.0.2.1") == "192.0.2.1"
    assert site("::ffff:192.0.2.1") == "192.0.2.1"
    assert site("fe80::1%eth0") == "fe80::"
    assert site("") == "unknown"
