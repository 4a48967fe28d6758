"""The WSGI application that gunicorn serves; it refuses to start on a database that is behind the code."""

from __future__ import annotations

import os
import sys

from django.core.wsgi import get_wsgi_application
from django.db import OperationalError, connection

from mirix.checks import UnappliedMigrationsError, require_migrations

CANNOT_LOAD = 4  # on this status gunicorn stops; on most others it would fork a worker again, for ever

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mirix.settings")
application = get_wsgi_application()

try:
    require_migrations()
except (UnappliedMigrationsError, OperationalError) as refusal:
    print(f"mirix does not start: {refusal}", file=sys.stderr)
    sys.exit(CANNOT_LOAD)
finally:
    connection.close()
