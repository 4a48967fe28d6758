"""Outside addresses that a text names. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

TOP_LEVEL = (
    "com|net|org|edu|gov|io|ai|dev|app|co|me|info|biz|xyz|site|online|top|club|cloud|link|click|live|shop"
    "|ru|cn|uk|de|fr|eu|nl|pl|br|in|jp|kr|ca|au|us|ch|es|it|se|tk|ml|onion"
)
URL = re.compile(r"\b(?:https?|ftp|wss?|ssh|git)://[^\s<>\"'`)\]}]+", re.IGNORECASE)
EMAIL = re.compile(r"\b[\w.+-]+@(?P<host>[\w-]+(?:\.[\w-]+)+)\b")
DOMAIN = re.compile(
    rf"(?<![\w@./-])(?:www\.[\w-]+(?:\.[\w-]+)+|(?:[a-z0-9-]+\.)+(?:{TOP_LEVEL}))(?![\w(.-]|\.\w)",
    re.IGNORECASE,
)
LOCAL_HOST = re.compile(
    r"(?:localhost|127\.[\d.]+|0\.0\.0\.0|\[::1\]|10\.[\d.]+|192\.168\.[\d.]+|172\.(?:1[6-9]|2\d|3[01])\.[\d.]+"
    r"|(?:.+\.)?(?:local|internal))(?::\d+)?",
    re.IGNORECASE,
)
RESERVED_HOST = re.compile(
    r"(?:(?:.+\.)?example(?:\.(?:com|net|org))?|(?:.+\.)?(?:test|invalid))(?::\d+)?", re.IGNORECASE
)


def addresses(text: str, *, reserved: bool = False) -> Iterator[str]:
    """Yield the outside URLs, e-mail addresses and domains that a text names, in lower case.

    Hosts that are set aside for examples and tests are left out unless `reserved` ones are wanted too.
    """

    def is_outside(host: str) -> bool:
        return not LOCAL_HOST.fullmatch(host) and (reserved or not RESERVED_HOST.fullmatch(host))

    for match in URL.finditer(text):
        address = match.group().rstrip(".,;:!?").lower()
        host = re.split(r"[/?#]", address.split("://", 1)[1], maxsplit=1)[0].rpartition("@")[2]
        if is_outside(host):
            yield address
    rest = URL.sub(" ", text)
    for match in EMAIL.finditer(rest):
        if is_outside(match["host"]):
            yield match.group().lower()
    for match in DOMAIN.finditer(EMAIL.sub(" ", rest)):
        if is_outside(match.group()):
            yield match.group().lower()
