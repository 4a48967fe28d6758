"""Instructions that no skill should give an agent without a second look. Pure."""

from __future__ import annotations

import re

from skills.review.disguise import undisguised


def _any(*patterns: str) -> str:
    return f"(?:{'|'.join(patterns)})"


_NOT = (
    r"(?P<not>\b(?:never|not|n't|avoid|without|instead of|rather than|refuse to|forbidden to)\b"
    # "Do not hesitate to" forbids nothing.
    r"(?!\s+(?:only|just)\b)(?![^.;:,!\n]{0,12}\b(?:hesitate|forget|fail|worry|afraid|mind)\b)"
    r"[^.;:,!\n]{0,24})?"
)
_VERBS = _any(
    *("disabl", "bypass", "deactivat", "suppress", "circumvent", "overrid", "remov", "ignor", "skip"),
    *("defeat", "neutrali[sz]", "relax", "stop"),
)
_SWITCHES_OFF = _any(
    rf"{_VERBS}(?:e|es|ing|ping)?",
    r"(?:turn|switch|shut)(?:ing|ting)? (?:off|down)",
    r"(?:get|work)(?:ting|ing)? around",
    r"opt(?:ing)? out of",
)
_SAFEGUARD = _any(
    *(r"safe(?:ty|guards?)", "security", "verif(?:y|ication)", "validat(?:e|ion)", "confirmations?"),
    *("approvals?", "permissions?", "(?:pre-?commit |commit |git )?hooks?", "firewalls?", "antivirus"),
    *("sandbox(?:ing)?", "guardrails?", "ssl", "tls", "certificate (?:checks?|verification|validation)"),
    *("2fa", "mfa", "two-factor", "audit(?:ing| logs?)?", "logging", "authentication", "authorization"),
    *("access controls?", "rate limits?", "identity checks?", "checks"),
)
_ASKED = _any(
    r"(?:(?:a|the|any|their|user|human|explicit) )*"
    r"(?:confirmation|approval|permission|authorization|consent)",
    r"(?:(?:a|the|any) )*(?:verification|validation|authentication|identity check)",
)
_DOES = (
    r"(?:proceed|continue|go ahead|run|execute|delete|remove|send|pay|charge|refund|cancel|book|merge|push"
    r"|deploy|install|act|do (?:it|so|this|that)|apply|commit|publish|transfer|approve)"
)
_DOES_NOT = r"\b(?:do not|don't|never|no need to|need not|stop)\s+"
SAFEGUARD_OFF = re.compile(
    _any(
        rf"{_NOT}\b{_SWITCHES_OFF}\s+(?:\w+\s+){{0,4}}?{_SAFEGUARD}\b",
        rf"\b(?:turn|switch|shut)\s+(?:\w+\s+){{1,4}}?{_SAFEGUARD}\s+(?:\w+\s+)?(?:off|down)\b",
        rf"\b(?:keep|leave|set|with|have)\s+(?:\w+\s+){{0,3}}?{_SAFEGUARD}\s+(?:\w+\s+)?"
        r"(?:disabled|off|deactivated|bypassed|skipped)\b",
    ),
    re.IGNORECASE,
)
NOT_ASKED = re.compile(
    _any(
        rf"{_NOT}\b{_DOES}\b[^.;:!\n]{{0,40}}?\bwithout\s+(?:first\s+)?"
        r"(?:(?:asking|waiting|prompting|checking)\s+)?(?:(?:the )?(?:user|customer|anyone)\s+)?"
        rf"(?:for\s+)?{_ASKED}\b",
        rf"{_DOES_NOT}(?:even\s+|first\s+)?"
        rf"(?:ask(?:ing)?(?: \w+){{0,3}}? for|request(?:ing)?|requir(?:e|ing)|wait(?:ing)? for|seek(?:ing)?"
        rf"|perform(?:ing)?|do|obtain(?:ing)?)\s+{_ASKED}\b",
        rf"{_DOES_NOT}(?:verify(?:ing)?|validat(?:e|ing)|authenticat(?:e|ing))\b",
    ),
    re.IGNORECASE,
)
_OPTION = _any(
    *("no-verify", "insecure", "no-check-certificate", r"dangerously[\w-]*", "allow-root", "trust-all"),
    *("disable-(?:security|web-security|sandbox)", "no-sandbox", "skip-(?:checks|verify|validation)"),
    *("no-gpg-check", "nogpgcheck", "allow-unauthenticated", "privileged", "yolo", "accept-all"),
)
_FETCH = r"(?:curl|wget|iwr|irm|invoke-webrequest|invoke-restmethod|fetch)"
_SHELL = r"(?:(?:/\w+)*/)?(?:(?:ba|z|k|da|a)?sh|pwsh|powershell|iex|invoke-expression|perl|ruby|node|php)"
_LINE = r"(?:[^\n]|\\\n)"
_SWITCH = _any(
    rf"(?<![\w-])--{_OPTION}(?![\w-])",
    *(r"\bverify\s*[=:]\s*False\b", r"\bStrictHostKeyChecking[= ]no\b"),
    r"\bchmod\s+(?:-R\s+)?(?:0?777|a\+rwx)\b",
    *(r"\bcurl\b[^\n|]*\s-\w*k\b", r"\bNODE_TLS_REJECT_UNAUTHORIZED\s*=\s*[\"']?0", r"\bsetenforce\s+0\b"),
    *(
        r"\brejectUnauthorized\s*[=:]\s*false\b",
        r"\bsslmode\s*=\s*disable\b",
        r"\bsslVerify\s*[= ]\s*false\b",
    ),
    *(r"\bstrict-ssl\s*[= ]\s*false\b", r"\bHUSKY\s*=\s*0\b", r"\bufw\s+disable\b", r"\biptables\s+-F\b"),
    r"\bSet-ExecutionPolicy\b[^\n]{0,40}\b(?:Bypass|Unrestricted)\b",
    r"\b_create_unverified_context\b",
    # What comes from the net is run unseen.
    rf"\b{_FETCH}\b{_LINE}{{0,300}}?\|\s*(?:\\\n\s*)?(?:sudo\s+(?:-\S+\s+)*|env\s+)?{_SHELL}(?![\w.-])(?!\s+-m\b)",
    rf"\b{_FETCH}\b{_LINE}{{0,300}}?\|\s*(?:sudo\s+)?python[\d.]*(?=\s*(?:$|[;&|`\"')]|-(?:\s|$)))",
    rf"(?:\b(?:{_SHELL}|source|eval)|(?<=\s)\.)\s+(?:-c\s+)?[\"']?(?:<\(|\$\(|`)\s*(?:sudo\s+)?{_FETCH}\b",
    rf"\b(?:iex|invoke-expression)\b[^\n]{{0,60}}\b(?:{_FETCH}|downloadstring)\b",
    rf"\bbase64\s+(?:-d|-D|--decode)\b[^\n|]{{0,100}}\|\s*(?:sudo\s+)?{_SHELL}\b",
)
SWITCH = re.compile(_NOT + _SWITCH, re.IGNORECASE | re.MULTILINE)
_SENDS = (
    r"(?:send|post|upload|forward|share|e-?mail|mail|bcc|cc|copy|transmit|exfiltrate|submit|report|leak|push|reveal"
    r"|disclose|deliver|dump|publish|relay|paste)(?:s|ing)?"
)
_SENT = (
    r"(?:sent|posted|uploaded|forwarded|shared|e-?mailed|mailed|copied|transmitted|submitted|reported|leaked|pushed"
    r"|disclosed|delivered|published|relayed)"
)
_FILE = _any(
    r"\.env\b",
    r"id_(?:rsa|ed25519|ecdsa)\b",
    r"\.ssh/",
    r"\.aws/",
    r"\.netrc\b",
    r"\.npmrc\b",
    r"/etc/(?:passwd|shadow)\b",
)
_PRIVATE = _any(
    *(
        "passwords?",
        "credentials?",
        "(?:api |access |auth |ssh |secret |private )?(?:keys?|tokens?)",
        "secrets?",
    ),
    *("cookies?", "(?:card|account|social security|ssn|phone) numbers?", r"environment variables", r"\.env"),
    *("personal (?:data|information|details)", "(?:chat|conversation) (?:history|logs?)", "source code"),
    "(?:customer|user)(?:'s|s'|s)? (?:data|records?|details|information|addresses|messages)",
    "the (?:whole |entire |full )?(?:conversation|transcript|database|system prompt|session)",
    *(
        "(?:every|all)(?:thing)? (?:the )?(?:user|customer)(?:'s)? (?:says|said|writes|wrote|messages)",
        "private data",
    ),
)
_OUTSIDE = _any(
    *("https?://", r"[\w.+-]+@[\w-]+\.", "e-?mail", "webhooks?", "pastebin", "someone", r"us\b", r"me\b"),
    r"(?:an? |the )?(?:external|outside|remote|third[- ]party)\b",
    *("another (?:server|host|party)", "this (?:address|url|server|number)"),
)
_TO = r"\b(?:to|at|via|through|with|into|on)\b"
SENT_AWAY = re.compile(
    _any(
        rf"{_NOT}\b{_SENDS}\b[^.;\n]{{0,60}}?(?<!\w){_PRIVATE}\b[^.;\n]{{0,60}}?"
        rf"{_TO}[^.;\n]{{0,30}}?{_OUTSIDE}",
        rf"\b{_SENDS}\s+(?:to\s+)?(?:https?://\S+|[\w.+-]+@[\w.-]+\w)[^.;\n]{{0,40}}?(?<!\w){_PRIVATE}\b",
        rf"\b{_PRIVATE}\b[^.;\n]{{0,40}}?\b(?:must|should|shall|(?:needs?|has|have|is|are) to|to)\s+"
        rf"(?:always\s+)?be\s+{_SENT}\b[^.;\n]{{0,40}}?{_TO}[^.;\n]{{0,30}}?{_OUTSIDE}",
    ),
    re.IGNORECASE,
)
_UPLOADS = r"(?:-d|--data(?:-\w+)?|-F|--form|-T|--upload-file|--post-file|--body-file|-InFile)"
PIPED_AWAY = re.compile(
    _any(
        rf"\b{_FETCH}\b[^\n]{{0,200}}?\s{_UPLOADS}[ =]?[^\n]{{0,60}}?{_FILE}",
        rf"{_FILE}[^\n]{{0,80}}?\|\s*(?:base64[^\n|]{{0,20}}\|\s*)?(?:curl|nc|ncat|netcat|wget|telnet|mail|sendmail)\b",
        r"\b(?:env|printenv)\s*\|\s*(?:base64[^\n|]{0,20}\|\s*)?(?:curl|nc|ncat|netcat|wget|mail|sendmail)\b",
        rf"\b(?:scp|rsync|sftp)\b[^\n]{{0,80}}?{_FILE}[^\n]{{0,60}}?\S+:",
    ),
    re.IGNORECASE,
)


def disables_safeguards(old: str, new: str) -> bool:
    """Whether the new text tells an agent to switch a safeguard off, more often than the old one did."""
    patterns = (SAFEGUARD_OFF, NOT_ASKED, SWITCH)
    return _orders(new, *patterns) > _orders(old, *patterns)


def sends_data_away(old: str, new: str) -> bool:
    """Whether the new text tells an agent to send secrets or personal data out of the house."""
    return _orders(new, SENT_AWAY, PIPED_AWAY) > _orders(old, SENT_AWAY, PIPED_AWAY)


def _orders(text: str, *patterns: re.Pattern[str]) -> int:
    """Count what is ordered; what is forbidden does not count."""
    text = undisguised(text)
    return sum(
        match.groupdict().get("not") is None for pattern in patterns for match in pattern.finditer(text)
    )
