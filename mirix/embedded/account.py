"""As whom the server runs, and where that account finds its socket. PostgreSQL refuses to run as root."""

from __future__ import annotations

import hashlib
import logging
import os
import pwd
import stat
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mirix.ownership import ROOT, Account, hand_over, state_account

SYSTEM_USER = "mirix"
# What an address of a socket may hold on every system, and what PostgreSQL's list of folders can express.
LONGEST_SOCKET = 103
log = logging.getLogger(__name__)


class AccountError(Exception):
    """The server has no account to run as, or no safe folder for its socket; the message is one line."""


def server_account(var_dir: Path, reach: Iterable[Path]) -> Account:
    """Return the account that runs the server, able to enter each folder of `reach`.

    The owner of the state; where all of it is root's, the system user `mirix`, made on first use.
    """
    account = state_account(var_dir)
    if account.uid == ROOT:
        account = _system_account()
    if os.geteuid() == ROOT:
        for path in reach:
            _let_through(path, account)
    return account


def switch(account: Account) -> dict[str, Any]:
    """Return the arguments of `subprocess.run` that run a program as `account`."""
    if os.geteuid() != ROOT:
        return {}
    return {"user": account.uid, "group": account.gid, "extra_groups": []}


def socket_folder(data: Path, account: Account, port: int) -> Path:
    """Return the data folder where a socket's address may hold its path, else a private temporary folder."""
    if _addressable(data, port):
        return data
    base = Path(tempfile.gettempdir())
    private = base / f"mirix-{account.uid}"
    folder = private / hashlib.sha256(os.fsencode(data)).hexdigest()[:12]
    if not _addressable(folder, port):
        private = Path("/tmp", private.name)  # noqa: S108  (its owner and mode are checked below)
        folder = private / folder.name
    for path in (private, folder):
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            status = path.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != account.uid or status.st_mode & 0o077:
                raise AccountError(
                    f"{path} is not a private folder of user {account.uid}: remove it."
                ) from None
        else:
            hand_over(path, account)
    return folder


def _addressable(folder: Path, port: int) -> bool:
    address = f"{folder}/.s.PGSQL.{port}"
    return (
        address.isascii() and address.isprintable() and "," not in address and len(address) <= LONGEST_SOCKET
    )


def _system_account() -> Account:
    try:
        entry = pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        made = subprocess.run(  # noqa: S603  (constant)
            ["/usr/sbin/useradd", "--system", "--user-group", "--no-create-home", SYSTEM_USER],
            capture_output=True,
            text=True,
            check=False,
        )
        try:
            entry = pwd.getpwnam(SYSTEM_USER)  # also when another process made it first
        except KeyError:
            raise AccountError(
                f"PostgreSQL does not run as root, and the user {SYSTEM_USER} could not be made "
                f"({made.stderr.strip()}). Run as a plain user, or set DATABASE_URL."
            ) from None
        log.warning("PostgreSQL does not run as root: made the system user %s for it", SYSTEM_USER)
    return Account(entry.pw_uid, entry.pw_gid)


def _let_through(path: Path, account: Account) -> None:
    """Let `account` pass the folders above `path`: the right to enter, never the right to list or read."""
    for folder in reversed(path.parents):
        status = folder.stat()
        if status.st_uid == account.uid:
            needed = stat.S_IXUSR
        elif status.st_gid == account.gid:
            needed = stat.S_IXGRP
        else:
            needed = stat.S_IXOTH
        if not status.st_mode & needed:
            folder.chmod(stat.S_IMODE(status.st_mode) | stat.S_IXOTH)
            log.warning(
                "Let user %s pass through %s (o+x), where PostgreSQL's files are", account.uid, folder
            )
