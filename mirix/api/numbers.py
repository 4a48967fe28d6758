"""Numbers in requests, taken as they are written in JSON.

Python reads more: `1_0`, digits of all scripts, spaces around them, `nan`. Who sends these means something
else.
"""

from __future__ import annotations

import re
from typing import Any

from rest_framework import serializers

WHOLE = re.compile(r"-?[0-9]+")
NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


class WholeNumberField(serializers.IntegerField):
    """A whole number; as a text its digits and nothing else."""

    def to_internal_value(self, data: Any) -> int:
        """Return the number; raises `ValidationError` for anything else."""
        if isinstance(data, str) and not WHOLE.fullmatch(data):
            self.fail("invalid")
        number: int = super().to_internal_value(data)
        return number


class NumberField(serializers.FloatField):
    """A number; as a text what JSON would take for one."""

    def to_internal_value(self, data: Any) -> float:
        """Return the number; raises `ValidationError` for anything else."""
        if isinstance(data, str) and not NUMBER.fullmatch(data):
            self.fail("invalid")
        number: float = super().to_internal_value(data)
        return number
