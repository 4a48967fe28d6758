"""Instructions that no skill should give an agent without a second look. Pure."""

from __future__ import annotations

import re


def _any(*patterns: str) -> str:
    return f"(?:{'|'.join(patterns)})"


_NOT = (
    r"(?P<not>\b(?:never|not|n't|n’t|avoid|without|instead of|rather than|refuse to|forbidden to)\b"
    r"[^.;:,!\n]{0,24})?"
)
_SWITCHES_OFF = _any(
    r"(?:disabl|bypass|deactivat|suppress|circumvent|overrid|remov|ignor|skip)(?:e|es|ing|ping)?",
    r"(?:turn|switch)(?:ing)? off",
    r"(?:get|work)(?:ting|ing)? around",
)
_SAFEGUARD = _any(
    *(r"safe(?:ty|guards?)", "security", "verif(?:y|ication)", "validat(?:e|ion)", "confirmations?"),
    *("approvals?", "permissions?", "(?:pre-?commit |commit |git )?hooks?", "firewalls?", "antivirus"),
    *("sandbox(?:ing)?", "guardrails?", "ssl", "tls", "certificate (?:checks?|verification|validation)"),
    *("2fa", "mfa", "two-factor", "audit(?:ing| logs?)?", "logging", "authentication", "authorization"),
    *("access controls?", "rate limits?", "identity checks?", "checks"),
)
SAFEGUARD_OFF = re.compile(rf"{_NOT}\b{_SWITCHES_OFF}\s+(?:\w+\s+){{0,4}}?{_SAFEGUARD}\b", re.IGNORECASE)
_OPTION = _any(
    *("no-verify", "insecure", "no-check-certificate", r"dangerously[\w-]*", "allow-root", "trust-all"),
    *("disable-(?:security|web-security|sandbox)", "no-sandbox", "skip-(?:checks|verify|validation)"),
)
_SWITCH = _any(
    rf"(?<![\w-])--{_OPTION}(?![\w-])",
    *(r"\bverify\s*=\s*False\b", r"\bStrictHostKeyChecking[= ]no\b", r"\bchmod\s+(?:-R\s+)?777\b"),
    *(r"\bcurl\b[^\n|]*\s-k\b", r"\bNODE_TLS_REJECT_UNAUTHORIZED\s*=\s*0", r"\bsetenforce\s+0\b"),
    r"\b(?:curl|wget)\b[^\n|]*\|\s*(?:sudo\s+)?(?:ba|z)?sh\b",
)
SWITCH = re.compile(_NOT + _SWITCH, re.IGNORECASE)
_SENDS = (
    r"(?:send|post|upload|forward|share|e-?mail|copy|transmit|exfiltrate|submit|report|leak|push|reveal"
    r"|disclose)(?:s|ing)?"
)
_PRIVATE = _any(
    *("passwords?", "credentials?", "(?:api |access |auth |secret |private )?(?:keys?|tokens?)", "secrets?"),
    *("cookies?", "(?:card|account|social security|ssn|phone) numbers?", r"environment variables", r"\.env"),
    *("personal (?:data|information|details)", "(?:chat|conversation) (?:history|logs?)", "source code"),
    "customer(?:'s|s'|s)? (?:data|records?|details|information|addresses)",
    "the (?:whole )?(?:conversation|transcript|database)",
)
_OUTSIDE = _any(
    *("https?://", r"[\w.+-]+@[\w-]+\.", "e-?mail", "webhooks?", "pastebin", "someone", r"us\b", r"me\b"),
    r"(?:an? |the )?(?:external|outside|remote|third[- ]party)\b",
    *("another (?:server|host|party)", "this (?:address|url|server|number)"),
)
_TO = r"\b(?:to|at|via|through|with|into|on)\b"
SENT_AWAY = re.compile(
    rf"{_NOT}\b{_SENDS}\b[^.;\n]{{0,60}}?\b{_PRIVATE}\b[^.;\n]{{0,60}}?{_TO}[^.;\n]{{0,30}}?{_OUTSIDE}",
    re.IGNORECASE,
)


def disables_safeguards(old: str, new: str) -> bool:
    """Whether the new text tells an agent to switch a safeguard off, more often than the old one did."""
    return _orders(new, SAFEGUARD_OFF, SWITCH) > _orders(old, SAFEGUARD_OFF, SWITCH)


def sends_data_away(old: str, new: str) -> bool:
    """Whether the new text tells an agent to send secrets or personal data out of the house."""
    return _orders(new, SENT_AWAY) > _orders(old, SENT_AWAY)


def _orders(text: str, *patterns: re.Pattern[str]) -> int:
    """Count what is ordered; what is forbidden does not count."""
    return sum(match["not"] is None for pattern in patterns for match in pattern.finditer(text))
