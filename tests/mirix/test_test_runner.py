"""`./run test`: what it counts, and what it lets a test see of the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import run


def test_the_report_of_pytest_is_counted(tmp_path: Path):
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite name="pytest" tests="10" failures="2" errors="1" skipped="3" /></testsuites>'
    )
    assert run.read_report(report) == (4, 3, 3)
    assert run.read_report(tmp_path / "missing.xml") == (0, 0, 0)


def test_settings_of_the_caller_stay_outside(monkeypatch: pytest.MonkeyPatch):
    for name in (
        "MIRIX_LLM_MODEL",
        "DATABASE_URL",
        "OPENAI_API_KEY",
        "DJANGO_SETTINGS_MODULE",
        "PYTEST_ADDOPTS",
    ):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("MIRIX_SHARED_DATA", "/data")
    assert not {"MIRIX_LLM_MODEL", "DATABASE_URL", "OPENAI_API_KEY"} & run.clean_environment("").keys()
    assert "PYTEST_ADDOPTS" not in run.clean_environment("")
    assert run.clean_environment("")["MIRIX_SHARED_DATA"] == "/data"
    assert run.clean_environment("soak")["MIRIX_SOAK"] == "1"


@pytest.mark.processes
class TestOutcome:
    """A pytest process over one small file, in a lane of its own."""

    @pytest.fixture
    def tally(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(run, "VAR", tmp_path)
        monkeypatch.setattr(run, "RESULTS", tmp_path / "results")
        monkeypatch.setattr(run, "cluster", no_cluster)
        run.RESULTS.mkdir()

        def outcome(text: str) -> tuple[int, int]:
            (tmp_path / "test_it.py").write_text(text)
            counted = run.Tally()
            arguments = (
                "-p",
                "no:randomly",
                "-p",
                "no:django",
                "-c",
                "/dev/null",
                str(tmp_path / "test_it.py"),
            )
            run.run_pytest(counted, "it", arguments, run.clean_environment(""))
            return counted.passed, counted.failed

        return outcome

    def test_of_good_and_bad_tests_is_their_number(self, tally):
        assert tally("def test_a(): pass\ndef test_b(): pass\ndef test_c(): assert 0\n") == (2, 1)

    def test_of_nothing_collected_is_a_failure(self, tally):
        assert tally("") == (0, 1)

    def test_of_a_file_that_does_not_import_is_a_failure(self, tally):
        assert tally("import nothing_like_this\n") == (0, 1)

    def test_of_a_skipped_test_is_a_failure_in_ci_alone(self, tally, monkeypatch: pytest.MonkeyPatch):
        text = "import pytest\ndef test_a(): pytest.skip('no')\ndef test_b(): pass\n"
        monkeypatch.delenv("CI", raising=False)
        assert tally(text) == (1, 0)
        monkeypatch.setenv("CI", "true")
        assert tally(text) == (1, 1)


def no_cluster(step: str):
    from contextlib import nullcontext

    return nullcontext((run.VAR, []))
