"""The shared test data: read in place, never copied into the project."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent


def shared(name: str) -> Path:
    """The path of one shared file; a test without it fails in CI and is skipped elsewhere."""
    folder = Path(os.environ.get("MIRIX_SHARED_DATA") or ROOT.parent / "shared" / "data")
    path = folder / name
    if not path.exists():
        message = f"shared test data is missing: {path} (MIRIX_SHARED_DATA names its folder)"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return path


def records(name: str) -> list[dict[str, Any]]:
    """The records of a shared JSONL file."""
    with shared(name).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]
