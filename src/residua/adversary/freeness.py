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

from residua.adversary.attack import Attack, largest_gap, natural_cost
from residua.adversary.finite import finite_atoms, is_exact
from residua.adversary.rule import as_catalogue, as_rounds, closure
from residua.bounds import Verdict
from residua.errors import TooLargeError
from residua.filters.query import Query
from residua.pld.arithmetic.exact import ExactAtoms, region
from residua.pld.constructors import from_exact
from residua.pld.families.atoms import Atoms
from residua.pld.lattice import exact_supremum
from residua.pld.order import Witness
from residua.pld.order.compare import dominated
from residua.pld.pld import Pld

Triple = tuple[Pld, Pld, Pld]


@dataclass(frozen=True)
class Freeness:
    """Whether the natural filter is free for every budget, or the triple that shows it is not."""

    verdict: Verdict
    reason: str = ""
    triple: Triple | None = None
    """`(L, A, C)` with `L ⊕ (A ∨ C)` above `(L ⊕ A) ∨ (L ⊕ C)`."""
    gap: Witness | None = None
    """Where and by how much, proven."""

    @property
    def free(self) -> bool:
        """Whether it is proven to be free."""
        return self.verdict is Verdict.YES

    def __bool__(self) -> bool:
        return self.free


@dataclass(frozen=True)
class Violation:
    """A budget that the natural filter breaks, and how."""

    budget: Pld
    triple: Triple
    cost: Attack


def is_universally_free(catalogue: Sequence[Query], rounds: int | None) -> Freeness:
    """Whether the natural filter over a catalogue is free for every budget.

    Args:
        catalogue: the queries that may be asked.
        rounds: how many may be asked. None means any number; that is decided for the closed,
            ordered families only.

    Raises:
        TooLargeError: there are too many compositions, or atoms, to compare.
    """
    return _freeness(as_catalogue(catalogue), None if rounds is None else as_rounds(rounds))


def _freeness(losses: Sequence[Pld], rounds: int | None) -> Freeness:
    family = free_family(losses)
    if family is not None:
        return Freeness(Verdict.YES, family)
    if rounds is None:
        return Freeness(Verdict.UNDECIDED, "no known family that is free for any rounds")
    return _decide(losses, rounds)


def find_violation(catalogue: Sequence[Query], rounds: int) -> Violation | None:
    """A budget that the natural filter breaks, and the adversary that breaks it.

    Args:
        catalogue: the queries that may be asked.
        rounds: how many may be asked.

    Returns:
        The violation, or None where none is proven: `is_universally_free` says why.
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
    return from_exact(whole if exact else _widen(whole))


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


def _decide(losses: Sequence[Pld], rounds: int) -> Freeness:
    members = list(closure(losses, rounds).values())
    open_pairs = False
    worst: tuple[Witness, Triple] | None = None
    for a, c in combinations(members, 2):
        if dominated(a, c).proven or dominated(c, a).proven:
            continue
        for first in losses:
            gap = _triple_gap(first, a, c)
            if gap is not None and (worst is None or gap.gap > worst[0].gap):
                worst = gap, (first, a, c)
            elif gap is None and not (is_exact(first) and is_exact(a) and is_exact(c)):
                open_pairs = True
    if worst is not None:
        return Freeness(Verdict.NO, "", worst[1], worst[0])
    if open_pairs:
        return Freeness(Verdict.UNDECIDED, "an order or an equality could not be decided")
    return Freeness(Verdict.YES, "sup commutes with every query")


def _triple_gap(first: Pld, a: Pld, c: Pld) -> Witness | None:
    """Where `L ⊕ (A ∨ C)` lies above `(L ⊕ A) ∨ (L ⊕ C)`, proven; None if nowhere is.

    Exact for rational queries; otherwise the left side is rounded down, the right side up.
    """
    rough = 0.02  # the accuracy of continuous losses, in eps: finer ones have too many atoms
    own, low_a, low_c = (finite_atoms(pld, "below", rough) for pld in (first, a, c))
    high, high_a, high_c = (finite_atoms(pld, "above", rough) for pld in (first, a, c))
    size, most = len(high) * (len(high_a) + len(high_c)), 1 << 17
    if size > most:
        raise TooLargeError(
            f"a query and two futures have {size} atoms together, more than the limit of {most}"
        )
    left = own.compose(exact_supremum(low_a, low_c))
    right = exact_supremum(high.compose(high_a), high.compose(high_c))
    return largest_gap(from_exact(left), from_exact(right))


def _widen(atoms: ExactAtoms) -> ExactAtoms:
    """A PLD above with a margin in every corner that floats can see."""
    grid = 1 << 40
    points = []
    for p, q in zip(atoms.p_tails, atoms.q_tails, strict=True):
        right = max(q * grid // atoms.q_den - 1, 0)
        up = min(-(-p * grid // atoms.p_den) + 1, grid)
        points.append((right, up))
    return region(points, grid, grid)
