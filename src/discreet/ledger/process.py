"""Which process wrote an entry: whose it is, and whether it is gone.

A process is named by its id, the time it started and the boot it belongs to, so that a later process with the same id
is not taken for it. Where the system does not say (no /proc), only the id is known, and a process counts as gone when
no process has that id.
"""

from __future__ import annotations

import functools
import getpass
import os
from pathlib import Path
from typing import Any


def this_process() -> dict[str, Any]:
    """The name of the running process, as JSON."""
    return _process_name(os.getpid())


@functools.cache
def _process_name(pid: int) -> dict[str, Any]:
    try:
        space = os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        space = None
    fields = _status(pid)
    return {"pid": pid, "start": fields[19] if fields else None, "boot": _boot_id(), "space": space}


def gone(process: dict[str, Any]) -> bool:
    """Whether that process certainly does not run any more."""
    here, pid = this_process(), process["pid"]
    if process["boot"] != here["boot"]:
        return True
    if process["space"] != here["space"]:
        return False  # another container of the same machine: its processes cannot be seen from here
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass  # it runs, and belongs to another user
    fields = _status(pid)
    if process["start"] != (fields[19] if fields else None):
        return True
    if not fields or fields[0] not in ("Z", "X"):
        return False
    try:  # it has ended and only waits for its parent to notice: it is dead if no thread of it is left
        return len(os.listdir(f"/proc/{pid}/task")) <= 1
    except OSError:
        return False


class LocalProcesses:
    """The processes of this machine, as `place.Alive`."""

    name = staticmethod(this_process)
    gone = staticmethod(gone)


def boot() -> str:
    """The name of the running boot of this machine, in one word; "-" where the system does not say."""
    return _boot_id() or "-"


@functools.cache
def _boot_id() -> str | None:
    return _read("/proc/sys/kernel/random/boot_id")


@functools.cache
def who() -> str:
    """The user who runs this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _status(pid: int) -> list[str]:
    """What the system says of a process, after its parenthesised name: the state first, the start in ticks at [19]."""
    return (_read(f"/proc/{pid}/stat") or "").rpartition(")")[2].split()


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None
