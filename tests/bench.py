"""`./run bench [NAME] [--json]`: measure what the project promises; without a name, all of its speed.

    ./run bench ingest                  how fast sessions come in
    ./run bench search [--latency]      how fast search is
    ./run bench search --quality DIR    how good it is on a judged corpus in the layout of BEIR
    ./run bench dream                   what a run with a model costs besides the model
    ./run bench load                    what many clients at once wait for
    ./run bench admin                   what the pages of the admin cost where a lot is stored

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
from tests.benchmarks import beir  # noqa: E402

BENCHMARKS = {
    "ingest": "tests.benchmarks.ingest",
    "search": "tests.benchmarks.search",
    "dream": "tests.benchmarks.dream",
    "load": "tests.benchmarks.load",
    "admin": "tests.benchmarks.admin",
}
QUALITY_SETTINGS = ("MIRIX_EMBEDDING_", "MIRIX_SKILL_HYBRID_", "OPENAI_API_KEY")
"""What of the caller's environment bears on the quality of search."""


def main() -> None:
    """Measure what the command line names; the exit code is 0 when everything could be measured."""
    options = _options()
    os.chdir(ROOT)
    if options.measure:
        measure(options)
        return
    run.RESULTS.mkdir(parents=True, exist_ok=True)
    names = [options.name] if options.name else list(BENCHMARKS)
    reports = {name: in_cluster(name, options) for name in names}
    if options.json:
        figures = {name: report["figures"] for name, report in reports.items()}
        print(json.dumps(figures[options.name] if options.name else figures, indent=2))
        return
    for name, report in reports.items():
        print("\n".join([name, *(f"  {line}" for line in report["lines"])]))


def in_cluster(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Run one benchmark on a cluster of its own; return its report."""
    asked = ["--measure", name, "--keep", str(run.VAR / "bench"), "--scale", str(options.scale)]
    environment = run.clean_environment("")
    if options.quality:
        asked += ["--quality", str(options.quality)]
        environment |= {k: v for k, v in os.environ.items() if k.startswith(QUALITY_SETTINGS)}
    if options.latency:
        asked.append("--latency")
    with run.cluster(f"bench {name}", durable=True) as (var_dir, faults):
        process = subprocess.run(
            [sys.executable, "-m", "tests.bench", *asked],
            stdout=subprocess.PIPE,
            env=environment | {"MIRIX_VAR_DIR": str(var_dir)},
            check=False,
        )
    if process.returncode:
        sys.exit(f"bench {name}: ended with status {process.returncode}")
    for fault in faults:
        sys.exit(f"bench {name}: {fault}")
    report: dict[str, Any] = json.loads(process.stdout)
    return report


def measure(options: argparse.Namespace) -> None:
    """Run one benchmark in this process, on the database that the environment names; print its report."""
    name = options.measure
    import django

    os.environ["DJANGO_SETTINGS_MODULE"] = "mirix.settings"
    django.setup()
    from django.core.management import call_command

    tell(f"{name}: preparing")
    call_command("migrate", verbosity=0)
    report = importlib.import_module(BENCHMARKS[name]).measure(tell, options)
    print(json.dumps(asdict(report)))


def tell(line: str) -> None:
    """Show how far a benchmark is; the figures alone go to the standard output."""
    print(line, file=sys.stderr, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run bench", description="Measure how fast and good mirix is.")
    parser.add_argument("name", nargs="?", choices=BENCHMARKS, help="omitted: the speed of all")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    search = parser.add_argument_group("of search")
    search.add_argument("--latency", action="store_true", help="how fast it is; also where nothing is asked")
    search.add_argument(
        "--scale", type=float, default=1.0, help="of --latency, load and admin: a part of the full sizes"
    )
    search.add_argument(
        "--quality", metavar="DIR", type=_folder, help="how good it is on a corpus like BEIR's"
    )
    parser.add_argument("--measure", choices=BENCHMARKS, help=argparse.SUPPRESS)
    parser.add_argument("--keep", help=argparse.SUPPRESS)  # a folder for what the next run can use
    options = parser.parse_args()
    if (options.latency or options.quality) and "search" not in (options.name, options.measure):
        parser.error("--latency and --quality are asked of search")
    return options


def _folder(name: str) -> Path:
    """Return the folder of a corpus, which can be read; seen before a cluster is made for it."""
    folder = Path(name).absolute()
    try:
        beir.read(folder)
    except beir.Unusable as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return folder


if __name__ == "__main__":
    main()
