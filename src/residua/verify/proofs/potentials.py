"""Proofs of the menu filter, whose states have potentials.

A potential is an array `φ` of non-negative numbers at the grid points `t_k = k eps / cells`,
`|k| <= half`. It *covers* what can still happen if the excess of that lies below it there. If a
state covers with `φ'` what follows a query `L`, everything together is covered by

    (L ∘ φ')_k = g_L(t_k) + Σ_j p_j φ'_{k-j},

`p` the masses of a law on the grid that dominates `L` (`dominating.py`), `φ'` continued to the
right by its last value and to the left by its first, falling like `e^t`, as excesses do at most.
So a step is sound if `L ∘ φ' <= φ` at every grid point, and a first state if its `φ` is at most
`delta` at `eps` and `e^-eps delta` at `-eps`: then all lies below `R_{eps,delta}`. A query without
loss keeps the potential.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from residua.verify.arithmetic import BITS, Ball, ball, bits, exact, near, reserve_memory, work
from residua.verify.descriptions.configurations import Config, State, Tables, Unreadable
from residua.verify.descriptions.mechanisms import StepQuery
from residua.verify.losses.dominating import lattice_of, multiply
from residua.verify.losses.factors import Loss, Unknown
from residua.verify.losses.hockey_stick import curve
from residua.verify.losses.laws import Finite
from residua.verify.proofs.verdict import Proof, prove_at_most, proven, refuted, undecided

PARTS = 1 << 12
"""A level of the menu has so many parts."""


@dataclass(frozen=True)
class Potential:
    """A grid and what a state covers."""

    eps: float
    delta: float
    cells: int
    half: int
    whole: int
    """The highest level of the menu, in parts."""
    values: tuple[float, ...]

    @property
    def spacing(self) -> Fraction:
        return exact(self.eps) / self.cells

    @property
    def grid(self) -> tuple[float, float, int, int]:
        return self.eps, self.delta, self.cells, self.half


def potential_of(tables: Tables) -> Potential | None:
    """The potential that a table holds; None if there is none."""
    content = tables.get("potential")
    if content is None:
        return None
    line, _, rest = content.partition(b"\n")
    try:
        head = json.loads(line)
        if set(head) != {"cells", "delta", "eps", "half", "v", "whole"} or head["v"] != 1:
            raise ValueError(f"fields {sorted(head)}")
        counts = [type(head[name]) is int for name in ("cells", "half", "whole")]
        if not all(counts) or not all(type(head[name]) is float for name in ("eps", "delta")):
            raise ValueError("cells, half and whole must be counts, eps and delta numbers")
        if head["whole"] < 0 or head["whole"] % PARTS:
            raise ValueError("whole must be a number of levels")
        if len(rest) != 8 * (2 * head["half"] + 1):
            raise ValueError("as many numbers as there are grid points")
        work(len(rest) / 8)
        reserve_memory(len(rest) / 8)
        values = struct.unpack(f"<{len(rest) // 8}d", rest)
    except (ValueError, TypeError, struct.error) as error:
        raise Unreadable(f"the table of a potential cannot be read: {error}") from None
    if not all(0.0 <= v < float("inf") for v in values):
        raise Unreadable("a potential must be made of non-negative numbers")
    if not 0 < head["cells"] <= head["half"]:
        raise Unreadable("the grid of a potential must reach beyond eps")
    grid = head["eps"], head["delta"], head["cells"], head["half"]
    return Potential(*grid, head["whole"], tuple(values))


def _left(state: State, found: Potential) -> int:
    """What is left in a state, in parts of a level."""
    left = state["left"]
    if type(left) is not int or not 0 <= left <= found.whole:
        raise Unreadable(f"left must be a count up to {found.whole}, got {left!r:.60}")
    return left


def first(config: Config, state: State, tables: Tables) -> Proof:
    """Whether a first state keeps `(eps, delta)`."""
    found = potential_of(tables)
    if found is None:
        return undecided("the potential of the first state is not here")
    if _left(state, found) != found.whole:
        return refuted("the first state is not the whole menu")
    return _of_target(config, found) or _under_target(found)


def _of_target(config: Config, found: Potential) -> Proof | None:
    if found.eps != config["eps"] or found.delta != config["delta"]:
        return refuted("the potential is for another target")
    return None


def _under_target(grid: Potential) -> Proof:
    right, left = (grid.values[grid.half + side] for side in (grid.cells, -grid.cells))
    eps, delta = exact(grid.eps), exact(grid.delta)
    return prove_at_most(
        lambda: (arb(right).max(arb(left) * ball(eps).exp()), ball(delta)),
        "the first potential keeps (eps, delta)",
        "the first potential exceeds (eps, delta)",
    )


def step(config: Config, before: State, after: State, query: StepQuery) -> Proof:
    """Whether the next state may follow a query."""
    loss = query.loss
    old, new = potential_of(query.before), potential_of(query.after)
    if old is None or new is None:
        return undecided("the potential of a state is not here")
    had, has = _left(before, old), _left(after, new)
    wrong = _of_target(config, new)
    if wrong is not None:
        return wrong
    if old.grid != new.grid:
        return refuted("the potentials are on different grids")
    if old.whole != new.whole:
        return refuted("the number of levels of the menu changes")
    if has > had:
        return refuted("the level rises")
    if loss.is_identity:
        # The next step is judged by the potential of this one: it must be the one that was proven.
        same = has == had and old == new
        return proven("no loss") if same else refuted("the state changes without a loss")
    with bits(BITS):
        needed = composed(loss, new)
        for k, (high, limit) in enumerate(zip(needed, old.values, strict=True)):
            if not high <= arb(limit):
                at = (k - new.half) * new.eps / new.cells
                return undecided(f"the residue condition is not shown at ln x = {at:.6g}")
    return proven("the residue condition holds at every grid point")


def composed(loss: Loss, grid: Potential) -> list[Ball]:
    """`L ∘ φ'` at every grid point, enclosed."""
    every = _refinement(loss, grid)
    # Charged in full: well below what the filters cut off, which they charge likewise.
    tail = 1e-11 * grid.delta
    while True:
        try:
            law = lattice_of(loss, grid.spacing / every, tail, 2 * grid.half * every)
            break
        except Unknown:
            # Too many outcomes so close together: fewer still give a law above.
            if every == 1:
                raise
            every //= 2
    low, masses = law.coarse(every)
    high = low + len(masses) - 1
    values = [arb(v) for v in grid.values]
    d = ball(grid.spacing)
    whole = [values[0] * (-k * d).exp() for k in range(max(high, 0), 0, -1)]
    whole += values + [values[-1]] * max(-low, 0)
    product = multiply(whole, masses)
    start = len(masses) - 1 + (max(high, 0) - high)
    excess = law.excess(grid.half, every)
    return [g + product[start + k] for k, g in enumerate(excess)]


def _refinement(loss: Loss, grid: Potential) -> int:
    """How much finer the lattice must be for chords to add next to nothing to a composition."""
    pieces = sum(n for _, n in loss.factors) + (1 if loss.variance else 0)
    if pieces <= 1:
        return 1
    d = float(grid.spacing)
    spreads = [float(loss.variance)] if loss.variance else []
    for factor, _ in loss.factors:
        law = factor.law()
        if isinstance(law, Finite) and all(
            (z / ball(grid.spacing)).contains_integer() for z in law.z
        ):
            continue
        height = curve(factor, arb(0))
        # About the variance of a loss with this height at 1.
        spreads.append(6.0 * near(height) ** 2 if height is not None else d * d)
    every = 1
    while every < 64 and spreads and 0.25 * (d / every) ** 2 > 3e-5 * min(spreads):
        every *= 2
    return every
