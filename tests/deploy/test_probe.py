"""The health check of the web's container."""

from __future__ import annotations

import pytest

from mirix.probe import served_host


@pytest.mark.parametrize(
    ("allowed", "host"),
    [
        ("mirix.example.org", "mirix.example.org"),
        ("mirix.example.org, other.example.org", "mirix.example.org"),
        (".example.org", "example.org"),
        ("[::1],localhost", "[::1]"),
        ("*", "localhost"),
        ("", "localhost"),
    ],
)
def test_it_asks_under_a_host_that_is_served(allowed, host):
    assert served_host(allowed) == host
