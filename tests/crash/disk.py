"""What a power cut leaves of files, from a recording of every call that changed them.

The model has two file systems. In both a file keeps the data that were written before a sync began which has ended.

    strict   a name (created, renamed, linked, removed) lasts only after a sync of its directory
    kind     as ext4: a sync of a file also keeps the file's own names, and those of the folders above it

What was not synced is lost, kept, or kept in part; `survivors` says how. Directories whose own name is lost vanish with
everything in them.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

SECTOR = 512
HEADER = struct.Struct("=IIQQQIIII")
NAMES = ("strict", "kind")
DATA = ("lost", "some", "torn", "zeros", "kept")
"""Of unsynced data: nothing, some of the writes, some sectors of them, only the file's new size, everything."""


@dataclass(frozen=True, slots=True)
class Event:
    """One recorded call. Kinds: C create, W write, T truncate, B and E sync begins and ends, n rename, l link,
    u unlink, m mkdir, N a note of the process."""

    kind: str
    pid: int
    inode: int
    offset: int
    length: int
    first: str
    second: str
    data: bytes


def recorded(log: Path) -> list[Event]:
    """All events of a recording, in order."""
    return list(_events(log.read_bytes()))


def _events(held: bytes) -> Iterator[Event]:
    at = 0
    while at < len(held):
        kind, pid, inode, offset, length, first, second, size, _ = HEADER.unpack_from(held, at)
        at += HEADER.size
        names = held[at : at + first], held[at + first : at + first + second]
        at += first + second
        yield Event(chr(kind), pid, inode, offset, length, names[0].decode(), names[1].decode(), held[at : at + size])
        at += size


@dataclass(eq=False, slots=True)
class Node:
    """A file or a folder: what is on the disk, and what is not yet, each change with its time."""

    label: str
    entries: dict[str, Node] | None = None  # of a folder, as processes see them now
    durable_entries: dict[str, Node] = field(default_factory=dict)
    data: bytes = b""
    changes: list[tuple[int, int | None, bytes, int]] = field(default_factory=list)  # time, offset, data, length

    @property
    def is_folder(self) -> bool:
        return self.entries is not None


