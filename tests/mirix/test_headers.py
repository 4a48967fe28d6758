"""What browsers are told about answers: by kind of page, and that no page holds a script."""

from __future__ import annotations

import re

import pytest

from mirix.headers import ADMIN, CLOSED, DOCS
from tests.factories import make_superuser

pytestmark = pytest.mark.django_db
EVERYWHERE = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
INLINE = re.compile(r"<script(?![^>]*\bsrc=)[^>]*>|\son\w+\s*=|javascript:", re.IGNORECASE)


@pytest.mark.parametrize(
    ("path", "status", "policy"),
    [
        ("/health", 200, CLOSED),
        ("/v1/skills", 401, CLOSED),
        ("/nowhere", 404, CLOSED),
        ("/metrics", 404, CLOSED),
        ("/schema", 200, CLOSED),
        ("/docs", 200, DOCS),
        ("/docs?script=", 200, DOCS),
        ("/admin/login/", 200, ADMIN),
        ("/admin/nowhere/", 302, ADMIN),
    ],
)
def test_every_answer_says_what_it_may_be_used_for(client, path: str, status: int, policy: str):
    answer = client.get(path)
    assert answer.status_code == status
    assert answer["Content-Security-Policy"] == policy
    assert {name: answer.get(name) for name in EVERYWHERE} == EVERYWHERE


def test_a_file_is_kept_and_an_answer_is_not(client, api):
    assert api.get("/v1/skills")["Cache-Control"] == "no-store"
    file = client.get("/static/mirix/admin.css")
    file.close()
    assert "max-age" in file["Cache-Control"]
    page = client.get("/admin/login/")["Cache-Control"]
    assert {"no-cache", "no-store", "private"} <= set(page.split(", "))


def test_every_policy_begins_with_nothing_and_lets_nobody_frame_a_page():
    for policy in (CLOSED, ADMIN, DOCS):
        assert policy.startswith("default-src 'none'; ")
        assert policy.endswith("; frame-ancestors 'none'")
        scripts = [part for part in policy.split("; ") if part.startswith("script-src")]
        assert "'unsafe-inline'" not in "".join(scripts)
        assert "http" not in policy


@pytest.mark.parametrize("path", ["/admin/", "/admin/skills/skill/", "/admin/auth/user/add/", "/docs"])
def test_no_page_holds_a_script(client, path: str):
    client.force_login(make_superuser(), backend="django.contrib.auth.backends.ModelBackend")
    page = client.get(path)
    assert page.status_code == 200
    assert INLINE.findall(page.content.decode()) == []


def test_the_script_of_the_routes_page_is_a_file(client):
    (path,) = re.findall(r'<script src="(/docs[^"]+)"', client.get("/docs").content.decode())
    script = client.get(path)
    assert script["Content-Type"].startswith("application/javascript")
    assert "SwaggerUIBundle(" in script.content.decode()


def test_the_debug_pages_are_left_as_they_are(client, settings):
    settings.DEBUG = True
    answer = client.get("/nowhere")
    assert answer.status_code == 404
    assert "Content-Security-Policy" not in answer.headers
    assert client.get("/health")["Content-Security-Policy"] == CLOSED
