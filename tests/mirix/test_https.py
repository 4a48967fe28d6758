"""Where the public address is https, cookies and browsers keep to it; plain http on a laptop goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parent.parent.parent
PUBLIC = {"MIRIX_PUBLIC_URL": "https://mirix.example/", "MIRIX_ALLOWED_HOSTS": "mirix.example,127.0.0.1"}
BEHIND_A_PROXY = PUBLIC | {"MIRIX_TRUSTED_PROXIES": "1"}
ASK = """
import django
django.setup()
from django.test import Client
page = Client().get("/admin/login/", headers={"Host": "mirix.example", "X-Forwarded-Proto": "https"})
print(page.status_code, bool(page.cookies["csrftoken"]["secure"]), page.get("Strict-Transport-Security"))
known = page.cookies["csrftoken"].value
for origin in ("https://mirix.example", "https://elsewhere.example"):
    browser = Client(enforce_csrf_checks=True)
    browser.cookies["csrftoken"] = known
    form, headers = {"csrfmiddlewaretoken": known}, {"Host": "mirix.example", "Origin": origin}
    print(browser.post("/admin/login/", form, headers=headers).status_code)
"""


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these settings alone."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MIRIX_")}
    given = {"DJANGO_SETTINGS_MODULE": "mirix.settings", "MIRIX_SECRET_KEY": "A1-b2_" * 12, **environment}
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=kept | given, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"MIRIX_ALLOWED_HOSTS": "mirix.example"}, "200 False None\n403\n403\n"),
        (PUBLIC, "200 True None\n200\n403\n"),
        (BEHIND_A_PROXY, "200 True max-age=2592000\n200\n403\n"),
        (BEHIND_A_PROXY | {"MIRIX_HSTS_DAYS": "0"}, "200 True None\n200\n403\n"),
    ],
    ids=["http", "https", "https behind a proxy of ours", "https without a promise"],
)
def test_cookies_and_headers_follow_the_public_address(environment: dict[str, str], said: str):
    done = run("-c", ASK, **environment)
    assert done.stdout == said, done.stderr


@pytest.mark.parametrize("environment", [PUBLIC, BEHIND_A_PROXY])
def test_the_checks_before_a_deployment_find_nothing(environment: dict[str, str]):
    done = run("manage.py", "check", "--deploy", "--fail-level", "WARNING", **environment)
    assert (done.returncode, done.stdout) == (0, "System check identified no issues (3 silenced).\n"), (
        done.stderr
    )


def test_without_https_they_say_what_is_open():
    done = run("manage.py", "check", "--deploy")
    assert [code for code in ("W004", "W008", "W012", "W016") if f"security.{code}" not in done.stderr] == []
