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

The directory must be on a POSIX file system (local, or shared by the nodes of a cluster): object
stores have no atomic move.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import uuid
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from residuum.errors import ArgumentError, StateUnavailable
from residuum.individual.durable import locked, replace_json, sync_directory, sync_tree
from residuum.individual.header import Header
from residuum.individual.losses import as_table, newcomers
from residuum.individual.order import Order
from residuum.individual.store import Store
from residuum.individual.table_engine import TableEngine

_FOLDERS = ("budgets", "active", "spends", "scratch")


class ParquetStore(Store):
    """One directory, and the engine that works on it."""

    def __init__(self, path: Path, where: str, asked: Header | None, engine: TableEngine):
        self.where, self._root, self._engine = where, path.absolute(), engine
        pointer = self._root / "state.json"
        if not pointer.exists():
            self._create(asked)
        stored = self._current()[0]
        if asked is not None:
            stored.check_same(asked, where)
        self.header = stored

    def _create(self, asked: Header | None) -> None:
        root = self._root
        if asked is None:
            raise ArgumentError(f"address must be that of a state, got nothing at {str(root)!r}")
        if root.exists() and (not root.is_dir() or any(root.iterdir())):
            names = {path.name for path in root.iterdir()} if root.is_dir() else {"file"}
            if not names <= {*_FOLDERS, "lock", "state.json.new"}:
                raise ArgumentError(f"{self.where} must be a state or empty, got something else")
        for name in _FOLDERS:
            (root / name).mkdir(parents=True, exist_ok=True)
        with locked(root / "lock"):
            if not (root / "state.json").exists():
                self._replace(asked, 0, None)

    def spend(self, order: Order, losses: Any) -> Any:
        with locked(self._root / "lock"):
            header, version, current = self._current()
            self._sweep(version, current)
            opened = self._engine.open_losses(header, order, losses, self._root / "scratch")
            looked = order.looked(opened.header, opened.column, opened.findings)
            earlier = self._record(order.spend_id)
            if earlier is not None:
                looked.check_same(earlier["digest"])
                return pq.read_table(self._root / "active" / earlier["active"])
            name = f"{version + 1:08d}-{uuid.uuid4().hex[:12]}"
            after, active = self._root / "budgets" / name, self._root / "active" / name
            before = None if current is None else self._root / "budgets" / current
            self._engine.charge(opened, looked.pricing(), before, after, active)
            for folder in (after, active):
                sync_tree(folder)
                sync_directory(folder.parent)
            record = {"spend_id": order.spend_id, "digest": looked.digest, "active": name}
            replace_json(self._record_path(version + 1, order.spend_id), record)
            self._swap(opened.header, version, current, name)
            return pq.read_table(active)

    def enroll(self, subjects: Any) -> None:
        table = as_table(subjects, "subjects")
        with locked(self._root / "lock"):
            header, version, current = self._current()
            self._sweep(version, current)
            header, new = newcomers(header, table)
            name = f"{version + 1:08d}-{uuid.uuid4().hex[:12]}"
            after = self._root / "budgets" / name
            before = None if current is None else self._root / "budgets" / current
            self._engine.enroll(header, new, before, after)
            sync_tree(after)
            sync_directory(after.parent)
            self._swap(header, version, current, name)

    def everything(self) -> Any:
        header, _, current = self._current()
        if current is None:
            return None
        return pq.read_table(self._root / "budgets" / current, columns=[*header.keys, "left"])

    def close(self) -> None:
        self._engine.close()

    # -- versions -----------------------------------------------------------------------

    def _current(self) -> tuple[Header, int, str | None]:
        try:
            given = json.loads((self._root / "state.json").read_text(encoding="utf-8"))
            header = Header.from_dict(given["header"], self.where)
            return header, int(given["version"]), given["budgets"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            if isinstance(error, ArgumentError):
                raise
            raise ArgumentError(
                f"{self.where} must hold a state of subjects, got {error}"
            ) from None

    def _replace(self, header: Header, version: int, budgets: str | None) -> None:
        value = {"header": header.to_dict(), "version": version, "budgets": budgets}
        replace_json(self._root / "state.json", value)

    def _swap(self, header: Header, version: int, current: str | None, name: str) -> None:
        """Make a version the current one, if the one before it still is."""
        if self._current()[1:] != (version, current):
            raise StateUnavailable(f"{self.where} was changed by someone who did not hold its lock")
        self._replace(header, version + 1, name)
        self.header = header
        self._sweep(version + 1, name)

    def _sweep(self, version: int, current: str | None) -> None:
        """Remove old budgets, and whatever a killed spend left behind."""
        for path in (self._root / "budgets").iterdir():
            if path.name != current:
                shutil.rmtree(path)
        for folder in ("active", "spends"):
            for path in (self._root / folder).iterdir():
                if path.suffix == ".new" or int(path.name[:8]) > version:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
        for path in (self._root / "scratch").iterdir():
            shutil.rmtree(path)

    def _record_path(self, number: int, spend_id: str) -> Path:
        return self._root / "spends" / f"{number:08d}-{_hashed(spend_id)}.json"

    def _record(self, spend_id: str) -> Any:
        """What is known of a spend with this id, None if there was none."""
        for path in (self._root / "spends").glob(f"*-{_hashed(spend_id)}.json"):
            return json.loads(path.read_text(encoding="utf-8"))
        return None


def _hashed(spend_id: str) -> str:
    return hashlib.sha256(spend_id.encode()).hexdigest()
