"""The state of a ledger at a glance, for people and for monitoring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from residuum.ledger.receipts import Hold
from residuum.ledger.views import Budget, Promise

ANCHOR_STANDBYS = "anchor's standbys"
PROMISES = (
    "a spend or commit is durable before its caller is told that it may run",
    "nothing that was committed ever comes back",
    "a repeated key gets the same receipt, and permits no other run",
    "a request that names several budgets takes from all of them or from none",
)


@dataclass(frozen=True)
class Status:
    """Budgets, open holds, what is promised of each data set, and how the store is set up."""

    ledger: str
    incarnation: str
    store: Mapping[str, str]
    anchor: str
    read_only: str | None
    budgets: tuple[Budget, ...]
    holds: tuple[Hold, ...]
    data: Mapping[str, Promise]
    """By data label: what all caps on that data come to together."""
    promises: tuple[str, ...]


def promises(facts: Mapping[str, str], read_only: str | None) -> tuple[str, ...]:
    """What holds in this set-up, and what does not."""
    found = list(PROMISES)
    if "accepted" in facts.get("standbys", ""):
        found[0] += ", on the primary: a failover to an asynchronous standby may lose it"
    if "accepted" in facts.get(ANCHOR_STANDBYS, ""):
        found[1] += (
            ", unless a backup is restored after a failover of the anchor's database to an"
            " asynchronous standby, which may have lost what would tell"
        )
    if read_only is not None:
        found.append(f"nothing can be spent: {read_only}")
    return tuple(found)


def by_data(budgets: Sequence[Budget]) -> dict[str, Promise]:
    """What the caps on each data set come to: one promise, or several composed."""
    roots: dict[str, list[Budget]] = {}
    for budget in budgets:
        if budget.data is not None and budget.parent is None:
            roots.setdefault(budget.data, []).append(budget)
    found = {}
    for data, caps in roots.items():
        first, *others = (cap.guarantee for cap in caps)
        total = first.pld
        for other in others:
            total += other.pld
        names = " and ".join(repr(cap.name) for cap in caps)
        text = first.text if not others else f"{names} are caps on the same data, and add up"
        found[data] = Promise(total, text)
    return found
