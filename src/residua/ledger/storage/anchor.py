"""The anchor: a record of what was acknowledged, kept outside the store.

A backup that is restored looks like a ledger in good order. What gives it away is the anchor, with
each budget's last acknowledged number and head hash, written and synced after the commit and before
the reply. A store ahead of its anchor has lost a reply, not a spend, and the anchor catches up; a
store behind it has lost spends, and opens read-only.

The file has one line for the ledger and then one for each mark, every line with a check; later
lines count. A line that was cut short is the last one, and was never acknowledged; nor was anything
behind a zero, which a crash leaves in place of what was not synced.
"""

from __future__ import annotations

import json
import os
import tempfile
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import ClassVar

from residua.errors import BrokenRecord, ReadOnlyLedger
from residua.records import canonical, digest, written

try:
    import fcntl
except ImportError:  # pragma: no cover  (Windows: one process at a time may write)
    fcntl = None  # type: ignore[assignment]

Marks = Mapping[str, tuple[int, str]]
"""The number and the hash of each budget's last acknowledged record."""

_LONGEST = 1 << 18
"""Bytes of a file beyond which it is rewritten by its last marks: every record adds a line."""

Check = Callable[[Marks], None]
"""Looks at what is marked already, and raises where no more may be marked."""


@dataclass(frozen=True)
class Anchored:
    """The contents of an anchor."""

    ledger: str
    incarnation: str
    marks: dict[str, tuple[int, str]] = field(default_factory=dict)


def next_incarnation(*known: str) -> str:
    """A new one, after all of these: they are counted, and no two are the same."""
    return f"{1 + max(map(_number, known))}-{uuid.uuid4().hex}"


def newer(one: str, other: str) -> bool:
    """Whether an incarnation began after another one; not known of two with the same number."""
    return _number(one) > _number(other)


def _number(incarnation: str) -> int:
    number, dash, _ = incarnation.partition("-")
    return int(number) if dash and number.isdigit() else 0


class Anchor(ABC):
    """A place outside the store that records what was acknowledged."""

    shared: ClassVar[bool] = False
    """Whether all processes that open the ledger share it, on whatever machine they are."""
    incarnation: str = ""
    """The one that is written to; an anchor that was begun again refuses writes. Empty: any."""

    @abstractmethod
    def read(self) -> Anchored | None:
        """Its contents; None where there is none."""

    @abstractmethod
    def create(self, said: Anchored) -> None:
        """Write this unless there are contents already."""

    @abstractmethod
    def start(self, said: Anchored, check: Check | None = None) -> None:
        """Replace the contents by this; raises where a later incarnation has begun.

        `check` is called as for `write`, with all that was marked so far.
        """

    def belong(self, ledger: str) -> None:  # noqa: B027
        """Select this ledger, where one place holds several anchors."""

    @abstractmethod
    def write(self, marks: Marks, check: Check | None = None) -> None:
        """Add marks, durably.

        `check` is called first, with the marks of others on these budgets and perhaps more; nobody
        else writes between that and the marks. If it raises, nothing is added.
        """

    def changes(self) -> Marks:
        """The marks since the last call."""
        return {}

    def facts(self) -> dict[str, str]:
        """How it is stored, for people."""
        return {}

    @abstractmethod
    def __str__(self) -> str: ...

    @abstractmethod
    def close(self) -> None:
        """Close files and connections."""


