"""Letters of other alphabets that look like Latin ones. Pure."""

from __future__ import annotations

import re

# Cyrillic, Greek and Armenian letters that are drawn as Latin ones.
_LOOK = (
    ("аеорсухіјѕԁһԛԝӏґпԍ", "aeopcyxijsdhqwlrng"),
    ("АВЕКМНОРСТУХІЈЅԌԚԜӀ", "ABEKMHOPCTYXIJSGQWI"),
    ("οѵ", "ov"),
    ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABEZHIKMNOPTYX"),
    ("օսհոցԼՍՕ", "ouhngLUO"),
    ("αινκρυχ’‘ʼ‐‑‒", "aivkpux'''---"),  # which stand in formulas too, or are no letters
)
LATIN = {key: latin for letters, latins in _LOOK for key, latin in str.maketrans(letters, latins).items()}
"""What they look like, for `str.translate`."""
_ALIKE = "".join(letters for letters, _ in _LOOK[:-1])
LOOKALIKE = re.compile(f"[{_ALIKE}](?:(?=[A-Za-z])|(?<=[A-Za-z].))")
"""Such a letter beside one that it could be taken for."""
