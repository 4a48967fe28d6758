"""Who looks at the admin."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.factories import make_member


def as_user(user: User, **options: Any) -> Client:
    """Return a browser in which a user is logged in."""
    browser = Client(**options)
    browser.force_login(user)
    return browser


@pytest.fixture
def reviewer(owner) -> Client:
    """The browser of Rita, who reviews in the owner's organization."""
    return as_user(make_member(owner.organization, "reviewer", "rita"))
