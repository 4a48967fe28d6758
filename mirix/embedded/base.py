"""What Django loads for `ENGINE = "mirix.embedded"`: PostgreSQL, with the server taken care of."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.backends.postgresql import base
from django.utils.asyncio import async_unsafe

from mirix.embedded.client import DatabaseClient
from mirix.embedded.server import PORT, SUPERUSER, server


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection to the embedded server, which the first of them starts."""

    client_class = DatabaseClient

    def get_connection_params(self) -> dict[str, Any]:
        """Return the parameters of a server that runs: Procrastinate opens its own connections from them."""
        folder = server(settings.VAR_DIR).socket_dir()
        return super().get_connection_params() | {"host": str(folder), "port": PORT, "user": SUPERUSER}

    @async_unsafe
    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Connect; where the server is gone since this process asked last, start it and try once more."""
        try:
            return super().get_new_connection(conn_params)
        except self.Database.OperationalError:
            server(settings.VAR_DIR).socket_dir(ask_again=True)
            return super().get_new_connection(self.get_connection_params())
