#!/usr/bin/env python
"""Django's command line for mirix. `./run <command>` calls it inside the locked environment."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Run one management command; SIGTERM leaves through `sys.exit`, so that exit handlers run."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mirix.settings")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
