"""What a disk may hold after a power failure, worked out from a recorded run.

`recorder.c` is preloaded into the processes that write and logs what they do to the files under one
folder. A run is recorded once, and the power can then fail after any event of its log. At such a
moment

- what was written to a file before its last sync is there, and so are the names in a folder
  that were given before the folder's last sync;
- of what was written to a file since, any part may be there: nothing, everything, what was written
  up to some moment, or any of the pieces that a disk writes at once (512 or 4096 bytes);
- of the changes to the names in a folder since, those up to some moment are there. The sync of a
  file says nothing of its name, unless `syncs_new_names` is given: then the sync of a new file
  brings its name to the disk, too, as ext4, XFS and Btrfs do. PostgreSQL relies on that for new
  tables.

Notes of the writers (`*.notes`) stand for what callers were told, so no note is ever lost.
"""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
_HEADER = struct.Struct("=8sQQQ")


def build(folder: Path) -> Path:
    """The recorder, compiled; needs a C compiler."""
    made = folder / "recorder.so"
    compiler = shutil.which("cc")
    assert compiler is not None
    command = [compiler, "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", str(made)]
    subprocess.run([*command, str(HERE / "recorder.c"), "-ldl"], check=True)
    return made


@dataclass(frozen=True)
class Recording:
    """A folder under record, and the log of what happens in it."""

    recorder: Path
    root: Path
    log: Path

    def __post_init__(self) -> None:
        self.log.touch()
        self.log.chmod(0o666)  # A server writes to it as another user.

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "LD_PRELOAD": str(self.recorder),
            "RESIDUA_POWER_ROOT": str(self.root),
            "RESIDUA_POWER_LOG": str(self.log),
        }


@dataclass(frozen=True)
class Event:
    """One record of the log; see `recorder.c`."""

    kind: str
    inode: int
    offset: int
    data: bytes

    @property
    def paths(self) -> list[Path]:
        return [Path(os.fsdecode(path)) for path in self.data.split(b"\0")]


def events(log: Path) -> list[Event]:
    """Everything that was recorded."""
    content, at, found = log.read_bytes(), 0, []
    while at < len(content):
        kind, inode, offset, size = _HEADER.unpack_from(content, at)
        at += _HEADER.size
        data = content[at : at + size]
        at += size
        found.append(Event(kind.rstrip(b"\0").decode(), inode, offset, data))
    assert at == len(content), "the log ends with a whole record"
    useless = [event.data.decode() for event in found if event.kind == "X"]
    assert not useless, useless
    return found


def apply(content: bytearray, event: Event) -> None:
    """Do to a file's content what was recorded."""
    if event.kind == "W":
        content.extend(bytes(max(0, event.offset - len(content))))
        content[event.offset : event.offset + len(event.data)] = event.data
        return
    content.extend(bytes(max(0, event.offset - len(content))))
    if event.kind == "T":
        del content[event.offset :]


@dataclass(eq=False)
class File:
    """A file: what is surely on the disk, and what was done to it since."""

    content: bytearray = field(default_factory=bytearray)
    pending: list[Event] = field(default_factory=list)

    def take(self, event: Event) -> None:
        if event.kind != "S":
            self.pending.append(event)
            return
        for each in self.pending:
            apply(self.content, each)
        self.pending.clear()

    def left(self, how: str, chance: random.Random) -> bytes:
        """What is left of it after a power failure."""
        kept = list(self.pending)
        if how == "lost":
            kept = []
        elif how == "prefix":
            kept = kept[: chance.randint(0, len(kept))]
        elif how == "pieces":
            size, likely = chance.choice((512, 4096)), chance.random()
            kept = [
                piece
                for event in kept
                for piece in _pieces(event, size)
                if chance.random() < likely
            ]
        content = bytearray(self.content)
        for event in kept:
            apply(content, event)
        return bytes(content)


