"""Outside addresses that a text names. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import ip_address

TOP_LEVEL = (
    "com|net|org|edu|gov|io|ai|dev|app|co|me|info|biz|xyz|site|online|top|club|cloud|link|click|live|shop"
    "|ru|cn|uk|de|fr|eu|nl|pl|br|in|jp|kr|ca|au|us|ch|es|it|se|tk|ml|onion"
)
URL = re.compile(r"(?<![\w+.-])[a-z][a-z0-9+.-]{1,20}://[^\s<>\"'`)\]}]+", re.IGNORECASE)
EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]++@(?P<host>[\w-]+(?:\.[\w-]+)+)\b")
DOMAIN = re.compile(
    rf"(?<![\w@./-])(?:www\.[\w-]+(?:\.[\w-]+)+|(?:[\w-]+\.)+(?:{TOP_LEVEL}))(?![\w(-]|\.\w)", re.IGNORECASE
)
NUMBERS = re.compile(r"(?<![\w.:/-])(?<!version )(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\d)", re.IGNORECASE)
STORES = ("s3", "gs")
"""Schemes whose host is a bucket, by one word, wherever that may be."""
LOCAL_HOST = re.compile(
    r"(?:localhost|127\.[\d.]+|0\.0\.0\.0|\[::1\]|10\.[\d.]+|192\.168\.[\d.]+|172\.(?:1[6-9]|2\d|3[01])\.[\d.]+"
    r"|(?:.+\.)?(?:local|internal))(?::\d+)?",
    re.IGNORECASE,
)
RESERVED_HOST = re.compile(
    r"(?:(?:.+\.)?example(?:\.(?:com|net|org))?|(?:.+\.)?(?:test|invalid))(?::\d+)?", re.IGNORECASE
)

NAMES_A_NETWORK = re.compile(r"\.|^(?:0x[0-9a-f]+|\d{5,})(?::\d+)?$|^\[")
"""A host of one word is one of the house; a single number is an IP address in another spelling."""
FULL_STOPS = dict.fromkeys(map(ord, "。．｡"), ".")
"""Which the names of hosts may be written with."""


def addresses(text: str, *, reserved: bool = False, everywhere: bool = False) -> Iterator[str]:
    """Yield the outside URLs, e-mail addresses and domains that a text names, in lower case.

    Hosts that are set aside for examples and tests are left out unless `reserved` ones are wanted too; with
    `everywhere`, so are those of the house and of the machine itself.
    """

    def is_outside(host: str) -> bool:
        return everywhere or _is_outside(host, reserved=reserved)

    text = text.translate(FULL_STOPS)
    for match in URL.finditer(text):
        address = match.group().rstrip(".,;:!?*_").lower()
        scheme, _, rest = address.partition("://")
        host = re.split(r"[/?#\\]", rest, maxsplit=1)[0].rpartition("@")[2]
        if is_outside(host) and (everywhere or scheme in STORES or NAMES_A_NETWORK.search(host)):
            yield address
    rest = URL.sub(" ", text)
    for match in EMAIL.finditer(rest):
        if is_outside(match["host"]):
            yield match.group().lstrip(".+-").lower()
    rest = EMAIL.sub(" ", rest)
    for match in DOMAIN.finditer(rest):
        if is_outside(match.group()):
            yield match.group().lower()
    for match in NUMBERS.finditer(rest):
        if _is_public(match.group()):
            yield match.group()


def _is_outside(host: str, *, reserved: bool) -> bool:
    return not LOCAL_HOST.fullmatch(host) and (reserved or not RESERVED_HOST.fullmatch(host))


def _is_public(number: str) -> bool:
    try:
        return ip_address(number).is_global
    except ValueError:
        return False
