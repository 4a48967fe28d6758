"""Extraction: any message shape in, turns and a report by index out. Pure; no database, no Django.

`extract` is the one entry. A family of shapes is a module with a `Family`, registered in `families.py`;
what all families share (content parts, calls, errors, hashing) lies beside it.
"""

from conversations.extraction.reader import extract
from conversations.extraction.types import Extraction, Role, Skipped, Turn

__all__ = ["Extraction", "Role", "Skipped", "Turn", "extract"]
