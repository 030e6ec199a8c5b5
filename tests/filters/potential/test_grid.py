"""Potentials, value tables and the filters on them, beside slow exact twins."""

from __future__ import annotations

import json
import math
import random

import numpy as np
import pytest

import residua as rz
from residua.filters.potential.grid import (
    PARTS,
    Grid,
    Item,
    Step,
    Table,
    grid_for,
    step_of,
    value_table,
)
from residua.filters.query import loss_of

GRID = Grid(1.0, 1e-6, 100, 160)
FINE = grid_for(1.0, 1e-6)

QUERIES = {
    "response on the grid": rz.pure_dp(0.1),
    "response off the grid": rz.pure_dp(0.0333),
    "approximate": rz.approximate_dp(0.05, 1e-8),
    "laplace": rz.laplace(12.0),
    "gaussian": rz.gaussian(sigma=18.0),
    "range": rz.bounded_range(0.2),
    "sampled, removed": rz.subsampled_gaussian(1.2, 0.02),
    "sampled, added": rz.subsampled_gaussian(1.2, 0.02, "add"),
    "atoms": rz.from_atoms([-0.12, 0.0, 0.13], [0.3, 0.2, 0.5 - 1e-9], 1e-9),
    "mixed": rz.laplace(20.0) + rz.gaussian(sigma=30.0) + 2 * rz.pure_dp(0.03),
}


