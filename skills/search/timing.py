"""How long the lanes of a search take in this process, for `/metrics`."""

from __future__ import annotations

from mirix.metrics import Durations

lanes = Durations(
    "mirix_search_lane_seconds",
    "How long the lanes of searches took: words (lexical), vectors (semantic), the query's vector (vector).",
)
