"""Secrets in what comes from outside: found by their form or by the name they are given under. Pure.

A secret gives way to a marker that says what stood there, `[redacted: api key]`. What stands around it stays:
of `postgres://app:hunter2x@db` the password alone is replaced. Markers are no secrets, so redacting twice is
redacting once. Each form is looked for only where a word that belongs to it occurs, so that texts without
secrets, nearly all, cost a few substring searches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

MAX_DEPTH = 100
MAX_PASSES = 8
MIN_CHARS = 7
"""No secret, with the words that tell it, is shorter."""
MAX_KNOWN = 500
MIN_KNOWN_CHARS = 6
MARKER = re.compile(r"\[redacted: [a-z ]+\]")
_NO_MARKER = r"(?!\[redacted: )"

_NAME = re.compile(
    r"(?i:password|passwd|passphrase|passcode|secret|token|api[_\s-]?key"
    r"|(?:access|private|secret|account|encryption)[_\s-]?key)$"
    # Ends of other words too, as in "spin": these stand alone, or where a word of a name begins.
    r"|(?:^|(?<![A-Za-z])|(?<=[a-z])(?=[A-Z]))(?i:pwd|credentials?|authorization|auth|cookie|pin|cvv2?|cvc2?|otp)$"
)
_NUMBERED = re.compile(r"(?i:pin|passcode|password|passwd|pwd|cvv2?|cvc2?|otp)$")
"""Names under which numbers are secrets too, beside `_NAME`."""

_NAMED = (
    r"(?:password|passwd|passphrase|passcode|(?<![a-z])pwd|secret(?:[-_ ]?(?:access[-_ ]?)?key)?|api[-_ ]?key"
    r"|(?:access|account|private|encryption)[-_ ]?key|(?<![a-z])(?:[a-z]{2,12}[-_ ]?)?token)"
)
_VALUE = (
    r"(?=[^\s\"'<>{}$*]{0,200}\d)(?![a-z_][\w.]*[(\[])"
    rf"(?P<secret>(?:{_NO_MARKER}[^\s\"'<>{{}}$*`]){{6,}})"
)


@dataclass(frozen=True)
class _Form:
    """What one sort of secret looks like; the group `secret` of the pattern is the secret alone."""

    label: str
    hints: tuple[str, ...]
    """One of these, in small letters, stands in every text that holds such a secret."""
    pattern: re.Pattern[str]
    holds: Callable[[str], bool] = bool
    """Whether what looks like it is one."""
    is_long: bool = False
    """Whether it is a word of at least 16 characters, which spares most texts the many hints."""


def _is_card(text: str) -> bool:
    """Whether digits are a card's number: of a length that its issuer uses, with the right last digit."""
    digits = re.sub(r"[ -]", "", text)
    if not _ISSUED.fullmatch(digits):
        return False
    doubled = (int(digit) * 2 for digit in digits[-2::-2])
    total = sum(map(int, digits[-1::-2])) + sum(part - 9 if part > 9 else part for part in doubled)
    return total % 10 == 0


_ISSUED = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|(?:6011|65\d\d|64[4-9]\d)\d{12}|62\d{14,17}|3(?:0[0-5]|[689]\d)\d{11}|35(?:2[89]|[3-8]\d)\d{12}",
    re.ASCII,
)