def _pieces(event: Event, size: int) -> Iterator[Event]:
    """What a disk writes at once."""
    if event.kind != "W":
        yield event
        return
    start, end = event.offset, event.offset + len(event.data)
    while start < end:
        stop = min(end, (start // size + 1) * size)
        yield Event("W", event.inode, start, event.data[start - event.offset : stop - event.offset])
        start = stop


@dataclass(eq=False)
class Folder:
    """The names in a folder: those surely on the disk, and what became of them since."""

    names: dict[str, File] = field(default_factory=dict)
    pending: list[dict[str, File | None]] = field(default_factory=list)

    def sync(self) -> None:
        self.cover(len(self.pending))

    def sync_new(self, file: File) -> None:
        """Bring the first name of a file to the disk, and what happened before it."""
        given = (n for n, change in enumerate(self.pending, 1) if file in change.values())
        self.cover(next(given, 0))

    def cover(self, count: int) -> None:
        """Bring so many changes to the disk."""
        self.names = self.after(count)
        del self.pending[:count]

    def after(self, count: int) -> dict[str, File]:
        """The names after so many of the pending changes."""
        names: dict[str, File | None] = dict(self.names)
        for change in self.pending[:count]:
            names.update(change)
        return {name: file for name, file in names.items() if file is not None}

    @property
    def seen(self) -> dict[str, File]:
        return self.after(len(self.pending))


class Disk:
    """A disk whose folder is recorded, as it was when the recording began and since."""

    def __init__(self, root: Path, syncs_new_names: bool = False):
        self.root, self.syncs_new_names = root, syncs_new_names
        self.folders: dict[Path, Folder] = {}
        self.inodes: dict[int, File | Folder] = {}
        for place, _, names in os.walk(root):
            folder = self.folders[Path(place)] = Folder()
            self.inodes[os.stat(place).st_ino] = folder
            for name in names:
                path = Path(place, name)
                file = folder.names[name] = File(bytearray(path.read_bytes()))
                self.inodes[path.stat().st_ino] = file

    def take(self, event: Event) -> None:
        """Let something happen that was recorded."""
        if event.kind == "C":
            (path,) = event.paths
            made = self.inodes[event.inode] = File()
            self._change({path: made})
        elif event.kind == "U":
            (path,) = event.paths
            self._change({path: None})
        elif event.kind in "RL":
            old, new = event.paths
            file = self.folders[old.parent].seen[old.name]
            self._change({new: file} if event.kind == "L" else {old: None, new: file})
        else:
            found = self.inodes[event.inode]
            if isinstance(found, Folder):
                found.sync()
                return
            found.take(event)
            if event.kind == "S" and self.syncs_new_names:
                for folder in self.folders.values():
                    folder.sync_new(found)

    def _change(self, names: dict[Path, File | None]) -> None:
        (place,) = {path.parent for path in names}
        self.folders[place].pending.append({path.name: file for path, file in names.items()})

    def fail(self, target: Path, chance: random.Random) -> None:
        """Write what is left after a power failure to another folder."""
        whole = chance.choice(("lost", "lost", "kept", None, None, None))
        left: dict[File, bytes] = {}
        for place, folder in self.folders.items():
            into = target / place.relative_to(self.root)
            into.mkdir(parents=True, exist_ok=True)
            count = len(folder.pending)
            changes = {"lost": 0, "kept": count}.get(whole or "", chance.randint(0, count))
            names = folder.after(changes)
            notes = {name: f for name, f in folder.seen.items() if name.endswith(".notes")}
            for name, file in {**names, **notes}.items():
                if file not in left:
                    how = whole or chance.choice(("lost", "kept", "prefix", "pieces", "pieces"))
                    left[file] = file.left("kept" if name in notes else how, chance)
                (into / name).write_bytes(left[file])


def failures(
    disk: Disk, log: list[Event], count: int, target: Path, chance: random.Random
) -> Iterator[Path]:
    """Folders with what is left after power failures: half of them just after an answer."""
    answers = [n for n, event in enumerate(log, 1) if b'"ack"' in event.data and event.kind == "W"]
    moments = [chance.randint(0, len(log)) for _ in range(count)]
    moments[::2] = [chance.choice(answers) for _ in moments[::2]] if answers else moments[::2]
    at = 0
    for number, moment in enumerate(sorted(moments)):
        for event in log[at:moment]:
            disk.take(event)
        at = moment
        into = target / f"{number}-{moment}"
        disk.fail(into, chance)
        yield into


def describe(log: list[Event]) -> dict[str, Any]:
    """How many events of each kind there are."""
    kinds = [event.kind for event in log]
    return {kind: kinds.count(kind) for kind in sorted(set(kinds))}
