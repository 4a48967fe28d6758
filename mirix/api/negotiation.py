"""What a route answers in, where that is not JSON alone."""

from __future__ import annotations

from typing import Any

from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request


class OneKind(BaseContentNegotiation):
    """Whatever a caller accepts, the answer is the route's own kind and a refusal JSON."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        """Return the first parser."""
        return parsers[0]

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        """Return the renderer of refusals."""
        return renderers[0], renderers[0].media_type