_FORMS = (
    _Form(
        "private key",
        ("private key",),
        re.compile(
            r"(?P<secret>-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:(?:(?!-----BEGIN ).){0,20000}?-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            # Without its end: the lines of a key that was cut.
            r"|(?:(?:\s|\\[rn])*"
            r"(?:[\w-]{2,20}: [^\n\\]{1,100}|[A-Za-z0-9+/=]{16,}|[A-Za-z0-9+/]{0,60}={1,2}))*))",
            re.DOTALL,
        ),
    ),
    _Form(
        "api key",
        (
            *(
                "sk-",
                "sk_",
                "pk_",
                "pk-",
                "rk_",
                "rk-",
                "akia",
                "asia",
                "aiza",
                "ghp_",
                "gho_",
                "ghu_",
                "ghs_",
            ),
            *(
                "ghr_",
                "github_pat_",
                "xox",
                "xapp-",
                "glpat-",
                "mx_",
                "npm_",
                "pypi-",
                "hf_",
                "sg.",
                "whsec_",
            ),
            *("ya29.", "gocspx-", "dapi", "dop_v1_", "shpat_", "shpss_", "gsk_", "r8_"),
        ),
        re.compile(
            r"(?P<secret>\b(?:sk|pk|rk)[-_](?:live|test|proj|ant|or)?[-_]?(?=[a-zA-Z_-]{0,60}\d)[A-Za-z0-9_-]{16,}"
            r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[\w-]{30,}|\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_\w{20,}"
            r"|\bxox[abeprs]-[A-Za-z0-9-]{10,}|\bxapp-\d-[A-Za-z0-9-]{10,}|\bglpat-[\w-]{16,}"
            r"|\bmx_[A-Za-z0-9]{4,}_[\w-]{16,}|\bnpm_[A-Za-z0-9]{30,}|\bpypi-[\w-]{40,}|\bhf_[A-Za-z0-9]{30,}"
            r"|\bSG\.[\w-]{16,}\.[\w-]{16,}|\bwhsec_[\w-]{16,}|\bya29\.[\w-]{20,}|\bGOCSPX-[\w-]{20,}"
            r"|\bdapi[0-9a-f]{32}\b|\bdop_v1_[0-9a-f]{40,}|\bshp(?:at|ss)_[0-9a-f]{32}\b|\bgsk_[A-Za-z0-9]{30,}"
            r"|\br8_[A-Za-z0-9]{30,})"
        ),
        is_long=True,
    ),
    _Form("token", ("eyj",), re.compile(r"(?P<secret>\beyJ[\w-]{8,2000}\.eyJ[\w-]{8,}\.[\w-]{8,})")),
    _Form(
        "token",
        ("bearer", "basic", "token", "apikey"),
        re.compile(
            r"(?:\bauthorization[\"']?\s*[:=]\s*[\"']?(?:bearer|basic|token|apikey)\s+(?=[\w.~+/=-]{8})"
            r"|\b(?:bearer|basic|token|apikey)\s+(?=[\w.~+/=-]{0,200}\d)(?=[\w.~+/=-]{16}))"
            r"(?P<secret>[\w.~+/-]+={0,2})",
            re.IGNORECASE,
        ),
    ),
    _Form(
        "webhook", ("hooks.slack.com/services/",), re.compile(r"services/(?P<secret>T\w{6,}/B\w{6,}/\w{16,})")
    ),
    _Form(
        "password",
        ("://",),
        re.compile(
            rf"\b[a-z][a-z0-9+.-]{{0,30}}://[^\s:/@]{{0,200}}:(?P<secret>(?:{_NO_MARKER}[^\s@/]){{3,200}})@",
            re.IGNORECASE,
        ),
    ),
    _Form(
        "token",
        ("token=", "key=", "secret=", "password=", "signature=", "sig=", "pwd=", "passwd="),
        re.compile(
            r"[?&;][\w.-]{0,40}(?:token|key|secret|password|passwd|pwd|signature|sig)="
            rf"(?=[^\s&#\"'<>]{{0,200}}\d)(?P<secret>(?:{_NO_MARKER}[^\s&#\"'<>{{}}$*;]){{8,}})",
            re.IGNORECASE,
        ),
    ),
    _Form(
        "secret",
        ("password", "passwd", "passphrase", "passcode", "pwd", "secret", "key", "token"),
        re.compile(rf"{_NAMED}\b[\"'`]?\s*(?::=|=>|[:=]|\bis\b)\s*[\"'`]?{_VALUE}", re.IGNORECASE),
    ),
    _Form(
        "secret",
        ("--pass", "--token", "--api", "--secret", "--pwd"),
        re.compile(
            rf"--(?:pass(?:word|wd)?|pwd|token|api[-_]?key|secret)(?:=|\s+)[\"']?{_VALUE}", re.IGNORECASE
        ),
    ),
    _Form(
        "code",
        ("cvv", "cvc", "security code", "pin"),
        re.compile(
            r"\b(?:(?:cvv2?|cvc2?|security code)\W{0,3}(?:is|number|code)?\W{0,3}(?P<secret>[0-9]{3,4})"
            r"|pin(?: code| number)?\s*(?:[:=]|\bis\b)\s*(?P<pin>[0-9]{4,8}))(?![\w.]*\w)",
            re.IGNORECASE,
        ),
    ),
)
_CARD = _Form(
    "card number",
    (),
    re.compile(
        r"(?<![\w.+#/-])(?P<secret>[2-6](?:[0-9]{12,18}|"
        r"[0-9]{3}(?P<gap>[ -])[0-9]{4,6}(?:(?P=gap)[0-9]{4,5}){1,3}))(?![\w/-]|\.\w)"
    ),
    _is_card,
)
_LONG_WORD = re.compile(r"[\w.-]{16}")
_PLACEHOLDER = re.compile(
    r"your|xxx|placeholder|\.\.\.|change_?me|\*\*\*|\A(?:password|passwd|secret)\Z", re.IGNORECASE
)
_TWELVE_DIGITS = re.compile(r"[2-6][0-9 -]{12}")

