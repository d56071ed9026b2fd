"""Small files that are whole or absent, durable when the call returns, and accessible to their owner alone."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from discreet.errors import LedgerUnavailable

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def create_file(path: Path, text: str) -> bool:
    """Write a new file, readable by its owner only; False, and nothing is touched, if there is one."""
    with _fresh(path, text) as fresh:
        try:
            os.link(fresh, path)  # whole, or not there at all
        except FileExistsError:
            return False
        sync_directory(path.parent)
    return True


def replace_file(path: Path, text: str) -> None:
    """Put a file in the place of another: a reader sees the old one or the new one, also after a power cut."""
    with _fresh(path, text) as fresh:
        os.replace(fresh, path)
        sync_directory(path.parent)


def read_own(path: Path) -> bytes:
    """What a file holds, if it is its owner's alone; links are not followed. FileNotFoundError if there is none."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as file:
        refuse_strangers(os.fstat(descriptor), path.name)
        return file.read()


def refuse_strangers(found: os.stat_result, name: str) -> None:
    """LedgerUnavailable if a file is a link, belongs to somebody else, or somebody else may read or write it."""
    if stat.S_ISLNK(found.st_mode):
        raise LedgerUnavailable(f"{name} is a link: a ledger's files lie where they are looked for")
    if found.st_uid != os.geteuid():
        raise LedgerUnavailable(f"{name} belongs to another user: it must be owned by whoever uses the ledger")
    if found.st_mode & _OTHERS:
        mode = stat.S_IMODE(found.st_mode)
        raise LedgerUnavailable(f"{name} may be used by others (mode {mode:o}): chmod 600 it, if nobody changed it")


def make_directory(path: Path) -> None:
    """Make a directory and those above it, for the owner alone; every new name is durable."""
    missing = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)
        sync_directory(each.parent)


def remove(path: Path) -> None:
    """Remove a file if possible; a leftover temporary file does no harm."""
    with contextlib.suppress(OSError):
        path.unlink()


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _fresh(path: Path, text: str) -> Iterator[Path]:
    """A new file with this text beside `path`, under an unpredictable name; it is removed afterwards."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(fresh, flags, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(text.encode("utf-8"))
                file.flush()
                os.fsync(file.fileno())
            yield fresh
        finally:
            remove(fresh)
    except OSError as error:
        raise LedgerUnavailable(f"{path.name} cannot be written: {error.strerror}") from None
