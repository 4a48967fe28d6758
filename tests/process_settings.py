"""The settings of processes that a test starts: the project's, on the test's own database."""

from __future__ import annotations

import os

from mirix.settings import *  # noqa: F403
from mirix.settings import DATABASES

DATABASES["default"]["NAME"] = os.environ["MIRIX_TEST_DATABASE"]