# In JSON, and in JSON within JSON: "password": "…" with any value.
_KEY = re.compile(
    r"(?P<mark>\\{0,7}[\"'])(?P<name>[\w .-]{2,60})(?P=mark)\s{0,20}:\s{0,20}(?P<open>\\{0,7}[\"'])"
)
_UNESCAPED = {
    '"': re.compile(r'(?:[^"\\]|\\.)*', re.DOTALL),
    "'": re.compile(r"(?:[^'\\]|\\.)*", re.DOTALL),
}
_PAIR_HINTS = (
    *("password", "passwd", "pwd", "passphrase", "passcode", "secret", "token", "key", "credential", "auth"),
    *("cookie", "pin", "cvv", "cvc", "otp"),
)


def redact(text: str) -> str:
    """Return `text` with a marker in the place of each secret."""
    if len(text) < MIN_CHARS:
        return text
    return replace_secrets(text, lambda secret, label: f"[redacted: {label}]")


def redact_json(value: Any, redact: Callable[[str], str] = redact) -> Any:
    """Return a JSON value with its texts redacted; what stands under the name of a secret goes as a whole.

    `redact` is what is done to each text.
    """
    return _redacted(value, "", redact, MAX_DEPTH)


def redaction_of(values: Any) -> Callable[[str], str]:
    """Return `redact` that knows, besides, what stands under the names of secrets in some JSON values.

    These it replaces wherever they occur, as whole words. Short ones without a digit may be any word.
    """
    known = sorted(set(_secrets_in(values, "", MAX_DEPTH)), key=lambda text: (-len(text), text))[:MAX_KNOWN]
    if not known:
        return redact
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, known))})(?!\w)")
    return lambda text: redact(pattern.sub("[redacted: secret]", text))


