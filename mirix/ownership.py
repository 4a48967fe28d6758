"""Whose the state directory is, so that a command once run as root locks no plain user out of a checkout."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).resolve().parent.parent
ROOT = 0


class Account(NamedTuple):
    """The user and group that state files belong to."""

    uid: int
    gid: int


def state_account(var_dir: Path) -> Account:
    """Return the account that owns the state in `var_dir`.

    A plain user is that account. Root stands in for the owner of the database, else of the state directory,
    else of the checkout, whichever is the first that is not root itself.
    """
    if os.geteuid() == ROOT:
        for path in (var_dir / "postgres", var_dir, CHECKOUT):
            if path.exists() and (status := path.stat()).st_uid != ROOT:
                return Account(status.st_uid, status.st_gid)
    return Account(os.geteuid(), os.getegid())


def make_state_dir(var_dir: Path) -> Account:
    """Create `var_dir` where it is missing, and return the account that owns what it holds."""
    account = state_account(var_dir)
    missing = [path for path in (var_dir, *var_dir.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        hand_over(path, account)
    return account


def hand_over(file: Path | int, account: Account) -> None:
    """Give a path, or an open file, to `account`; only root has anything to give."""
    if os.geteuid() == ROOT:
        os.chown(file, *account)
