"""A writer for a recorded run, in a process of its own: `python -m faults.recorded_writer JSON`.

`wal` chooses SQLite's write-ahead log, whatever the library's version. `careless` names what does
not wait for the disk, so that the tests can be seen to notice: the "store", which is SQLite with
`synchronous=OFF`, or a PostgreSQL with `fsync=off`, a setting that the ledger then does not look
at; or the "anchor".
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import residua as rz
from faults import writers
from residua.ledger.storage import anchor as anchors
from residua.ledger.storage import postgres, sqlite


def main(url: str, anchor: str, notes: str, run: str, most: int, wal: bool, careless: str) -> None:
    sqlite.wal_is_safe = lambda version: wal
    if careless == "store":
        sqlite.SqliteStore._set_up = _without_sync
        setting = "current_setting('fsync')"
        assert setting in postgres._SETTINGS
        postgres._SETTINGS = postgres._SETTINGS.replace(setting, "'on'")
    elif careless == "anchor":
        anchors._sync = lambda file: None
    with rz.open_ledger(url, anchor=anchor) as ledger:
        known = {budget.name for budget in ledger.budgets()}
        for name, filter in writers.BUDGETS.items():
            if name not in known:
                ledger.create_budget(name, filter)
    with open(notes, "a") as log:
        log.write('["made", null]\n')
    writers.write(url, Path(anchor), Path(notes), run, most, None)


def _without_sync(_: sqlite.SqliteStore, connection: Any, __: object) -> None:
    connection.execute("PRAGMA synchronous=OFF")


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
