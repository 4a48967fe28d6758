"""Search: how good it is on a judged corpus (`--quality DIR`), how fast (`--latency`, or neither)."""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.benchmarks import Report, Tell


def measure(tell: Tell, options: argparse.Namespace) -> Report:
    """Measure what the command line asks for; of both, the figures stand side by side."""
    reports = []
    if options.quality:
        from tests.benchmarks import search_quality

        reports.append(search_quality.measure(tell, Path(options.quality), Path(options.keep)))
    if options.latency or not options.quality:
        from tests.benchmarks import search_latency

        reports.append(search_latency.measure(tell, scale=options.scale))
    return Report(
        figures={name: figure for report in reports for name, figure in report.figures.items()},
        lines=[line for report in reports for line in report.lines],
    )
