"""What the writers do that the harness kills: spends of every kind, each noted before and after.

A note is one line of a file, written before the ledger is asked (`try`) and after it answered
(`ack`). A line that was written survives the death of its writer.
"""

from __future__ import annotations

import json
import random
import signal
from pathlib import Path
from typing import Any

import residua as rz
from residua.ledger.operations import committer

BUDGETS = {
    "pure": rz.PureFilter(eps=3.0),
    "residue": rz.GdpResidueFilter(mu=3.0),
    "zcdp": rz.ZcdpFilter(rho=2.0),
}
QUERIES = (
    rz.mechanisms.Laplace(scale=50.0),
    rz.mechanisms.PureDp(eps=0.01),
    rz.mechanisms.Laplace(scale=0.1),  # too much for any of them
)
GROUPS = (("pure",), ("residue",), ("zcdp", "pure"), ("residue", "zcdp"))


def make(url: str, anchor: Path) -> None:
    """A ledger with the budgets that writers spend from."""
    with rz.open_ledger(url, anchor=anchor) as ledger:
        for name, filter in BUDGETS.items():
            ledger.create_budget(name, filter)


def write(
    url: str, anchor: Path, notes: Path, run: str, most: int, fault: tuple[str, int] | None
) -> None:
    """Spend until killed, or `most` times."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    committer._FAULT = fault
    chance = random.Random(run)
    with rz.open_ledger(url, anchor=anchor, create=False) as ledger, notes.open("a") as log:

        def note(*words: Any) -> None:
            log.write(json.dumps(words) + "\n")
            log.flush()

        for place in range(most):
            names = chance.choice(GROUPS)
            query = chance.choice(QUERIES)
            verb = chance.choice(("spend", "spend", "commit", "cancel"))
            key = f"{run}-{place}"
            note("try", key, verb, names, query.to_dict())
            try:
                done = ask(ledger, key, verb, names, query)
            except (rz.StoreUnavailable, rz.OutcomeUnknown) as error:
                note("error", key, type(error).__name__)
                continue
            note("ack", key, verb, *done)


def ask(
    ledger: rz.Ledger, key: str, verb: str, names: tuple[str, ...], query: Any
) -> tuple[bool, dict[str, Any]]:
    """One request under a key: whether it may run, and the record it got in each budget."""
    if verb == "spend":
        receipt = ledger.spend(list(names), query, key=key)
        return receipt.admitted, _places(receipt)
    held = ledger.reserve(list(names), query, key=f"{key}-hold")
    if not held.admitted:
        return False, {}
    if verb == "commit":
        receipt = ledger.commit(held.id, key=key)
        return receipt.admitted, _places(receipt)
    ledger.cancel(held.id, "not needed")
    return False, {}


def _places(receipt: rz.Receipt) -> dict[str, Any]:
    return {name: list(place) for name, place in receipt.budgets.items()}
