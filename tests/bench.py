"""`./run bench [NAME] [--json]`: measure what the project promises of speed; without a name, everything.

Each benchmark runs in a process of its own on a fresh database cluster under `var/`, gone at the end. The
cluster is as durable as in production: with fsync, each commit waits for the disk. Settings of the caller's
environment do not reach it. Figures are ratios to what was measured in the same run, so that they can be
compared between machines; seconds cannot.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests import run  # noqa: E402  (the line above makes it importable)

BENCHMARKS = {"ingest": "tests.benchmarks.ingest", "search": "tests.benchmarks.search_latency"}


def main() -> None:
    """Measure what the command line names; the exit code is 0 when everything could be measured."""
    options = _options()
    os.chdir(ROOT)
    if options.measure:
        measure(options.measure, options.scale)
        return
    run.RESULTS.mkdir(parents=True, exist_ok=True)
    names = [options.name] if options.name else list(BENCHMARKS)
    reports = {name: in_cluster(name, options.scale) for name in names}
    if options.json:
        figures = {name: report["figures"] for name, report in reports.items()}
        print(json.dumps(figures[options.name] if options.name else figures, indent=2))
        return
    for name, report in reports.items():
        print("\n".join([name, *(f"  {line}" for line in report["lines"])]))


def in_cluster(name: str, scale: float = 1.0) -> dict[str, Any]:
    """Run one benchmark on a cluster of its own; return its report."""
    with run.cluster(f"bench {name}", durable=True) as (var_dir, faults):
        process = subprocess.run(
            [sys.executable, "-m", "tests.bench", "--measure", name, "--scale", str(scale)],
            stdout=subprocess.PIPE,
            env=run.clean_environment("") | {"MIRIX_VAR_DIR": str(var_dir)},
            check=False,
        )
    if process.returncode:
        sys.exit(f"bench {name}: ended with status {process.returncode}")
    for fault in faults:
        sys.exit(f"bench {name}: {fault}")
    report: dict[str, Any] = json.loads(process.stdout)
    return report


def measure(name: str, scale: float = 1.0) -> None:
    """Run one benchmark in this process, on the database that the environment names; print its report."""
    import django

    os.environ["DJANGO_SETTINGS_MODULE"] = "mirix.settings"
    django.setup()
    from django.core.management import call_command

    tell(f"{name}: preparing")
    call_command("migrate", verbosity=0)
    sized = {"scale": scale} if name == "search" else {}
    report = importlib.import_module(BENCHMARKS[name]).measure(tell, **sized)
    print(json.dumps(asdict(report)))


def tell(line: str) -> None:
    """Show how far a benchmark is; the figures alone go to the standard output."""
    print(line, file=sys.stderr, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run bench", description="Measure how fast mirix is.")
    parser.add_argument("name", nargs="?", choices=BENCHMARKS, help="omitted: all of them")
    parser.add_argument("--latency", action="store_true", help="search: measure its speed (so without it)")
    parser.add_argument("--scale", type=float, default=1.0, help="search: sizes as a part of the full ones")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--measure", choices=BENCHMARKS, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
