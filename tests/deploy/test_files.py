"""The files of a deployment against each other and against the code."""

from __future__ import annotations

import configparser
import re
import runpy

import pytest

from tests.deploy.installation import COMPOSE, EXAMPLE, ROOT, SERVICES, settings_of

DOCKERFILE = (ROOT / "Dockerfile").read_text()
UNITS = sorted((ROOT / "deploy" / "systemd").iterdir())


def test_the_compose_file_has_the_services_and_keeps_the_database_alone():
    assert set(SERVICES) == {"db", "redis", "migrate", "web", "worker", "backup"}
    assert set(COMPOSE["volumes"]) == {"postgres", "backups"}
    assert SERVICES["web"]["ports"] == ["127.0.0.1:8531:8531"]
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["web"]
    for name in ("migrate", "web", "worker", "backup"):
        assert SERVICES[name]["env_file"] == "mirix.env"
        assert SERVICES[name]["read_only"] is True
    for name in ("web", "worker"):
        assert SERVICES[name]["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}


def test_the_database_counts_as_there_once_it_can_be_reached_over_tcp():
    """While the image makes a new one its server listens on a socket alone, and ends again."""
    assert "--host=127.0.0.1" in SERVICES["db"]["healthcheck"]["test"]
    assert SERVICES["migrate"]["depends_on"] == {"db": {"condition": "service_healthy"}}


def test_backups_outlive_their_container():
    backup = SERVICES["backup"]
    assert backup["profiles"] == ["backup"]  # not started with the others
    assert backup["command"] == ["python", "manage.py", "backup"]
    assert backup["volumes"] == [f"backups:{backup['environment']['MIRIX_VAR_DIR']}"]
    # A new volume takes owner and mode from the folder of the image.
    assert f"install -d -o mirix -m 700 {backup['environment']['MIRIX_VAR_DIR']}" in DOCKERFILE


def test_everybody_in_the_image_may_read_it_and_nobody_write():
    assert "chmod -R a+rX ." in DOCKERFILE
    (uid,) = re.findall(r"useradd .*--uid (\d+)", DOCKERFILE)
    assert re.findall(r"^USER (.+)$", DOCKERFILE, re.MULTILINE) == [uid]
    writes = DOCKERFILE.partition("ENV PATH")[2]
    assert "RUN" not in writes


def test_the_client_programs_are_as_new_as_the_database():
    (server,) = re.findall(r"^pgvector/pgvector:pg(\d+)$", SERVICES["db"]["image"])
    assert re.findall(r"postgresql-client-(\d+)", DOCKERFILE) == [server]
    assert SERVICES["db"]["volumes"] == ["postgres:/var/lib/postgresql"]


def test_every_setting_of_the_example_is_one_and_every_secret_is_to_be_filled_in():
    readme = (ROOT / "README.md").read_text().partition("## Settings")[2]
    named = [*settings_of(EXAMPLE), *re.findall(r"^# ([A-Z_]+)=$", EXAMPLE.read_text(), re.MULTILINE)]
    assert len(named) > 10
    assert [name for name in named if f"`{name}`" not in readme] == []
    for name, value in settings_of(EXAMPLE).items():
        assert ("FILL-IN" in value) == bool(re.search("KEY|TOKEN|DATABASE|EMAIL_URL", name)), name


def test_the_image_takes_what_it_needs_and_no_more():
    copied = re.findall(r"^COPY (?:--from=\S+ )?(.+) \S+$", DOCKERFILE, re.MULTILINE)
    sources = {source for line in copied for source in line.split() if not source.startswith("/")}
    assert [source for source in sources if not (ROOT / source).exists()] == []
    allowed = set(re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE))
    assert sources == allowed
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests"}
    assert packages <= sources
    assert "--require-hashes" in DOCKERFILE


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_runs_what_there_is(unit):
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read(unit)
    if unit.suffix == ".timer":
        assert parser["Timer"]["OnCalendar"]
        return
    service = parser["Service"]
    assert service["User"] == "mirix"
    assert service["EnvironmentFile"] == "/etc/mirix/mirix.env"
    program, *arguments = service["ExecStart"].split()
    assert program in ("/srv/mirix/.venv/bin/python", "/srv/mirix/.venv/bin/gunicorn")
    for argument in arguments:
        if argument.endswith(".py"):
            assert (ROOT / argument).exists()
    if service.get("Type") != "oneshot":
        assert service["Restart"] == "always"


@pytest.mark.parametrize(("port", "bind"), [("", "0.0.0.0:8531"), ("8599", "0.0.0.0:8599")])
def test_an_empty_port_is_the_default_for_the_web_server_too(monkeypatch, port, bind):
    monkeypatch.setenv("MIRIX_PORT", port)
    assert runpy.run_path(str(ROOT / "deploy" / "gunicorn.conf.py"))["bind"] == bind


def test_units_and_containers_run_the_same():
    web, worker = (
        (ROOT / "deploy" / "systemd" / f"mirix-{name}.service").read_text() for name in ("web", "worker@")
    )
    assert f"/{' '.join(SERVICES['web']['command'])}\n" in web
    assert f"/{' '.join(SERVICES['worker']['command'])}\n" in worker
    assert SERVICES["web"]["command"][0] in DOCKERFILE.rpartition("CMD")[2]


def test_every_file_that_the_page_names_is_there():
    page = (ROOT / "docs" / "operations.md").read_text()
    for link in re.findall(r"\]\(([^)#]+)\)", page):
        assert (ROOT / "docs" / link).exists(), link
    readme = (ROOT / "README.md").read_text()
    for setting in set(re.findall(r"`(MIRIX_[A-Z_]+)`", page)):
        assert setting in readme or setting.removeprefix("MIRIX_DISTILLER") in readme, setting
