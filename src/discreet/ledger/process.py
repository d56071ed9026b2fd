"""Which process wrote an entry: whose it is, which code it runs, and whether it is gone.

A process is named by its id, the time it started and the boot it belongs to, so that a later process with the same id
is not taken for it. Where the system does not say (no /proc), only the id is known, and a process counts as gone when
no process has that id.
"""

from __future__ import annotations

import functools
import getpass
import importlib.metadata
import os
from pathlib import Path
from typing import Any


class LocalProcesses:
    """The processes of this machine, as `place.Alive`."""

    def name(self) -> dict[str, Any]:
        return this_process()

    def gone(self, process: dict[str, Any]) -> bool:
        return gone(process)


def this_process() -> dict[str, Any]:
    """The name of the running process, as JSON."""
    return _named(os.getpid())


@functools.cache
def _named(pid: int) -> dict[str, Any]:
    return {"pid": pid, "start": _start(pid), "boot": _boot_id(), "space": _pid_space()}


def boot() -> str:
    """The name of the running boot of this machine, in one word; "-" where the system does not say."""
    return _boot_id() or "-"


@functools.cache
def _boot_id() -> str | None:
    return _read("/proc/sys/kernel/random/boot_id")


def gone(process: dict[str, Any]) -> bool:
    """Whether that process certainly does not run any more."""
    here = this_process()
    if process["boot"] != here["boot"]:
        return True
    if process["space"] != here["space"]:
        return False  # another container of the same machine: its processes cannot be seen from here
    try:
        os.kill(process["pid"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass  # it runs, and belongs to somebody else
    return bool(process["start"] != _start(process["pid"])) or _ended(process["pid"])


@functools.cache
def who() -> str:
    """The user who runs this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


@functools.cache
def code_version() -> str:
    """The version of discreet that runs in this process."""
    try:
        return importlib.metadata.version("discreet")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _start(pid: int) -> str | None:
    """Clock ticks from boot to the start of the process: the 22nd field, counted after the parenthesised name."""
    stat = _read(f"/proc/{pid}/stat")
    return None if stat is None else stat.rpartition(")")[2].split()[19]


def _ended(pid: int) -> bool:
    """Whether a process has ended and only waits for its parent to notice: it is dead, and no thread of it is left."""
    stat = _read(f"/proc/{pid}/stat")
    if stat is None or stat.rpartition(")")[2].split()[0] not in ("Z", "X"):
        return False
    try:
        return len(os.listdir(f"/proc/{pid}/task")) <= 1
    except OSError:
        return False


def _pid_space() -> int | None:
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return None


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None
