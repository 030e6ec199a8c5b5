"""The state as a directory of Parquet files, replaced as a whole.

    state.json                   the header, the version, and which budgets are current
    budgets/00000012-<random>/   the budgets of one version
    active/00000012-<random>/    who took part in the spend that made that version
    spends/00000012-<hash>.json  its id, the hash of its losses
    lock                         held by the process that is spending

A spend writes everything of the next version aside, syncs it, and then replaces `state.json`, which
is one atomic move: before it the old state is current, after it the new one. What a killed spend
left behind has a number above the current version and is swept away by the next spend. The lock is
held meanwhile, and the version is compared once more before the move, so no update is lost.

Subjects whose file is gone would count as unknown and start with a whole budget, so a folder is
read only if it holds exactly the files that were written, with their sizes: a state that is not
whole is an error. What is inside is covered by the checksums of Parquet's pages.

The directory must be on a POSIX file system (local, or shared by the nodes of a cluster): object
stores have no atomic move.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from residua.errors import ArgumentError, ResiduaError, StateUnavailable
from residua.individual.engine import SpendRequest, SpendResult, Store, TableEngine
from residua.individual.header import Header
from residua.individual.losses import as_table, newcomers


def sync(path: Path) -> None:
    """Make a file, or the names in a directory, durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(path: Path) -> None:
    """Make a directory, and everything under it, durable."""
    for folder, _, files in os.walk(path):
        for name in (*files, "."):
            sync(Path(folder, name))
    sync(path.parent)


def replace_json(path: Path, value: Any) -> None:
    """Replace a JSON file atomically: a reader sees the old one or the new one."""
    aside = path.with_name(path.name + ".new")
    with aside.open("w", encoding="utf-8") as file:
        json.dump(value, file, sort_keys=True)
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, path)
    sync(path.parent)


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold a lock among processes and threads; it ends with its process."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


Files = dict[str, int]


def list_files(folder: Path) -> Files:
    """The Parquet files of a folder with their sizes."""
    return {path.name: path.stat().st_size for path in sorted(folder.glob("*.parquet"))}


def damaged(where: str, what: str) -> StateUnavailable:
    """What to raise where a state is not as it was written."""
    return StateUnavailable(
        f"{where} is damaged: {what}; restore it from a backup, nothing was spent"
    )


def check_files(folder: Path, files: Files, where: str) -> None:
    """Raise unless a folder holds these files and no others."""
    found = list_files(folder) if folder.is_dir() else {}
    for name in sorted({*files, *found}):
        if found.get(name) != files.get(name):
            what = "is missing" if name not in found else "is not the file that was written"
            raise damaged(where, f"{folder.parent.name}/{folder.name}/{name} {what}")


_FOLDERS = ("budgets", "active", "spends", "scratch")
_VERSION = re.compile(r"([0-9]{8,})-[0-9a-f]+(\.json(\.new)?)?")
_ASIDE = re.compile("aside-[0-9a-f]+")


@dataclass(frozen=True)
class _Current:
    """What `state.json` says."""

    header: Header
    version: int
    spends: int
    """How many records of spends there are."""
    budgets: str | None
    files: Files

    def next(self, header: Header, budgets: str, files: Files, spent: bool) -> _Current:
        return _Current(header, self.version + 1, self.spends + spent, budgets, files)

    def to_dict(self) -> dict[str, Any]:
        fields = {**vars(self), "header": self.header.to_dict()}
        return fields | {"check": _hash(json.dumps(fields, sort_keys=True))}