class FileAnchor(Anchor):
    """A file of lines, written one after another and synced."""

    def __init__(self, path: Path):
        self.path = path
        self._file: int | None = None
        self._inode = 0
        self._seen = 0
        """Where the lines ended when this process looked last."""
        self._checked = False
        """Whether the open file was looked at: it is that of the incarnation."""
        self._doubtful = False
        """Whether a sync failed: lines may be missing on the disk that are seen in memory."""
        self._longest = _LONGEST
        """Bytes beyond which the open file is rewritten; more where it was long when it was new."""
        self._lock = Lock()

    def __str__(self) -> str:
        return str(self.path)

    def read(self) -> Anchored | None:
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        return _parsed(content, str(self.path))

    def create(self, said: Anchored) -> None:
        with suppress(FileExistsError):
            self._put(said, os.link)

    def start(self, said: Anchored, check: Check | None = None) -> None:
        with self._lock:
            for _ in range(5):
                try:
                    with self._held():
                        present = self._present()
                        check_later(self, present, said)
                        if check is not None and present is not None:
                            check(present.marks)
                        return self._put(said, os.replace)
                except FileNotFoundError:
                    # The first process to create the file wins.
                    with suppress(FileExistsError):
                        return self._put(said, os.link)
        raise OSError(f"{self.path} keeps being replaced")

    def _present(self) -> Anchored | None:
        try:
            return self.read()
        except BrokenRecord:
            return None

    def _put(self, said: Anchored, into: Callable[[str, Path], None]) -> None:
        """Write a whole file and put it in its place at once."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = [_heading(said.ledger, said.incarnation)]
        lines += [_mark(name, mark) for name, mark in said.marks.items()]
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=self.path.name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(b"".join(lines))
                file.flush()
                _sync(file.fileno())
            into(name, self.path)
        finally:
            with suppress(OSError):
                os.unlink(name)
        _sync_directory(self.path.parent)

    def write(self, marks: Marks, check: Check | None = None) -> None:
        lines = b"".join([_mark(name, mark) for name, mark in marks.items()])
        if self._doubtful:
            self.compact(whole=True)
        elif self._seen > self._longest:
            self._longest *= 2  # If it cannot be rewritten now, it can be written for a while.
            with suppress(OSError):
                self.compact()
        with self._lock:
            with self._held() as file:
                if not self._checked:
                    self._check_incarnation()
                others = self._changes(file)
                if check is not None:
                    check(others)
                self._add(file, lines)
            # Others may write meanwhile. A process that replaces the file copies these lines,
            # synced.
            try:
                _sync(file)
            except OSError:
                # Another sync would not write again what this one lost.
                self._doubtful = True
                raise

    def _add(self, file: int, lines: bytes) -> None:
        """Add lines where the others end; a process may have died while it wrote there."""
        try:
            if os.fstat(file).st_size > self._seen:
                os.ftruncate(file, self._seen)
            _append(file, lines)
        except OSError:
            with suppress(OSError):
                os.ftruncate(file, self._seen)
            raise
        self._seen += len(lines)

    def changes(self) -> Marks:
        with self._lock:
            if self._file is not None and self._was_replaced():
                self._drop()
            if self._file is None:
                self._file = self._opened()
            return self._changes(self._file)

    def _changes(self, file: int) -> Marks:
        found = _read_from(file, self._seen - 1) if self._seen else b""
        if not found.startswith(b"\n"):
            # It was not read yet, or something else was put in its place.
            self._seen, found = 0, b"\n" + _read_from(file, 0)
        lines = _lines(found[1:])
        if not self._seen:
            self._longest = max(_LONGEST, 2 * len(lines))
        first, self._seen = self._seen, self._seen + len(lines)
        if not self._seen:
            raise OSError(f"{self.path} is empty: it was truncated")
        try:
            return _parsed(_HEADING + lines if first else lines, str(self.path)).marks
        except BrokenRecord:
            self._seen = 0  # Perhaps what was seen was taken back; from the start, then.
            raise

    def _opened(self) -> int:
        file = os.open(self.path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        self._inode = os.fstat(file).st_ino
        self._seen = 0
        self._checked = False
        return file

    def _check_incarnation(self) -> None:
        """Raise where the file, which is held, is not the one that was written to so far."""
        if self.incarnation:
            said = self.read()
            if said is not None:
                check_begun(self, said.incarnation)
        self._checked = True

    def _was_replaced(self) -> bool:
        return os.stat(self.path).st_ino != self._inode

    def compact(self, whole: bool = False) -> None:
        """Rewrite a long file, or one whose last line was cut short, by its last marks."""
        with self._lock, self._held():
            content = self.path.read_bytes()
            if whole or len(content) > _LONGEST or content != _lines(content):
                self._put(_parsed(content, str(self.path)), os.replace)
                self._doubtful = False

    @contextmanager
    def _held(self) -> Iterator[int]:
        """The file, the present one, locked against other processes."""
        try:
            while True:
                if self._file is None:
                    self._file = self._opened()
                if fcntl is not None:
                    fcntl.flock(self._file, fcntl.LOCK_EX)
                if not self._was_replaced():
                    break
                self._drop()
            yield self._file
        finally:
            # Also where the path is gone: others may have the same file open.
            if fcntl is not None and self._file is not None:
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def _drop(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def close(self) -> None:
        with self._lock:
            self._drop()


class StateAnchor(FileAnchor):
    """One file for each ledger, in one directory."""

    def __init__(self, directory: Path, ledger: str):
        super().__init__(directory / f"{ledger}.anchor")

    def belong(self, ledger: str) -> None:
        path = self.path.with_name(f"{ledger}.anchor")
        if path != self.path:
            with self._lock:
                self._drop()
                self.path, self._doubtful = path, False


def check_begun(anchor: Anchor, incarnation: str) -> None:
    """Raise where an anchor is that of another incarnation than the one that is written to."""
    if anchor.incarnation not in ("", incarnation):
        raise ReadOnlyLedger(
            f"the anchor {anchor} was replaced by a recovery, of this store or of one that took"
            " its place: open the ledger again"
        )


def check_later(anchor: Anchor, known: Anchored | None, said: Anchored) -> None:
    """Raise where an anchor says something later of a ledger than what it is to say."""
    if known is None or known.ledger != said.ledger:
        return
    if newer(known.incarnation, said.incarnation):
        raise ReadOnlyLedger(
            f"another process has recovered this ledger since it was opened (anchor {anchor});"
            " open the ledger again"
        )


def behind(said: Marks, heads: Marks, hash_at: Callable[[str, int], str | None]) -> dict[str, str]:
    """The budgets that a store has lost something of, and what; `hash_at` looks a record up."""
    lost = {}
    for name, (seq, head) in said.items():
        if name not in heads:
            lost[name] = f"record {seq} was acknowledged, but the store does not have the budget"
        elif heads[name][0] < seq:
            last = heads[name][0]
            lost[name] = f"record {seq} was acknowledged, but the store ends with record {last}"
        elif hash_at(name, seq) != head:
            lost[name] = f"record {seq} was acknowledged as {head[:12]}…, but the store has another"
    return lost


def _line(text: str) -> bytes:
    return f"{digest(text)[:16]} {text}\n".encode()


def _heading(ledger: str, incarnation: str) -> bytes:
    return _line(canonical({"ledger": ledger, "incarnation": incarnation}))


def _mark(name: str, mark: tuple[int, str]) -> bytes:
    seq, head = mark
    return _line(f'{{"budget":{written(name)},"head":{written(head)},"seq":{seq}}}')


_HEADING = _heading("", "")


def _lines(content: bytes) -> bytes:
    """The whole lines before the first zero."""
    lines = content.partition(b"\0")[0]
    return lines[: lines.rfind(b"\n") + 1]


def _parsed(content: bytes, where: str) -> Anchored:
    said = []
    for place, line in enumerate(_lines(content).split(b"\n")[:-1]):
        check, _, text = line.decode(errors="replace").partition(" ")
        if digest(text)[:16] != check:
            raise BrokenRecord(f"{where}: line {place + 1} of the anchor was damaged")
        said.append(json.loads(text))
    if not said or "ledger" not in said[0]:
        raise BrokenRecord(f"{where} is not an anchor")
    marks: dict[str, tuple[int, str]] = {}
    for each in said[1:]:
        name, seq = each["budget"], each["seq"]
        # Processes may write out of order; numbers never go down.
        if name not in marks or seq > marks[name][0]:
            marks[name] = (seq, each["head"])
    return Anchored(said[0]["ledger"], said[0]["incarnation"], marks)


def _read_from(file: int, place: int) -> bytes:
    """The bytes from a place on."""
    os.lseek(file, place, os.SEEK_SET)
    found = b""
    while more := os.read(file, 1 << 16):
        found += more
    return found


def _append(file: int, content: bytes) -> None:
    os.lseek(file, 0, os.SEEK_END)
    if os.write(file, content) != len(content):
        raise OSError("only a part was written: the disk is full")


def _sync(file: int) -> None:
    """Bring a file's content to the disk itself."""
    if hasattr(fcntl, "F_FULLFSYNC"):  # pragma: no cover  (macOS: fsync stops at the disk's cache)
        fcntl.fcntl(file, fcntl.F_FULLFSYNC)
    elif hasattr(os, "fdatasync"):
        os.fdatasync(file)
    else:  # pragma: no cover
        os.fsync(file)


def _sync_directory(path: Path) -> None:
    with suppress(OSError):
        directory = os.open(path, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
