"""Fixtures that every room uses: an owner, a team mate's key, and a stranger of another organization."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import hypothesis
import pytest
from django.conf import settings
from django.db import connection, connections
from procrastinate.contrib.django import app
from rest_framework.test import APIClient

from mirix.llm import calls, chat
from mirix.llm.embeddings import get_endpoint
from mirix.tenants.models import Client, Organization
from mirix.tenants.owners import Owner
from mirix.tenants.scope import UnscopedQuery, outside_request_scope
from tests.endpoints import ChatServer, Endpoint, scripted_chat, scripted_endpoint
from tests.factories import make_client, make_key, make_member, make_owner, make_superuser, make_token

DATABASE_FIXTURES = {"db", "transactional_db", "copy_at"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use the database, by a mark or through a fixture: `./run test unit` needs none."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if item.get_closest_marker("django_db") or not {"db", "transactional_db", "copy_at"}.isdisjoint(
            fixtures
        ):
            item.add_marker(pytest.mark.database)


def pytest_collection_finish() -> None:
    """Let the garbage collector pass by what stays to the end, modules, models and the tests themselves."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # to look through it all again and again took a quarter of the time


def pytest_configure() -> None:
    """Spare test clients the search for static files, and all tests limits that they are not about."""
    # How long a generated case takes says how busy the machine is, nothing of the code.
    hypothesis.settings.register_profile(
        "mirix", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
    )
    hypothesis.settings.load_profile("mirix")
    settings.WHITENOISE_AUTOREFRESH = True
    settings.AXES_ENABLED = False
    settings.MIRIX_LLM_MODEL = settings.MIRIX_EMBEDDING_MODEL = (
        ""  # whatever the developer's environment names
    )
    for kind in ("READ", "WRITE", "SEARCH", "DREAM", "AUTH"):
        setattr(settings, f"MIRIX_THROTTLE_{kind}", 0)


@pytest.fixture(autouse=True)
def _empty_queue(request):
    """Empty the job tables after a transactional test; Django's flush passes unmanaged tables by."""
    marker = request.node.get_closest_marker("django_db")
    is_transactional = bool(marker and marker.kwargs.get("transaction"))
    if is_transactional:
        request.getfixturevalue("transactional_db")
    yield
    if is_transactional:
        tables = ("jobs", "events", "periodic_defers", "workers")
        with connection.cursor() as cursor:
            cursor.execute(f"TRUNCATE {', '.join(f'procrastinate_{table}' for table in tables)} CASCADE")


@pytest.fixture(autouse=True)
def _no_swallowed_unscoped_query(caplog):
    """Fail where code that goes on after any error has logged a refused query and gone on."""
    yield
    logged = [record.exc_info for record in caplog.get_records("call") if record.exc_info]
    assert not [info for info in logged if isinstance(info[1], UnscopedQuery)]


@pytest.fixture
def owner(db) -> Owner:
    return make_owner(user_id="alice")


@pytest.fixture
def stranger(db) -> Owner:
    """An owner of another organization, with the same `user_id`."""
    return make_owner(user_id="alice")


@pytest.fixture
def client_row(owner) -> Client:
    return make_client(owner.organization)


@pytest.fixture
def api(client_row) -> APIClient:
    """A caller of the owner's organization with a write key."""
    return APIClient(headers={"X-API-Key": make_key(client_row)})


@pytest.fixture
def read_api(client_row) -> APIClient:
    return APIClient(headers={"X-API-Key": make_key(client_row, "read")})


@pytest.fixture
def admin_api(client_row) -> APIClient:
    return APIClient(headers={"X-API-Key": make_key(client_row, "admin")})


def bearer(token: str) -> APIClient:
    """A caller with a token."""
    return APIClient(headers={"Authorization": f"Bearer {token}"})


@pytest.fixture
def member_api(owner) -> Callable[..., APIClient]:
    """Makes a caller with a member's token: of the owner's organization, unless told otherwise."""

    def make(role: str, organization: Organization | None = None) -> APIClient:
        organization = organization or owner.organization
        user = make_superuser() if role == "superuser" else make_member(organization, role)
        return bearer(make_token(user, organization))

    return make


@pytest.fixture
def stranger_api(stranger) -> APIClient:
    """A caller of the other organization, with an admin key."""
    return APIClient(headers={"X-API-Key": make_key(make_client(stranger.organization), "admin")})


@pytest.fixture
def endpoint(settings) -> Iterator[Endpoint]:
    """A scripted embedding endpoint, which the settings name."""
    with scripted_endpoint() as served:
        settings.MIRIX_EMBEDDING_MODEL = "scripted"
        settings.MIRIX_EMBEDDING_BASE_URL = served.url
        settings.MIRIX_EMBEDDING_API_KEY = ""
        settings.MIRIX_EMBEDDING_TIMEOUT_SECONDS = 10.0  # only tests of slowness shall meet it
        yield served
        if asked := get_endpoint():
            asked.close()


@pytest.fixture
def chat_server(settings, monkeypatch) -> Iterator[ChatServer]:
    """A scripted chat endpoint, which the settings name; pauses between tries are noted, not waited for."""
    chat._endpoint.cache_clear()  # one of before may have listened on the same port
    with scripted_chat() as served:
        monkeypatch.setattr(calls, "pause", served.pauses.append)
        settings.MIRIX_LLM_MODEL = "scripted"
        settings.MIRIX_LLM_BASE_URL = served.url
        settings.MIRIX_LLM_API_KEY = ""
        settings.MIRIX_LLM_TIMEOUT_SECONDS = 10.0  # only tests of slowness shall meet it
        settings.MIRIX_LLM_MAX_RETRIES = 2
        yield served
        for asked in list(chat._endpoints):  # of whatever settings the test has tried
            asked.close()


@pytest.fixture
def work(monkeypatch) -> Callable[[], None]:
    """Run a real worker, in this process, until no job waits; for transactional tests."""
    # Else the worker's threads would keep their connections to the test database.
    monkeypatch.setitem(connections.settings["default"], "CONN_MAX_AGE", 0)

    def run() -> None:
        # Tests also run it while a request waits, in the request's own thread.
        with outside_request_scope(), app.replace_connector(app.connector.get_worker_connector()):
            app.run_worker(wait=False, install_signal_handlers=False, listen_notify=False)

    return run