class ParquetStore(Store):
    """One directory, and the engine that works on it."""

    def __init__(self, path: Path, where: str, requested: Header | None, engine: TableEngine):
        self.where, self._root, self._engine = where, path.absolute(), engine
        with self._translated_errors():
            if not (self._root / "state.json").exists():
                self._create(requested)
            stored = self._current().header
        if requested is not None:
            stored.check_same(requested, where)
        self.header = stored

    def _create(self, requested: Header | None) -> None:
        root = self._root
        nothing = ArgumentError(
            f"address must be that of an existing state: there is nothing at {str(root)!r}"
        )
        if requested is None and not all((root / name).is_dir() for name in _FOLDERS):
            raise nothing
        if root.exists():
            names = {path.name for path in root.iterdir()} if root.is_dir() else {"file"}
            if not names <= {*_FOLDERS, "lock", "state.json.new"}:
                raise ArgumentError(f"{self.where} must be a state or empty, got something else")
        for name in _FOLDERS:
            (root / name).mkdir(parents=True, exist_ok=True)
        with file_lock(root / "lock"):
            if (root / "state.json").exists():
                return
            if any(path for name in _FOLDERS for path in (root / name).iterdir()):
                raise damaged(self.where, "state.json is missing")
            if requested is None:
                raise nothing
            self._replace(_Current(requested, 0, 0, None, {}))

    def spend(self, request: SpendRequest, losses: Any) -> SpendResult:
        with self._locked() as now:
            opened = self._engine.open_losses(now.header, request, losses, self._root / "scratch")
            digest = opened.inspect()
            earlier = self._record(request.spend_id)
            if earlier is not None:
                request.check_same(earlier["digest"], digest)
                return SpendResult(request.spend_id, True, self._active(earlier))
            name = self._next_name(now)
            after, active = self._root / "budgets" / name, self._root / "active" / name
            self._engine.charge(opened, opened.pricing(), self._budgets(now), after, active)
            sync_tree(after)
            sync_tree(active)
            record = {
                "spend_id": request.spend_id,
                "digest": digest,
                "active": name,
                "files": list_files(active),
            }
            replace_json(self._record_path(now.version + 1, request.spend_id), record)
            taking_part = pq.read_table(active)
            self._swap(now, now.next(opened.header, name, list_files(after), True))
            return SpendResult(request.spend_id, False, taking_part)

    def enroll(self, subjects: Any) -> None:
        table = as_table(subjects, "subjects")
        with self._locked() as now:
            header, new = newcomers(now.header, table)
            name = self._next_name(now)
            after = self._root / "budgets" / name
            self._engine.enroll(header, new, self._budgets(now), after)
            sync_tree(after)
            self._swap(now, now.next(header, name, list_files(after), False))

    def everything(self) -> Any:
        with self._locked() as now:
            budgets = self._budgets(now)
            if budgets is None:
                return None
            return pq.read_table(
                budgets, columns=[*now.header.keys, "left"], page_checksum_verification=True
            )

    def close(self) -> None:
        self._engine.close()

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Raise failures of files as errors of this package."""
        try:
            yield
        except ResiduaError:
            raise
        except OSError as error:
            # Arrow has no number for what it finds wrong inside a file.
            what = error.strerror if error.errno else "a file is damaged"
            raise StateUnavailable(f"{self.where} cannot be read or written: {what}") from None
        except pa.ArrowException:
            raise StateUnavailable(f"{self.where} cannot be read: a file is damaged") from None

    @contextmanager
    def _locked(self) -> Iterator[_Current]:
        """The current version, checked, and no other process while it is used."""
        with self._translated_errors(), file_lock(self._root / "lock"):
            yield self._check_whole()

    # -- versions -----------------------------------------------------------------------

    def _current(self) -> _Current:
        try:
            given = json.loads((self._root / "state.json").read_text(encoding="utf-8"))
            header = Header.from_dict(given["header"], self.where)
            budgets, files = given["budgets"], given["files"]
            version, spends = int(given["version"]), int(given["spends"])
            good = isinstance(files, dict) and 0 <= spends <= version
            if good and (budgets is None or _VERSION.fullmatch(budgets)):
                found = _Current(header, version, spends, budgets, files)
                if found.to_dict() != given:
                    raise damaged(self.where, "state.json is not as it was written")
                return found
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, ResiduaError):
                raise
        raise ArgumentError(f"{self.where} must hold a state of subjects, got another state.json")

    def _check_whole(self) -> _Current:
        """The current version, swept, with all that belongs to it."""
        now = self._current()
        self._sweep(now)
        if now.budgets is not None:
            check_files(self._root / "budgets" / now.budgets, now.files, self.where)
        records = sum(1 for _ in (self._root / "spends").glob("*.json"))
        if records != now.spends:
            raise damaged(self.where, f"spends/ must hold {now.spends} records, got {records}")
        return now

    def _budgets(self, now: _Current) -> Path | None:
        return None if now.budgets is None else self._root / "budgets" / now.budgets

    @staticmethod
    def _next_name(now: _Current) -> str:
        return f"{now.version + 1:08d}-{uuid.uuid4().hex[:12]}"

    def _replace(self, state: _Current) -> None:
        replace_json(self._root / "state.json", state.to_dict())

    def _swap(self, now: _Current, after: _Current) -> None:
        """Make a version the current one, if the one before it still is."""
        if self._current() != now:
            raise StateUnavailable(
                f"{self.where} was changed by a process that did not hold its lock"
            )
        self._replace(after)
        self.header = after.header
        self._sweep(after)

    def _sweep(self, now: _Current) -> None:
        """Remove old budgets and what a killed spend left behind; else the next spend does.

        A Spark whose driver was killed may still be writing there.
        """
        for path in (self._root / "budgets").iterdir():
            ours = _VERSION.fullmatch(path.name) or _ASIDE.fullmatch(path.name)
            if ours and path.name != now.budgets:
                _remove(path)
        for folder in ("active", "spends"):
            for path in (self._root / folder).iterdir():
                found = _VERSION.fullmatch(path.name)
                if found and (path.suffix == ".new" or int(found[1]) > now.version):
                    _remove(path)
        for path in (self._root / "scratch").iterdir():
            _remove(path)

    def _record_path(self, number: int, spend_id: str) -> Path:
        return self._root / "spends" / f"{number:08d}-{_hash(spend_id)}.json"

    def _record(self, spend_id: str) -> Any:
        """What is known of a spend with this id, None if there was none."""
        for path in (self._root / "spends").glob(f"*-{_hash(spend_id)}.json"):
            try:
                record = json.loads(path.read_text(encoding="utf-8"))
                if {"digest", "active", "files"} <= {*record} and record["spend_id"] == spend_id:
                    return record
            except (ValueError, TypeError):
                pass
            raise damaged(self.where, f"spends/{path.name} is not a record")
        return None

    def _active(self, record: Any) -> Any:
        """Who took part in an earlier spend."""
        folder = self._root / "active" / str(record["active"])
        check_files(folder, record["files"], self.where)
        return pq.read_table(folder, page_checksum_verification=True)


def _remove(path: Path) -> None:
    with suppress(OSError):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
