"""The state of a ledger at a glance, for people and for monitoring."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from residua.ledger.api.views import Budget, Promise
from residua.ledger.domain.receipts import Hold
from residua.pld.constructors import identity

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
    data: Mapping[str, tuple[Promise, ...]]
    """By data label: what all caps on that data come to, one for each relation and unit."""
    promises: tuple[str, ...]


def promises(facts: Mapping[str, str], read_only: str | None) -> tuple[str, ...]:
    """The promises that hold in this set-up, and those that do not."""
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


def by_data(budgets: Sequence[Budget]) -> dict[str, tuple[Promise, ...]]:
    """The sum of the caps on each data set, for each relation and unit that they are about.

    Caps that are about the same neighbours compose. Others do not: a bound for one event or one
    replacement says nothing of a person who is added, and no conversion is made up.
    """
    roots: dict[str, dict[tuple[str, str], list[Budget]]] = {}
    for budget in budgets:
        if budget.data is not None and budget.parent is None:
            alike = roots.setdefault(budget.data, {})
            alike.setdefault((budget.relation, budget.unit), []).append(budget)
    return {data: tuple(_promises(groups)) for data, groups in roots.items()}


def _promises(groups: Mapping[tuple[str, str], Sequence[Budget]]) -> Iterator[Promise]:
    for (relation, unit), caps in groups.items():
        made = _together(relation, unit, caps)
        others = [f"one {u} under {r}" for r, u in groups if (r, u) != (relation, unit)]
        if others:
            about = " and of ".join(others)
            note = f"{made.text}; what is promised of {about} is about other neighbours"
            made = Promise(made.pld, f"{note}, and does not add up with this")
        yield made


def _together(relation: str, unit: str, caps: Sequence[Budget]) -> Promise:
    """The sum of caps that are about the same neighbours."""
    if len(caps) == 1:
        return caps[0].guarantee
    total = identity()
    for cap in caps:
        total += cap.guarantee.pld
    names = " and ".join(repr(cap.name) for cap in caps)
    subject = f"one {unit} under {relation}"
    if total.is_infinite:
        return Promise(total, f"{subject}: nothing, for {names} compose to no delta below 1")
    return Promise(
        total, f"{subject}: {total!r}, for {names} are caps on the same data, and add up"
    )
