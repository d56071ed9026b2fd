"""Files and locks of a ledger: small files that are whole or absent, durable when the call returns; all of them are
accessible to their owner alone."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from discreet.errors import LedgerUnavailable

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_LONGEST_PAUSE = 0.002  # seconds between two attempts at a lock


def create_file(path: Path, text: str) -> bool:
    """Write a new file, readable by its owner only; False, and nothing is touched, if there is one."""
    with _fresh(path, text) as fresh:
        try:
            os.link(fresh, path)  # whole, or not there at all
        except FileExistsError:
            return False
        sync_path(path.parent)
    return True


def replace_file(path: Path, text: str) -> None:
    """Put a file in the place of another: a reader sees the old one or the new one, also after a power cut."""
    with _fresh(path, text) as fresh:
        os.replace(fresh, path)
        sync_path(path.parent)


def read_own(path: Path) -> bytes:
    """What a file holds, if it is its owner's alone; links are not followed. FileNotFoundError if there is none."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as file:
        refuse_strangers(os.fstat(descriptor), path.name)
        return file.read()


def open_own(path: Path | str, what: str) -> int:
    """The descriptor of a file that only its owner may use; file and directory are created if they are missing."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    with os_errors(f"{what} cannot be opened"):
        try:
            descriptor = os.open(path, flags, 0o600)
        except FileNotFoundError:
            make_directory(Path(path).parent)
            descriptor = os.open(path, flags, 0o600)
    try:
        refuse_strangers(os.fstat(descriptor), what)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


class FileLock:
    """The lock of a file, for the length of a `with` block; the file is created if it is missing.

    The lock is an flock: opening and closing other files does not release it. It is released explicitly, because a
    process that was forked meanwhile has inherited the file.

    patience  seconds to wait, since a stopped process may hold the lock
    done      asked while waiting: once it is true the lock is not needed any more, and `taken` is False
    """

    def __init__(
        self, path: Path | str, what: str, *, patience: float = 60.0, done: Callable[[], bool] | None = None
    ) -> None:
        self._path, self._what, self._patience, self._done = path, what, patience, done
        self.descriptor, self.taken = -1, False

    def __enter__(self) -> FileLock:
        self.descriptor = open_own(self._path, self._what)
        try:
            self.taken = wait_for_lock(self.descriptor, fcntl.LOCK_EX, self._what, self._patience, self._done)
        except BaseException:
            os.close(self.descriptor)
            raise
        return self

    def __exit__(self, *error: object) -> None:
        try:
            if self.taken:
                fcntl.flock(self.descriptor, fcntl.LOCK_UN)
        finally:
            os.close(self.descriptor)


def wait_for_lock(
    descriptor: int, kind: int, what: str, patience: float = 60.0, done: Callable[[], bool] | None = None
) -> bool:
    """Wait for a lock; whether it was taken. See `FileLock`."""
    last, pause = None, _LONGEST_PAUSE / 16
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            last = last or time.monotonic() + patience
            if time.monotonic() > last:
                raise LedgerUnavailable(f"{what} is locked by another process: try again later") from None
        except OSError as error:
            raise LedgerUnavailable(f"{what} cannot be locked: {error.strerror}") from None
        time.sleep(pause)
        pause = min(_LONGEST_PAUSE, 2 * pause)
        if done is not None and done():
            return False


def refuse_strangers(found: os.stat_result, name: str) -> None:
    """LedgerUnavailable if a file is a link, belongs to somebody else, or somebody else may read or write it."""
    if stat.S_ISLNK(found.st_mode):
        raise LedgerUnavailable(f"{name} is a link: a ledger's files lie where they are looked for")
    if found.st_uid != os.geteuid():
        raise LedgerUnavailable(f"{name} belongs to another user: it must belong to the account that uses the ledger")
    if found.st_mode & _OTHERS:
        mode = stat.S_IMODE(found.st_mode)
        raise LedgerUnavailable(f"{name} may be used by others (mode {mode:o}): chmod 600 it, if it was not changed")


def make_directory(path: Path) -> None:
    """Make a directory and those above it, for the owner alone; every new name is durable."""
    missing = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)
        sync_path(each.parent)


def remove(path: Path) -> None:
    """Remove a file if possible; a leftover temporary file does no harm."""
    with contextlib.suppress(OSError):
        path.unlink()


def sync_path(path: Path) -> None:
    """Make a file, or the names in a directory, durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class os_errors:  # noqa: N801 - it is used as a function is; a class costs a charge less than a generator
    """An error of the system as ours: "<trouble>: <why>"."""

    __slots__ = ("_trouble",)

    def __init__(self, trouble: str) -> None:
        self._trouble = trouble

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        match error:
            case OSError():
                raise LedgerUnavailable(f"{self._trouble}: {error.strerror}") from None


@contextlib.contextmanager
def _fresh(path: Path, text: str) -> Iterator[Path]:
    """A new file with this text beside `path`, under an unpredictable name; it is removed afterwards."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os_errors(f"{path.name} cannot be written"):
        descriptor = os.open(fresh, flags, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(text.encode("utf-8"))
                file.flush()
                os.fsync(file.fileno())
            yield fresh
        finally:
            remove(fresh)
