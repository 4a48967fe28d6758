"""The WSGI application that gunicorn serves; it refuses to start on a database that is behind the code."""

from __future__ import annotations

import os
import sys

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import OperationalError, connection

from mirix.checks import UnappliedMigrationsError, require_migrations
from mirix.chunked import with_length
from mirix.environment import BadSetting
from mirix.llm.embeddings import load_client
from mirix.refusals import answer_in_json

CANNOT_LOAD = 4  # on this status gunicorn stops; on most others it would fork a worker again, for ever

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mirix.settings")
answer_in_json()

try:
    application = with_length(get_wsgi_application(), limit=settings.MIRIX_MAX_REQUEST_BYTES)
    try:
        require_migrations()
    finally:
        connection.close()
    load_client()
except (BadSetting, UnappliedMigrationsError, OperationalError) as refusal:
    print(f"mirix does not start: {refusal}", file=sys.stderr)
    sys.exit(CANNOT_LOAD)