@dataclass(eq=False, slots=True)
class Naming:
    """One change of names: all of it happens or nothing."""

    time: int
    changes: list[tuple[Node, str, Node | None]]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A folder before anything happens: all of it is on the disk. Paths, inodes, data; folders (None) come first.

    SQLite's index of its log (-shm) is no file of the model: it is rebuilt after a crash.
    """

    root: str
    files: list[tuple[str, int, bytes | None]]

    @staticmethod
    def of(root: Path) -> Snapshot:
        found = [each for each in sorted(root.rglob("*")) if not each.name.endswith("-shm")]
        files = [("", root.stat().st_ino, None)]
        for each in found:
            data = None if each.is_dir() else each.read_bytes()
            files.append((str(each.relative_to(root)), each.stat().st_ino, data))
        return Snapshot(str(root), files)


class Disk:
    """A folder, fed with what happens to it.

    deaf  files whose syncs are ignored, by their path below the folder: a twin that forgets to sync them
    """

    def __init__(self, before: Snapshot, names: str, deaf: Callable[[str], bool] = lambda path: False) -> None:
        self._root = before.root
        self._names, self._deaf = names, deaf
        self._inodes: dict[int, Node] = {}
        self._namings: list[Naming] = []
        self._begun: dict[tuple[int, int], int] = {}
        self._time = 0
        self._top = Node("", entries={})
        for path, inode, data in before.files:
            self._inodes[inode] = node = Node(path, data=data or b"", entries={} if data is None else None)
            if path:
                folder, name = self._parent(f"{self._root}/{path}")
                assert folder.entries is not None
                folder.entries[name] = folder.durable_entries[name] = node
            else:
                self._top = node

    def feed(self, event: Event) -> None:
        """One more call has happened."""
        self._time += 1
        match event.kind:
            case "C":
                self._inodes[event.inode] = node = Node(self._below(event.first), data=b"")
                self._name((event.first, node))
            case "W":
                self._inodes[event.inode].changes.append((self._time, event.offset, event.data, 0))
            case "T":
                self._inodes[event.inode].changes.append((self._time, None, b"", event.length))
            case "m":
                self._inodes[event.inode] = node = Node(self._below(event.first), entries={})
                self._name((event.first, node))
            case "n":
                node = self._at(event.first)
                self._name((event.first, None), (event.second, node))
                node.label = self._below(event.second)
            case "l":
                self._name((event.second, self._at(event.first)))
            case "u":
                self._name((event.first, None))
            case "B":
                self._begun[event.pid, event.inode] = self._time
            case "E":
                self._synced(self._inodes[event.inode], self._begun.pop((event.pid, event.inode)))

    def survivors(self, data: str, rng: random.Random) -> dict[str, bytes | None]:
        """The files (and folders: None) that are there after a power cut now, by their path below the folder."""
        kept = 0 if data in ("lost", "zeros") else len(self._namings) if data == "kept" else None
        kept = rng.randrange(len(self._namings) + 1) if kept is None else kept
        later: dict[Node, dict[str, Node | None]] = {}
        for naming in self._namings[:kept]:
            for folder, name, node in naming.changes:
                later.setdefault(folder, {})[name] = node
        found: dict[str, bytes | None] = {}

        def walk(folder: Node, path: str) -> None:
            for name, node in {**folder.durable_entries, **later.get(folder, {})}.items():
                if node is None:
                    continue
                found[path + name] = None if node.is_folder else _contents(node, data, rng)
                if node.is_folder:
                    walk(node, f"{path}{name}/")

        walk(self._top, "")
        return found

    # Inside.

    def _below(self, path: str) -> str:
        return path[len(self._root) + 1 :]

    def _parent(self, path: str) -> tuple[Node, str]:
        *above, name = self._below(path).split("/")
        node = self._top
        for each in above:
            assert node.entries is not None
            node = node.entries[each]
        return node, name

    def _at(self, path: str) -> Node:
        folder, name = self._parent(path)
        assert folder.entries is not None
        return folder.entries[name]

    def _name(self, *changes: tuple[str, Node | None]) -> None:
        naming = Naming(self._time, [])
        for path, node in changes:
            folder, name = self._parent(path)
            assert folder.entries is not None
            if node is None:
                folder.entries.pop(name, None)
            else:
                folder.entries[name] = node
            naming.changes.append((folder, name, node))
        self._namings.append(naming)

    def _synced(self, node: Node, begun: int) -> None:
        if self._deaf(node.label or "."):
            return
        if node.is_folder:
            self._keep_names(begun, lambda naming: any(folder is node for folder, _, _ in naming.changes))
            return
        done = [change for change in node.changes if change[0] <= begun]
        node.data = _applied(node.data, [change[1:] for change in done])
        node.changes = [change for change in node.changes if change[0] > begun]
        if self._names == "kind":
            line = {id(each) for each in self._line(node, self._top)}
            self._keep_names(begun, lambda naming: any(id(each) in line for _, _, each in naming.changes))

    def _line(self, node: Node, folder: Node) -> list[Node]:
        """The file and the folders above it, by all its names."""
        found = []
        for each in (folder.entries or {}).values():
            if each is node:
                found.append(each)
            elif each.is_folder:
                below = self._line(node, each)
                found.extend([*below, each] if below else [])
        return found

    def _keep_names(self, begun: int, mine: Callable[[Naming], bool]) -> None:
        """Make changes of names durable, in order."""
        waiting = []
        for naming in self._namings:
            if naming.time > begun or not mine(naming):
                waiting.append(naming)
                continue
            for folder, name, node in naming.changes:
                if node is None:
                    folder.durable_entries.pop(name, None)
                else:
                    folder.durable_entries[name] = node
        self._namings = waiting


def _contents(node: Node, how: str, rng: random.Random) -> bytes:
    """A file's data after the cut."""
    changes = [change[1:] for change in node.changes]
    match how:
        case "lost":
            return node.data
        case "kept":
            return _applied(node.data, changes)
        case "zeros":
            size = len(_applied(node.data, changes))
            return node.data[:size].ljust(size, b"\0")
        case "some":
            return _applied(node.data, [change for change in changes if rng.random() < 0.5])
    pieces = [piece for change in changes for piece in _sectors(change)]
    return _applied(node.data, [piece for piece in pieces if rng.random() < 0.5])


def _sectors(change: tuple[int | None, bytes, int]) -> Iterator[tuple[int | None, bytes, int]]:
    """A write as the writes of its sectors."""
    offset, data, length = change
    if offset is None:
        yield change
        return
    at = 0
    while at < len(data):
        size = SECTOR - (offset + at) % SECTOR
        yield offset + at, data[at : at + size], length
        at += size


def _applied(data: bytes, changes: list[tuple[int | None, bytes, int]]) -> bytes:
    held = bytearray(data)
    for offset, written, length in changes:
        if offset is None:
            del held[length:]
            held.extend(bytes(length - len(held)))
        else:
            held.extend(bytes(max(0, offset - len(held))))
            held[offset : offset + len(written)] = written
    return bytes(held)


def write_tree(root: Path, files: dict[str, bytes | None]) -> None:
    """Put what survived into a new folder."""
    root.mkdir()
    for name, data in files.items():
        if data is None:
            (root / name).mkdir()
        else:
            (root / name).write_bytes(data)
            (root / name).chmod(0o600)
