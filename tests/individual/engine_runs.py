"""A workload that every engine runs, and how states are compared."""

from typing import Any

import numpy as np
import pyarrow as pa

import residua as rz

M = rz.mechanisms


def by_key(table: pa.Table) -> pa.Table:
    keys = [name for name in ("subject", "epoch") if name in table.column_names]
    return table.replace_schema_metadata(None).sort_by([(key, "ascending") for key in keys])


def state_of(state: Any) -> pa.Table:
    return by_key(state.export_sensitive_state_never_release())


def workload(count: int, people: int, epochs: bool, texts: bool, seed: int) -> list[dict[str, Any]]:
    """Spends: losses with their mechanism, large and small, with newcomers."""
    rng = np.random.default_rng(seed)
    spends = []
    for number in range(count):
        size = people // 50 if number % 3 == 2 else people // 2
        subject = rng.choice(people, size, replace=False)
        columns: dict[str, Any] = {
            "subject": [f"person {s}" for s in subject] if texts else subject
        }
        if epochs:
            columns["subject"] = np.repeat(np.asarray(columns["subject"]), 2)
            columns["epoch"] = np.tile([number // 2, number // 2 + 1], size)
        rows = len(columns["subject"])
        kind = number % 4
        mechanism, levels = None, None
        if kind == 0:
            columns["nu"] = rng.uniform(0.0, 0.7, rows)
        elif kind == 1:
            columns["eps"] = rng.uniform(0.0, 0.5, rows)
            levels = [0.1, 0.2, 0.3, 0.5]
        elif kind == 2:
            columns["sensitivity"] = np.round(rng.uniform(0.0, 2.0, rows), 1)
            mechanism = M.Laplace(scale=5.0)
            levels = [0.5, 1.0, 1.5, 2.0]
        else:
            mechanism = rz.laplace(scale=2.0)
        spends.append({"losses": pa.table(columns), "mechanism": mechanism, "levels": levels})
    return spends


def run(state: Any, spends: list[dict[str, Any]]) -> list[pa.Table]:
    """The active sets, one after the other."""
    return [
        by_key(
            state.spend(
                one["losses"],
                spend_id=f"q-{number}",
                mechanism=one["mechanism"],
                levels=one["levels"],
            ).active
        )
        for number, one in enumerate(spends)
    ]