def _secrets_in(value: Any, name: str, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        text = value.strip()
        is_telling = len(text) >= MIN_KNOWN_CHARS and (len(text) >= 12 or not text.isalpha())
        if name and is_telling and names_a_secret(name) and not MARKER.fullmatch(text):
            yield text
    elif isinstance(value, dict) and depth > 0:
        for key, item in value.items():
            yield from _secrets_in(item, key, depth - 1)
    elif isinstance(value, list) and depth > 0:
        for item in value:
            yield from _secrets_in(item, name, depth - 1)


def holds_secret(text: str) -> bool:
    """Whether a text holds something in the form of a password or a key.

    The mere word is harmless, and so is what only stands in for one, as `your-key-1`.
    """
    return any(
        not _PLACEHOLDER.search(_secret(match)[0])
        for form in _forms(text, text.lower())
        if form is not _CARD
        for match in form.pattern.finditer(text)
    )


def names_a_secret(name: str) -> bool:
    """Whether an argument's or a field's own name says that its value is nobody else's business."""
    return _NAME.search(name) is not None


def replace_secrets(text: str, cover: Callable[[str, str], str]) -> str:
    """Return `text` with each secret replaced by what `cover` makes of it and of the name of its sort."""
    for _ in range(MAX_PASSES):
        # Once more after a change: what was cut out may have hidden where another secret begins.
        before, text = text, _replaced_once(text, cover)
        if text == before:
            break
    return text


def _replaced_once(text: str, cover: Callable[[str, str], str]) -> str:
    lowered = text.lower()
    for form in _forms(text, lowered):
        text = form.pattern.sub(lambda match, form=form: _covered(form, match, cover), text)  # type: ignore[misc]
    if any(hint in lowered for hint in _PAIR_HINTS):
        text = _pairs_replaced(text, cover)
    return text


def _pairs_replaced(text: str, cover: Callable[[str, str], str]) -> str:
    """Cover the values that stand in a text as JSON, each under the name of a secret."""
    parts: list[str] = []
    position = 0
    for match in _KEY.finditer(text):
        start = match.end()
        if start < position or not names_a_secret(match["name"]):
            continue
        end = _end_of_value(text, start, match["open"])
        secret = text[start:end]
        if secret.strip() and not MARKER.fullmatch(secret):
            parts += (text[position:start], cover(secret, "secret"))
            position = end
    return "".join((*parts, text[position:]))


def _end_of_value(text: str, start: int, mark: str) -> int:
    """Return where a value in quotation marks ends; at the end of the text where it was cut."""
    if found := _UNESCAPED.get(mark):
        match = found.match(text, start)
        return match.end() if match else start
    end = text.find(mark, start)
    while end > start and text[end - 1] == "\\":  # escaped once more: of a value within the value
        end = text.find(mark, end + 1)
    return len(text) if end < 0 else end


def _forms(text: str, lowered: str) -> Iterator[_Form]:
    """Yield the forms that a text may hold."""
    has_long_word = _LONG_WORD.search(text) is not None
    for form in _FORMS:
        if (has_long_word or not form.is_long) and any(hint in lowered for hint in form.hints):
            yield form
    if _TWELVE_DIGITS.search(text):
        yield _CARD


def _is_secret(form: _Form, match: re.Match[str]) -> bool:
    return form.holds(_secret(match)[0])


def _secret(match: re.Match[str]) -> tuple[str, int, int]:
    """Return the secret alone, and where it stands in its match."""
    group = "secret" if match["secret"] is not None else "pin"
    start, end = match.span(group)
    return match[group], start - match.start(), end - match.start()


def _covered(form: _Form, match: re.Match[str], cover: Callable[[str, str], str]) -> str:
    if not _is_secret(form, match):
        return match[0]
    secret, start, end = _secret(match)
    return match[0][:start] + cover(secret, form.label) + match[0][end:]


def _named(entry: dict[str, Any]) -> str:
    """Return what the value of an entry is called, as in `{"name": "password", "value": "…"}`."""
    return next((str(entry[key]) for key in ("name", "key", "field") if key in entry), "")


def _redacted(value: Any, name: str, redact: Callable[[str], str], depth: int) -> Any:
    if isinstance(value, str):
        if name and names_a_secret(name) and value.strip() and not MARKER.fullmatch(value):
            return "[redacted: secret]"
        return redact(value)
    if isinstance(value, dict) and depth > 0:
        return {
            redact(key): _redacted(item, _named(value) if key == "value" else key, redact, depth - 1)
            for key, item in value.items()
        }
    if isinstance(value, list) and depth > 0:
        return [_redacted(item, name, redact, depth - 1) for item in value]
    if type(value) in (int, float) and _NUMBERED.search(name) and names_a_secret(name):
        return "[redacted: secret]"
    if type(value) is int and _is_card(str(value)):
        return "[redacted: card number]"
    return value
