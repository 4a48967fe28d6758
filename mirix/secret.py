"""The installation's secret key: made once, kept in the state directory, readable by its owner alone."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from mirix.environment import BadSetting
from mirix.ownership import hand_over, make_state_dir


def load_or_create_secret(path: Path) -> str:
    """Return the secret in `path`; the first caller makes it, with mode 0600.

    Several processes may start at once: each writes a file of its own and links it into place, and the
    link succeeds for one of them, so that nobody ever reads a half-written key. Raises `BadSetting` where the
    file is no key, or the directory is out of reach.
    """
    try:
        secret = _load_or_create(path)
    except OSError as error:
        raise BadSetting(
            f"MIRIX_VAR_DIR: {path} can be neither read nor made ({error.strerror}). Let user "
            f"{os.geteuid()} read and write {path.parent}, or name another folder."
        ) from error
    except UnicodeDecodeError:
        secret = ""
    if not secret:
        raise BadSetting(
            f"{path} holds no key. Remove it, and a new one is made, which ends all logins; or set "
            "MIRIX_SECRET_KEY."
        )
    return secret


def _load_or_create(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        account = make_state_dir(path.parent)
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_urlsafe(48))
    hand_over(draft, account)
    try:
        os.link(draft, path)
    except FileExistsError:
        pass  # another process was first, and its key is the one to use
    finally:
        draft.unlink()
    return path.read_text(encoding="ascii").strip()
