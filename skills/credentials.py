"""What a password or a key looks like: by its form, or by the name that it is given under. Pure."""

from __future__ import annotations

import re

CREDENTIAL = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|\b(?:sk|pk|rk)[-_](?:live|test|proj|ant|or)?[-_]?[A-Za-z0-9_-]{16,}"
    r"|\bAKIA[0-9A-Z]{16}\b|\bAIza[\w-]{30,}|\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_\w{20,}"
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,}|\bglpat-[\w-]{16,}|\bmx_[A-Za-z0-9]{4,}_[\w-]{16,}"
    r"|\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}"
    r"|\b[a-z][a-z0-9+.-]{0,30}://[^\s:/@]{1,200}:[^\s@/]{3,200}@"
    r"|(?i:\b(?:password|passwd|pwd|secret|api[-_ ]?key|(?:access|auth)[-_ ]?token)\b[\"']?"
    r"\s*(?:[:=]|\bis\b)\s*[\"']?"
    r"(?=[^\s\"'<>{}$*]*\d)(?P<named>[^\s\"'<>{}$*]{8,}))"
    r"|(?i:\bauthorization:\s*(?:bearer|basic)\s+[\w.~+/=-]{12,})"
)
"""A secret in a text; group `named` is the secret alone where words in front of it say what it is."""

_NAME = re.compile(
    r"(?:^|[_.-]|(?<=[a-z])(?=[A-Z]))(?:password|passwd|pwd|passphrase|passcode|secret|token|api[_-]?key"
    r"|(?:access|private|secret)[_-]?key|credentials?|authorization|auth|pin|cvv|cvc|otp)$",
    re.IGNORECASE,
)


def names_a_secret(argument: str) -> bool:
    """Whether an argument's own name says that its value is nobody else's business."""
    return _NAME.search(argument) is not None