def excess(pld: rz.Pld, grid: Grid) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the excess at the grid points, from the certified curves of both directions."""
    t = np.arange(grid.half + 1) * float(grid.spacing)
    right, left = pld.delta_bounds(t), pld.reverse().delta_bounds(t)
    decay = np.exp(-t)
    low = np.concatenate([(left.lo * decay)[:0:-1], right.lo])
    high = np.concatenate([(left.hi * decay)[:0:-1], right.hi])
    return low, high


def assert_close(made: np.ndarray, exact: np.ndarray) -> None:
    """Above by chords and cut tails alone: never higher than the exact curve one cell inwards."""
    middle = made.size // 2
    assert made[middle] <= exact[middle] * 1.01
    assert np.all(made[middle + 1 :] <= exact[middle:-1] * (1.0 + 1e-6) + 1e-12)
    assert np.all(made[:middle] <= exact[1 : middle + 1] * (1.0 + 1e-6) + 1e-12)


def slow_after(step: Step, potential: np.ndarray) -> np.ndarray:
    """`L ∘ φ` term by term, exactly summed, without any rounding up."""
    d, n = float(step.grid.spacing), potential.size
    out = []
    for k in range(n):
        terms = [float(step.excess[k])]
        for i, mass in enumerate(step.masses.tolist()):
            at = k - (i + step.low)
            if at >= n:
                value = potential[-1]
            elif at < 0:
                value = potential[0] * math.exp(d * at)
            else:
                value = potential[at]
            terms.append(mass * float(value))
        out.append(math.fsum(terms))
    return np.array(out)


@pytest.mark.parametrize("copies", [1, 5])
@pytest.mark.parametrize("name", QUERIES)
def test_steps_are_above_and_close(name, copies):
    loss = copies * QUERIES[name]
    step = step_of(FINE, loss)
    low, high = excess(loss, FINE)
    assert np.all(step.excess >= low * (1.0 - 1e-12))
    assert_close(step.excess, high)
    # Masses are second differences of the curve, and that of a composition has fewer digits.
    most = 1e-9 if copies == 1 and name != "mixed" else 1e-3
    assert 1.0 - 1e-6 <= step.masses.sum() + step.excess[-1] <= 1.0 + most


@pytest.mark.parametrize("name", QUERIES)
def test_composition_covers_the_composition(name):
    first, second = step_of(FINE, QUERIES[name]), step_of(FINE, rz.laplace(15.0))
    low, high = excess(QUERIES[name] + rz.laplace(15.0), FINE)
    for one, other in ((first, second), (second, first)):
        made = one.after(other.excess)
        assert np.all(made >= low * (1.0 - 1e-12))
        assert_close(made, high)


@pytest.mark.parametrize("name", ["response off the grid", "gaussian", "sampled, added"])
def test_after_is_rounded_up_and_no_further(name):
    step = step_of(GRID, QUERIES[name])
    rng = np.random.default_rng(3)
    potential = np.sort(rng.random(GRID.size)) * np.exp(rng.normal(0.0, 4.0, GRID.size))
    slow = slow_after(step, potential)
    fast = step.after(potential)
    assert np.all(fast >= slow)
    assert np.all(fast <= slow * (1.0 + 1e-11))


def test_tables_are_the_exact_values_on_the_lattice():
    """Against suprema and compositions of PLDs in rationals: same levels, up to chords."""
    a, b = rz.from_atoms([-0.2, 0.2], _response(0.2)), rz.from_atoms([-0.3, 0.3], _response(0.3))
    table = value_table(GRID, [Item(step_of(GRID, a), 2), Item(step_of(GRID, b), 3)])
    assert table.top >= 2
    exact = [rz.identity()]
    for s in range(1, 8):
        options = [exact[s - 1]]
        options += [query + exact[s - c] for query, c in ((a, 2), (b, 3)) if c <= s]
        exact.append(rz.supremum(options))
    for s in range(1, min(table.top, 7) + 1):
        low, high = excess(exact[s], GRID)
        assert np.all(table.levels[s] >= low * (1.0 - 1e-12))
        assert np.all(table.levels[s] <= high * 1.02 + 1e-12)


def _response(eps: float) -> list[float]:
    return [1.0 / (1.0 + math.exp(eps)), 1.0 / (1.0 + math.exp(-eps))]


def small_table() -> tuple[Table, list[Item]]:
    items = [
        Item(step_of(GRID, rz.pure_dp(0.1)), 9),
        Item(step_of(GRID, rz.gaussian(mu=0.05)), 5),
        Item(step_of(GRID, rz.pure_dp(0.03)), 1),
        Item(step_of(GRID, rz.approximate_dp(0.0, 5e-10)), 1),
    ]
    return value_table(GRID, items), items


def test_levels_satisfy_the_residue_condition_between_them_too():
    table, items = small_table()
    rng = random.Random(5)
    assert table.top > 30
    assert GRID.fits(table.levels[-1])
    for _ in range(60):
        item = rng.choice(items)
        at = rng.randrange(item.price * PARTS, table.whole + 1)
        needed = item.step.after(table.at(at - item.price * PARTS))
        assert np.all(needed <= table.at(at) * (1.0 + 1e-13))


def test_what_is_not_listed_pays_the_least_that_is_allowed():
    table, _ = small_table()
    for loss in (rz.laplace(15.0), rz.gaussian(mu=0.07), rz.pure_dp(0.07)):
        step = step_of(GRID, loss)
        for at in (table.whole, table.whole // 2 + 17):
            potential = table.at(at)
            best = table.best(step, potential, at)
            assert best is not None and best < at
            assert np.all(slow_after(step, table.at(best)) <= potential)
            assert not step.allowed(potential, table.at(min(best + PARTS // 50, at)))
    assert table.best(step_of(GRID, rz.pure_dp(1.5)), table.at(table.whole), table.whole) is None


def test_both_ends_of_the_target_bind():
    """A curve within delta at `eps` and not at `-eps` must not fit."""
    potential = np.zeros(GRID.size)
    potential[GRID.half + GRID.cells] = GRID.delta
    assert GRID.fits(potential)
    potential[GRID.half - GRID.cells] = GRID.delta
    assert not GRID.fits(potential)


# ------------------------------------------------------------------------- the filters


def test_menu_against_the_exact_worst_case():
    """Every adaptive use of the menu, played out in rationals, stays within the target."""
    menu = (rz.pure_dp(0.5), rz.pure_dp(1.0))
    filter = rz.MenuFilter(2.0, 0.05, menu, prices=(100, 220))
    worst = rz.worst_case(rz.as_rule(filter, list(menu)), 6).pld
    assert worst <= rz.approximate_dp(2.0, 0.05)
    assert float(worst.delta(2.0)) > 0.2 * 0.05


KINDS = (rz.pure_dp(0.03), rz.laplace(25.0), rz.gaussian(sigma=25.0), rz.pure_dp(0.11))


def menus() -> list[rz.MenuFilter]:
    return [
        rz.MenuFilter(1.0, 1e-6, KINDS),
        rz.MenuFilter(1.0, 1e-6, KINDS[:3], (20, 30, 25)),
        rz.MenuFilter(3.0, 1e-5, (*KINDS, rz.subsampled_gaussian(1.0, 0.01))),
    ]


@pytest.mark.parametrize("filter", menus(), ids=["rounded", "priced", "sampled"])
def test_random_states_of_a_menu_are_residues(filter):
    """Anywhere on the table: what follows a query is covered, by the slow twin."""
    rng = random.Random(4)
    admitted = 0
    for _ in range(12):
        left = rng.randrange(filter.table.whole // 2, filter.table.whole + 1)
        state = type(filter.initial())(filter.fingerprint, left)
        query = rng.choice([*filter.menu, rz.laplace(17.0), rz.pure_dp(0.012)])
        decision = filter.decide(state, query)
        if decision.admitted:
            admitted += 1
            step = step_of(filter.grid, loss_of(query))
            needed = slow_after(step, filter.potential(decision.state))
            assert np.all(needed <= filter.potential(state) * (1.0 + 1e-12))
        assert filter.admits(state, query) == decision.admitted
    assert admitted > 6


def test_listed_queries_pay_their_price():
    filter = rz.MenuFilter(1.0, 1e-6, KINDS[:3], (20, 30, 25))
    for query, price in zip(KINDS, (20, 30, 25), strict=False):
        assert filter.check(query).cost == price
    assert filter.check(rz.pure_dp(0.03)).cost_words == f"20 of {filter.table.top} levels"


def test_off_the_menu_the_least_price_is_paid():
    tenth = rz.pure_dp(0.1)
    filter = rz.MenuFilter(1.0, 1e-6, [tenth, rz.gaussian(sigma=20.0)], prices=[40, 20])
    assert filter.spend(tenth).cost == 40
    off = filter.check(rz.laplace(11.0))
    assert off.admitted and 0 < off.cost < 40
    refusal = filter.spend(rz.pure_dp(3.0))
    assert not refusal.admitted and refusal.largest is not None
    assert filter.check(refusal.largest).admitted
    assert filter.check(filter.remaining).admitted
    assert filter.state_from_json(filter.state_to_json(filter.state)) == filter.state


def test_rounded_prices_admit_a_good_part_of_the_best():
    sizes = (0.05, 0.1, 0.2)
    filter = rz.MenuFilter(3.0, 1e-6, [*map(rz.pure_dp, sizes), rz.gaussian(sigma=20.0)])
    for query, best in ((rz.pure_dp(0.05), 170), (rz.gaussian(sigma=20.0), 167)):
        assert 0.85 * best <= rz.how_many(filter, query) <= best


def test_a_menu_on_which_nothing_fits_admits_nothing():
    filter = rz.MenuFilter(1.0, 1e-6, [rz.pure_dp(3.0)])
    assert filter.remaining.is_identity and not filter.spend(rz.pure_dp(0.01)).admitted


def test_menus_read_states_strictly():
    priced = rz.MenuFilter(1.0, 1e-6, KINDS[:2], (20, 30))
    data = json.loads(priced.state_to_json(priced.initial()))
    wrong = [
        data | {"left": -1},
        data | {"left": priced.table.whole + 1},
        data | {"left": "3"},
        data | {"left": 0, "plan": None},
        {"kind": "menu", "of": data["of"]},
        json.loads(rz.AutoFilter(1.0, 1e-6).state_to_json(rz.AutoFilter(1.0, 1e-6).initial())),
    ]
    for given in wrong:
        with pytest.raises(rz.ResiduaError):
            priced.state_from_json(given)
