#!/usr/bin/env python
"""Django's command line for mirix. `./run <command>` calls it inside the locked environment.

MIRIX_CALLED_AS is what the person typed for it; usage and errors call it by that name.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import NoReturn

SIGPIPE_STATUS, SIGINT_STATUS = 141, 130  # as a shell reports these signals


def main() -> None:
    """Run one management command; what is no fault of the program ends in one line at most."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mirix.settings")
    for argument in sys.argv:
        if not argument.isascii() and any("\udc80" <= letter <= "\udcff" for letter in argument):
            sys.exit(f"Argument {argument!a}: expected UTF-8 text.")
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:  # nohup ignores SIGHUP, and means it
            signal.signal(number, _leave)
    from django.core.management import execute_from_command_line
    from django.db import OperationalError

    from mirix.commands import reason_of
    from mirix.environment import BadSetting

    try:
        execute_from_command_line([os.environ.get("MIRIX_CALLED_AS", sys.argv[0]), *sys.argv[1:]])
        sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(SIGINT_STATUS)
    except BrokenPipeError:
        # The reader left. Without this the interpreter would flush the same pipe at exit, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(SIGPIPE_STATUS)
    except BadSetting as error:
        _refuse(f"Setting error: {error}")
    except OperationalError as error:
        if "--traceback" in sys.argv:
            raise
        sys.exit(reason_of(error))


def _refuse(reason: str) -> NoReturn:
    """End before there are settings, and so any command of ours; answer as it would have."""
    if "--json" in sys.argv:
        sys.stdout.write(json.dumps({"error": reason}) + "\n")
    sys.exit(reason)


def _leave(number: int, _: object) -> None:
    """Leave through `sys.exit`, so that exit handlers run: they stop the embedded database."""
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
