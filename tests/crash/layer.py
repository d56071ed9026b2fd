"""The preloaded library: compiling it, and arming it in a process that has loaded it."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

MODES = {"count": 1, "kill": 2, "half": 3, "after": 4, "fail": 5, "lie": 6}
CHANGES = "wstnlum"
"""The calls that change files, or make changes durable."""
KILLED_AT = "o" + CHANGES
"""A process that dies between these calls leaves what it leaves at the next one."""
FAILED_AT = "or" + CHANGES + "k"


def compiled(folder: Path) -> Path | None:
    """The library, compiled into this folder; None where there is no C compiler, or no LD_PRELOAD."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or not sys.platform.startswith("linux"):
        return None
    library = folder / "layer.so"
    source = Path(__file__).with_name("layer.c")
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"]
    subprocess.run([compiler, *flags, "-o", str(library), str(source), "-lpthread"], check=True)
    return library


class Layer:
    """The library as the process under test sees it; it was loaded with LD_PRELOAD."""

    def __init__(self, library: str) -> None:
        self._library = ctypes.CDLL(library)
        self._library.layer_arm.argtypes = [
            *(ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_long),
            *(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_char_p),
        ]
        self._library.layer_note.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
        self._library.layer_count.restype = ctypes.c_long
        self._library.layer_trace.restype = ctypes.c_char_p

    def arm(
        self,
        root: str,
        mode: str = "count",
        *,
        kinds: str = KILLED_AT,
        at: int = 0,
        forever: bool = False,
        error: int = 0,
        wait: int = 0,
        log: str | None = None,
    ) -> None:
        """Watch the calls below a folder from now on. Syncs do not wait for a real disk, but for `wait` microseconds.

        at       the number of the call at which something happens, counted from 1 among the calls of these kinds
        forever  and at every later one
        error    the errno of mode "fail"
        log      where to record everything that changes files
        """
        name = None if log is None else log.encode()
        self._library.layer_arm(root.encode(), kinds.encode(), MODES[mode], at, forever, error, 1, wait, name)

    def disarm(self) -> None:
        """Let every call through again; the recording goes on."""
        self._library.layer_disarm()

    def note(self, text: str) -> None:
        """Write a note into the recording, between the calls before it and after it."""
        self._library.layer_note(text.encode(), len(text.encode()))

    def trace(self) -> list[str]:
        """The counted calls so far, of mode "count": a letter and a file's name each."""
        return self._library.layer_trace().decode().splitlines()
