"""Ids in paths: whatever a caller writes there is found or is a plain 404."""

from __future__ import annotations

import re

import pytest
from django.urls import URLResolver, get_resolver

pytestmark = pytest.mark.django_db


def routes_with_ids() -> list[str]:
    """The routes of the apps that take an id; the admin answers people and has its own tests."""
    resolvers = [
        entry
        for entry in get_resolver().url_patterns
        if isinstance(entry, URLResolver) and not str(entry.pattern)
    ]
    routes = [str(entry.pattern) for resolver in resolvers for entry in resolver.url_patterns]
    return sorted({route for route in routes if "<" in route})


def test_there_are_such_routes():
    assert "v1/skills/<id:pk>" in routes_with_ids()


@pytest.mark.parametrize("route", routes_with_ids())
def test_an_id_that_the_database_refuses_is_not_found(admin_api, route):
    answer = admin_api.get("/" + re.sub(r"<[^>]*>", "x%00", route))

    assert (answer.status_code, answer.content) == (404, b'{"detail":"Not found."}')
