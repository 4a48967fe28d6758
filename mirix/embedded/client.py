"""The shell that `dbshell` opens: psql of the same wheel as the server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.db.backends.postgresql import client

from mirix.embedded.server import PORT, SUPERUSER, binaries, server


class DatabaseClient(client.DatabaseClient):
    """Starts the server where needed, and addresses its socket."""

    @classmethod
    def settings_to_cmd_args_env(
        cls, settings_dict: dict[str, Any], parameters: Iterable[str]
    ) -> tuple[list[str], dict[str, str] | None]:
        """Return the command line and environment of psql."""
        folder = server(settings.VAR_DIR).socket_dir()
        address = {"HOST": str(folder), "PORT": PORT, "USER": SUPERUSER}
        (_, *arguments), environment = super().settings_to_cmd_args_env(settings_dict | address, parameters)
        return [str(binaries() / "psql"), *arguments], environment
