"""Loaded once by the server that writers are forked from, so that none of them begins cold."""

from __future__ import annotations

import tempfile
from pathlib import Path

import residua.ledger.storage.postgres  # noqa: F401
from faults import writers

with tempfile.TemporaryDirectory() as _folder:
    _here = Path(_folder)
    writers.make(f"sqlite:///{_here}/ledger.db", _here / "anchor")
    writers.write(f"sqlite:///{_here}/ledger.db", _here / "anchor", _here / "n", "warm", 20, None)
