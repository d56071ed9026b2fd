"""Files that a command reads and writes. A file is known to be writable before anything is spent, and appears whole.

read_text   a text that the user names
write_new   a new file; an old one stays
reserved    a file written under another name, which gets its own name when it is whole
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from discreet.errors import ParameterError


def read_text(path: Path, holds: str = "") -> str:
    """The text of a file in UTF-8; `holds` says what is expected in it."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ParameterError(f"there is no file {path.name}{holds}") from None
    except UnicodeDecodeError:
        raise ParameterError(f"{path.name} is not a text in UTF-8") from None


def write_new(path: Path, lines: Iterable[str]) -> int:
    """Write a new file and return the number of lines. An existing file may be a proof, or work: it stays."""
    try:
        with path.open("x", encoding="utf-8") as file:
            return sum(1 for line in lines if file.write(line))
    except FileExistsError:
        raise ParameterError(f"{path.name} exists already: choose another name") from None


def regular(path: Path) -> Path:
    """The file that a path stands for, links followed: a link keeps pointing to what is written.

    What is there and is no plain file (a device, a pipe, a folder) is refused: it would be replaced by one.
    """
    place = Path(os.path.realpath(path))
    if place.is_symlink() or (place.exists() and not place.is_file()):  # a link that is left leads in a circle
        raise ParameterError(f"{path} exists and is not a plain file: choose another name; nothing was spent")
    return place


@dataclass(frozen=True, slots=True)
class Draft:
    """A file under another name, until it is whole. Without a path nothing is written."""

    path: Path | None
    part: Path

    def keep(self) -> None:
        """Give the file its own name."""
        if self.path is not None:
            self.part.replace(self.path)

    def write(self, text: str) -> None:
        """Write all of it."""
        if self.path is not None:
            self.part.write_text(text, encoding="utf-8")
            self.keep()


@contextmanager
def reserved(path: Path | None, *, force: bool) -> Iterator[Draft]:
    """A draft of one file, found to be writable now. What fails before it is kept leaves no new file, and the old one.

    Without force the file must be new, and its name is taken at once.
    """
    if path is None:
        if force:
            raise ParameterError("--force goes with --save")
        yield Draft(None, Path())
        return
    place = regular(path)
    part = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        (part if force else place).open("x").close()
    except FileExistsError:
        raise ParameterError(f"{place.name} exists already: choose another name, or --force to replace it") from None
    except OSError as error:
        raise ParameterError(f"{path} cannot be written ({error.strerror}): nothing was spent") from None
    try:
        part.touch()
        if place.exists():
            shutil.copymode(place, part)
        yield Draft(place, part)
    finally:
        if not force and place.exists() and not place.stat().st_size:
            place.unlink()
        part.unlink(missing_ok=True)


def reserved_page(path: Path, *, force: bool) -> AbstractContextManager[Draft]:
    """The same of a page for a browser."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise ParameterError(f"the page is HTML, so its name ends in .html; found {path.name}")
    return reserved(path, force=force)
