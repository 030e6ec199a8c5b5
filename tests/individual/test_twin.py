"""Random spends on every engine against budgets kept as fractions in a dictionary, bit by bit.

Losses are short decimals, whose costs have closed forms: `eps`, `nu²/2` or `nu²`. The twin knows
nothing of units, batches, joins or levels.
"""

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import residua as rz
from individual.conftest import STORES
from individual.engine_runs import state_of

M = rz.mechanisms
Key = tuple[Any, ...]


class Twin:
    """One fraction a key."""

    def __init__(self, capacity: Fraction, unknown: str, together: bool):
        self.left: dict[Key, Fraction] = {}
        self._capacity, self._unknown, self._together = capacity, unknown, together

    def spend(self, costs: dict[Key, Fraction]) -> set[Key]:
        starts = self._unknown == "start"
        had = {key: self.left.get(key, self._capacity if starts else None) for key in costs}
        out = {key for key, cost in costs.items() if had[key] is None or cost > had[key]}
        if self._together:
            gone = {key[0] for key in out}
            out = {key for key in costs if key[0] in gone}
        for key in costs.keys() - out:
            self.left[key] = had[key] - costs[key]
        return costs.keys() - out


CASES: list[Any] = [
    (rz.PureFilter(eps=1.0), "eps", lambda x: x, {}),
    (rz.PureFilter(eps=0.7), "sensitivity", lambda x: x / 2, {"unknown": "exclude"}),
    (rz.ZcdpFilter(rho=0.5), "nu", lambda x: x * x / 2, {"epochs": True}),
    (rz.ZcdpFilter(rho=6.25), "nu", lambda x: x * x / 2, {}),
    (rz.GdpFilter(mu=1.0), "nu", lambda x: x * x, {"epochs": True, "unit": "subject"}),
    (
        rz.GdpResidueFilter(mu=1.5),
        "nu",
        lambda x: x * x,
        {"epochs": True, "unit": "subject", "unknown": "exclude"},
    ),
    (rz.GdpResidueFilter(mu=1.0), "sensitivity", lambda x: x * x / 16, {}),
]


def columns(rows: list[Key]) -> dict[str, Any]:
    return dict(zip(("subject", "epoch"), map(list, zip(*rows, strict=True)), strict=False))


@pytest.mark.needs("duckdb")
@pytest.mark.parametrize("engine", STORES)
@pytest.mark.parametrize("case", range(len(CASES)))
def test_every_bit(make: Callable[..., Any], engine: str, case: int, thorough: bool) -> None:
    filter, column, cost, options = CASES[case]
    rng = random.Random(case)
    epochs = range(3) if options.get("epochs") else None
    mechanism = None
    if column == "sensitivity":
        mechanism = M.Laplace(2.0) if isinstance(filter, rz.PureFilter) else M.Gaussian(sigma=4.0)
    state = make(engine, filter=filter, **options)
    capacity = filter._amounts()[0]
    twin = Twin(capacity, options.get("unknown", "start"), "unit" in options)
    people = [f"{person}" if case % 2 else person for person in range(12)]
    keys: list[Key] = [(p, e) for p in people for e in epochs] if epochs else [(p,) for p in people]
    # Some have the whole capacity, some a small one, some are unknown.
    enrolled = rng.sample(keys, 10)
    state.enroll(columns(enrolled[5:]))
    state.enroll(columns(enrolled[:5]) | {"capacity": [0.25] * 5})
    squared = isinstance(filter, rz.GdpFilter | rz.GdpResidueFilter)
    twin.left |= dict.fromkeys(enrolled[5:], capacity)
    twin.left |= dict.fromkeys(enrolled[:5], Fraction(1, 16 if squared else 4))
    most = 2.0 * float(capacity) ** (1.0 if column == "eps" else 0.5)
    for number in range(40 if thorough else 8):
        rows = rng.sample(keys, rng.randrange(len(keys) // 2, len(keys)))
        sizes = [rng.choice([0.0, 0.2, 0.5, 1.0]) * most * rng.random() for _ in rows]
        losses = [round(size, number % 4) for size in sizes]
        given = columns(rows) | {column: losses}
        active = state.spend(given, spend_id=str(number), mechanism=mechanism).active
        found = set(zip(*(active[key].to_pylist() for key in active.column_names), strict=True))
        exact = {k: cost(Fraction(repr(loss))) for k, loss in zip(rows, losses, strict=True)}
        assert found == twin.spend(exact), number
    table = state_of(state)
    digits = int(state.export_sensitive_state_never_release().schema.metadata[b"unit_digits"])
    kept = zip(*(table[key].to_pylist() for key in active.column_names), strict=True)
    left = (Fraction(one, 10**digits) for one in table["left"].to_pylist())
    assert dict(zip(kept, left, strict=True)) == twin.left
    assert any(one < capacity / 4 for one in twin.left.values()), "somebody got near the end"
