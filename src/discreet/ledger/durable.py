"""Small files that are whole or absent, and durable when the call returns."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from discreet.errors import LedgerUnavailable


def create_file(path: Path, text: str) -> bool:
    """Write a new file, readable by its owner only; False, and nothing is touched, if there is one."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        _written(fresh, text, os.O_EXCL)
        os.link(fresh, path)  # whole, or not there at all
    except FileExistsError:
        return False
    except OSError as error:
        raise LedgerUnavailable(f"{path.name} cannot be written: {error.strerror}") from None
    finally:
        _remove(fresh)
    sync_directory(path.parent)
    return True


def replace_file(path: Path, text: str) -> None:
    """Put a file in the place of another: a reader sees the old one or the new one, also after a power cut.

    Callers take turns (they hold the ledger's lock), so the new file has one name; an interrupted one is overwritten.
    """
    fresh = path.with_name(f".{path.name}.new")
    try:
        _written(fresh, text, os.O_TRUNC)
        os.replace(fresh, path)
        sync_directory(path.parent)
    except OSError as error:
        _remove(fresh)
        raise LedgerUnavailable(f"{path.name} cannot be written: {error.strerror}") from None


def _remove(path: Path) -> None:
    """Tidy up; what cannot be removed is in nobody's way."""
    with contextlib.suppress(OSError):
        path.unlink()


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _written(path: Path, text: str, how: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | how, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text.encode("utf-8"))
        file.flush()
        os.fsync(file.fileno())
    sync_directory(path.parent)
