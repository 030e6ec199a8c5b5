"""When is the natural filter free for *every* budget?

In `k` rounds over a finite catalogue `𝓛`, exactly when

    L ⊕ (A ∨ C) = (L ⊕ A) ∨ (L ⊕ C)     for every L ∈ 𝓛 and all A, C ∈ 𝓛^{<k},

degenerate ones included. Pairs suffice: at a threshold `x` equality says that one of the two is at
least as high as the other at `x e^{-z}` for every loss `z` of `L`; if that is so of every pair, one
of finitely many is the highest at all of them. A pair in order satisfies it, so a totally ordered
`𝓛^{<k}` is free; that is a shortcut to yes and no more. (Tran et al. 2026, independently of the
paper, have total order as the condition for queries of unbounded support.) An ordered
non-degenerate part is *not* enough, and an unordered pair of `𝓛^{<k}` proves failure only somewhere
within `2k - 2` rounds. A failing triple `(L, A, C)` gives a budget that the filter breaks:
`(L ⊕ A) ∨ (L ⊕ C)`.

Free in any number of rounds: Gaussians, `R_{0,delta}`s, and the multiples of one query; each family
is closed under composition and totally ordered.

On rational catalogues the answer is exact. Otherwise an order that the library proves, or a gap
that survives rounding, decides; what neither decides is UNDECIDED, which is not free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import gcd
from typing import Any

import numpy as np

from residua.adversary.closure import closure
from residua.adversary.finite import finite_atoms, is_exact
from residua.adversary.natural.cost import NaturalCost, natural_cost
from residua.adversary.rule import as_catalogue, as_rounds
from residua.bounds import Verdict, float_down
from residua.errors import TooLargeError
from residua.filters.query import Query
from residua.pld.arithmetic.exact import ExactAtoms, region
from residua.pld.constructors import from_exact
from residua.pld.families.atoms import Atoms, atoms_from_exact
from residua.pld.lattice.supremum import exact_supremum
from residua.pld.order.compare import dominated
from residua.pld.order.domination import Witness
from residua.pld.pld import Pld

Triple = tuple[Pld, Pld, Pld]
_BUDGET_BITS = 40
_ACCURACY = 0.02
"""Of continuous losses, in `eps`."""
_MOST_ATOMS = 1 << 17
_LARGEST_LOSS = 690.0


@dataclass(frozen=True)
class Freeness:
    """Whether the natural filter is free for every budget, or the triple that shows it is not."""

    free: bool
    triple: Triple | None
    """`(L, A, C)` with `L ⊕ (A ∨ C)` above `(L ⊕ A) ∨ (L ⊕ C)`."""
    verdict: Verdict
    gap: Witness | None = None
    """Where and by how much, proven."""
    reason: str = ""

    def __bool__(self) -> bool:
        return self.free


@dataclass(frozen=True)
class Violation:
    """A budget that the natural filter breaks, and how."""

    budget: Pld
    triple: Triple
    cost: NaturalCost


def is_universally_free(catalogue: Sequence[Query], rounds: int | None) -> Freeness:
    """Whether the natural filter over a catalogue is free for every budget in so many rounds.

    None means any number of rounds; that is decided for the closed, ordered families only.
    """
    return _freeness(as_catalogue(catalogue), None if rounds is None else as_rounds(rounds))


def _freeness(losses: Sequence[Pld], rounds: int | None) -> Freeness:
    family = free_family(losses)
    if family is not None:
        return Freeness(True, None, Verdict.YES, None, family)
    if rounds is None:
        return Freeness(
            False, None, Verdict.UNDECIDED, None, "no known family that is free for any rounds"
        )
    return _decided(losses, rounds)


def find_violation(catalogue: Sequence[Query], rounds: int) -> Violation | None:
    """A budget that the natural filter breaks in so many rounds, with the adversary; None if none.

    None is returned where no violation is proven: `is_universally_free` says which it is.
    """
    losses = as_catalogue(catalogue)
    found = _freeness(losses, as_rounds(rounds))
    if found.triple is None:
        return None
    budget = triple_budget(found.triple)
    cost = natural_cost(losses, budget, rounds)
    return Violation(budget, found.triple, cost) if cost.violation > 0.0 else None


def triple_budget(triple: Triple) -> Pld:
    """`(L ⊕ A) ∨ (L ⊕ C)`; where masses are irrational, with a margin that can be proven."""
    first, *pair = triple
    whole = exact_supremum(*(finite_atoms(first + after, "above") for after in pair))
    exact = all(is_exact(pld) for pld in triple)
    return from_exact(whole if exact else _widened(whole, _BUDGET_BITS))


def free_family(losses: Sequence[Pld]) -> str | None:
    """Why the natural filter over these is free in any number of rounds, if it is."""
    if not losses:
        return "nothing but Id"
    if all(not loss.terms for loss in losses):
        return "Gaussians compose to Gaussians, which are totally ordered"
    if all(_is_pure_delta(loss) for loss in losses):
        return "R_{0,delta} compose to R_{0,delta}, which are totally ordered"
    if len({_primitive(loss) for loss in losses}) == 1:
        return "multiples of one query, which are totally ordered"
    return None


def _is_pure_delta(loss: Pld) -> bool:
    return loss.gaussian is None and all(
        isinstance(factor, Atoms) and len(factor.exact) <= 1 and factor.is_symmetric
        for factor in loss.terms
    )


def _primitive(loss: Pld) -> Any:
    """What a query is a multiple of, as a value to compare."""
    share = gcd(*loss.terms.values()) or 1
    terms = frozenset((factor, n // share) for factor, n in loss.terms.items())
    variance = loss.gaussian.exact_variance if loss.gaussian else Fraction(0)
    return terms, variance / share


def _decided(losses: Sequence[Pld], rounds: int) -> Freeness:
    members = list(closure(losses, rounds).values())
    open_pairs = False
    worst: tuple[Witness, Triple] | None = None
    for a, c in combinations(members, 2):
        if _ordered(a, c):
            continue
        for first in losses:
            gap = triple_gap(first, a, c)
            if gap is not None and (worst is None or gap.gap > worst[0].gap):
                worst = gap, (first, a, c)
            elif gap is None and not (is_exact(first) and is_exact(a) and is_exact(c)):
                open_pairs = True
    if worst is not None:
        return Freeness(False, worst[1], Verdict.NO, worst[0], "")
    if open_pairs:
        return Freeness(
            False, None, Verdict.UNDECIDED, None, "an order or an equality could not be decided"
        )
    return Freeness(True, None, Verdict.YES, None, "sup commutes with every query")


def _ordered(a: Pld, c: Pld) -> bool:
    return dominated(a, c).proven or dominated(c, a).proven


def triple_gap(first: Pld, a: Pld, c: Pld) -> Witness | None:
    """Where `L ⊕ (A ∨ C)` lies above `(L ⊕ A) ∨ (L ⊕ C)`, proven; None if nowhere is.

    Exact for rational queries; otherwise the left side is rounded down, the right side up.
    """
    own, low_a, low_c = (finite_atoms(pld, "below", _ACCURACY) for pld in (first, a, c))
    high, high_a, high_c = (finite_atoms(pld, "above", _ACCURACY) for pld in (first, a, c))
    size = len(high) * (len(high_a) + len(high_c))
    if size > _MOST_ATOMS:
        raise TooLargeError(
            f"a query and two futures have {size} atoms or more together, above {_MOST_ATOMS}"
        )
    left = own.compose(exact_supremum(low_a, low_c))
    right = exact_supremum(high.compose(high_a), high.compose(high_c))
    return exact_gap(left, right)


def exact_gap(high: ExactAtoms, low: ExactAtoms) -> Witness | None:
    """The largest gap of `high` above `low`, at a kink of `low`; None if it is nowhere above.

    Floats choose the kink where they can tell; whether there is a gap is decided in rationals.
    """
    near = _near_gap(high, low)
    best: tuple[Fraction, Fraction] | None = None
    for i in range(len(low)) if near is None else [near]:
        x = low.kink(i)
        gap = high.hockey_stick(x) - low.height(i + 1, x.numerator, x.denominator)
        if gap > 0 and (best is None or gap > best[0]):
            best = gap, x
    if best is None:
        return None
    at = float(best[1])
    gap = high.hockey_stick(Fraction(at)) - low.hockey_stick(Fraction(at))
    return Witness(at, max(0.0, float_down(gap)))


def _near_gap(high: ExactAtoms, low: ExactAtoms) -> int | None:
    """The kink of `low` with the largest gap, if floats see one beyond doubt."""
    if not len(low) or not len(high):
        return None
    a, b = atoms_from_exact(high), atoms_from_exact(low)
    if max(abs(float(b.z[0])), abs(float(b.z[-1]))) > _LARGEST_LOSS:
        return None
    x = np.exp(b.z)
    ends = high.p_inf / high.p_den - low.p_inf / low.p_den
    gaps = a.curve_at(x)[0] - b.curve_at(x)[1] + ends
    best = int(np.argmax(gaps))
    return best if gaps[best] > 1e-9 else None


def _widened(atoms: ExactAtoms, bits: int) -> ExactAtoms:
    """A PLD above with a margin in every corner that floats can see."""
    grid = 1 << bits
    points = []
    for p, q in zip(atoms.p_tails, atoms.q_tails, strict=True):
        right = max(q * grid // atoms.q_den - 1, 0)
        up = min(-(-p * grid // atoms.p_den) + 1, grid)
        points.append((right, up))
    return region(points, grid, grid)
