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

**Gap amplification**: why two queries that are not in order break the natural filter. Let `h_1,
h_2` be the curves of two finite PLDs and

    X_1 = {x : h_1(x) < h_2(x)},    X_2 = {x : h_2(x) < h_1(x)},    supp(h_i) the kinks of h_i.

A set `S` *links* `X_1` and `X_2` if some multiple `c S` meets both. If the support of `A` links
them, through kinks `s_1, s_2` with `c s_i ∈ X_i`, then at `x = c s_1 s_2` the curve of
`A ⊕ (L_1 ∨ L_2)` lies above both of `A ⊕ L_1` and `A ⊕ L_2`: the outcome `s_2` brings the
threshold to `c s_1`, where `L_2` is better, the outcome `s_1` to `c s_2`, where `L_1` is. Of two
PLDs that are not in order, with at least two finite losses each, one has a support that links
`X_1` and `X_2`.

A degenerate PLD (fewer than two finite losses) cannot link anything, and two unordered PLDs of
which one or both are degenerate may amplify nothing at all; then `link` is None, which is an
answer: composing with either of them does not break anything. Other queries of a catalogue still
may (`is_universally_free` asks them all).

Everything is in exact rationals. Irrational PLDs must be rounded first; a link that is found
between rounded ones is a statement about those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise
from math import gcd
from typing import Any, NamedTuple

import numpy as np

from residua.adversary.attack import NaturalCost, natural_cost
from residua.adversary.finite import finite_atoms, is_exact
from residua.adversary.rule import as_catalogue, as_rounds, closure
from residua.bounds import Verdict, float_down
from residua.errors import TooLargeError
from residua.filters.query import Query
from residua.pld.arithmetic.exact import ExactAtoms, region
from residua.pld.constructors import from_exact
from residua.pld.families.atoms import Atoms, atoms_from_exact
from residua.pld.lattice import exact_supremum
from residua.pld.order.compare import dominated
from residua.pld.order.domination import Witness
from residua.pld.pld import Pld
from residua.pld.pld import query as as_pld

Triple = tuple[Pld, Pld, Pld]


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
        return Freeness(True, None, Verdict.YES, None, family)
    if rounds is None:
        return Freeness(
            False, None, Verdict.UNDECIDED, None, "no known family that is free for any rounds"
        )
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
        if _are_ordered(a, c):
            continue
        for first in losses:
            gap = _triple_gap(first, a, c)
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


def _are_ordered(a: Pld, c: Pld) -> bool:
    return dominated(a, c).proven or dominated(c, a).proven


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
            f"a query and two futures have {size} atoms or more together, above {most}"
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
    if max(abs(float(b.z[0])), abs(float(b.z[-1]))) > 690.0:  # exp would overflow
        return None
    x = np.exp(b.z)
    ends = high.p_inf / high.p_den - low.p_inf / low.p_den
    gaps = a.curve_at(x)[0] - b.curve_at(x)[1] + ends
    best = int(np.argmax(gaps))
    return best if gaps[best] > 1e-9 else None  # beyond any rounding


def _widen(atoms: ExactAtoms, bits: int = 40) -> ExactAtoms:
    """A PLD above with a margin in every corner that floats can see."""
    grid = 1 << bits
    points = []
    for p, q in zip(atoms.p_tails, atoms.q_tails, strict=True):
        right = max(q * grid // atoms.q_den - 1, 0)
        up = min(-(-p * grid // atoms.p_den) + 1, grid)
        points.append((right, up))
    return region(points, grid, grid)


Span = tuple[Fraction, Fraction | None]
"""An open interval of `x`; None is infinity."""


class Link(NamedTuple):
    """Two kinks of the query `asked` (0 or 1) that reach `X_1` and `X_2` at once."""

    asked: int
    first_kink: Fraction
    second_kink: Fraction
    scale: Fraction
    """`scale * first_kink ∈ X_1` and `scale * second_kink ∈ X_2`."""

    @property
    def x(self) -> Fraction:
        """Where the composed curves part."""
        return self.scale * self.first_kink * self.second_kink


@dataclass(frozen=True)
class Amplification:
    """How two PLDs cross, which support links the regions, and the gap that this opens."""

    crossings: tuple[Fraction, ...]
    """Where one curve passes from below the other to above it, and back."""
    first_below: tuple[Span, ...]
    """`X_1`, where the first curve is strictly the lower one."""
    second_below: tuple[Span, ...]
    supports: tuple[tuple[Fraction, ...], tuple[Fraction, ...]]
    degenerate: tuple[bool, bool]
    link: Link | None
    gap: Witness | None
    """The largest gap of `L ⊕ (L_1 ∨ L_2)` above `(L ⊕ L_1) ∨ (L ⊕ L_2)`, for the linked `L`."""

    @property
    def ordered(self) -> bool:
        """Whether one of the two dominates the other."""
        return not (self.first_below and self.second_below)


def amplification(first: Pld, second: Pld) -> Amplification:
    """Crossings, supports, links and the amplified gap of two finite PLDs.

    Randomized responses are rounded up to rationals of 64 bits first.
    """
    one, two = (
        finite_atoms(as_pld(name, pld), "above")
        for name, pld in (("first", first), ("second", second))
    )
    lower, upper, crossings = regions(one, two)
    supports = (kinks(one), kinks(two))
    gap: Witness | None = None
    chosen: Link | None = None
    for i, asked in enumerate((one, two)):
        link = find_link(i, supports[i], lower, upper)
        if link is None:
            continue
        whole = asked.compose(exact_supremum(one, two))
        apart = exact_supremum(asked.compose(one), asked.compose(two))
        opened = exact_gap(whole, apart)
        assert opened is not None, "a link without a gap contradicts gap amplification"
        if gap is None or opened.gap > gap.gap:
            gap, chosen = opened, link
    degenerate = (len(one) < 2, len(two) < 2)
    return Amplification(crossings, lower, upper, supports, degenerate, chosen, gap)


def kinks(atoms: ExactAtoms) -> tuple[Fraction, ...]:
    """`supp(h)`: where the curve bends."""
    return tuple(atoms.kink(i) for i in range(len(atoms)))


def regions(
    one: ExactAtoms, two: ExactAtoms
) -> tuple[tuple[Span, ...], tuple[Span, ...], tuple[Fraction, ...]]:
    """`X_1`, `X_2` as open intervals, and the simple crossings between them."""
    stops = sorted({*kinks(one), *kinks(two)})
    # Before the first kink both curves are 1 - (Q's finite mass) x, after the last one constant.
    before = (stops[0] if stops else Fraction(1)) / 2
    places = [before, *stops, (stops[-1] if stops else Fraction(1)) * 2]
    gaps = [one.hockey_stick(x) - two.hockey_stick(x) for x in places]
    cuts: list[tuple[Fraction | None, int]] = [(Fraction(0), _sign(gaps[0]))]
    for (x0, g0), (x1, g1) in pairwise(zip(places, gaps, strict=True)):
        if g0 * g1 < 0:
            cuts.append((x0 + (x1 - x0) * g0 / (g0 - g1), _sign(g1)))
        elif g0 == 0:
            cuts.append((x0, _sign(g1)))
        elif g1 == 0:
            cuts.append((x1, 0))
    return _spans(cuts, -1), _spans(cuts, 1), _crossings(cuts)


def _sign(value: Fraction) -> int:
    return (value > 0) - (value < 0)


def _spans(cuts: Sequence[tuple[Fraction | None, int]], sign: int) -> tuple[Span, ...]:
    """The open intervals on which the difference has this sign, touching points kept apart."""
    spans: list[Span] = []
    for i, (start, own) in enumerate(cuts):
        end = cuts[i + 1][0] if i + 1 < len(cuts) else None
        if own == sign and start != end:
            assert start is not None
            spans.append((start, end))
    return tuple(spans)


def _crossings(cuts: Sequence[tuple[Fraction | None, int]]) -> tuple[Fraction, ...]:
    """Where the sign changes at a single point."""
    found = []
    ends = [(s, e, sign) for (s, sign), (e, _) in zip(cuts, [*cuts[1:], (None, 0)], strict=True)]
    kept = [(s, e, sign) for s, e, sign in ends if s != e]
    for (_, end, left), (start, _, right) in pairwise(kept):
        if left * right < 0 and end == start and start is not None:
            found.append(start)
    return tuple(found)


def find_link(
    asked: int, support: Sequence[Fraction], lower: Sequence[Span], upper: Sequence[Span]
) -> Link | None:
    """Two points of a support, one multiple of which lies in `X_1` and in `X_2`, if there are."""
    for s1 in support:
        for s2 in support:
            if s1 == s2:
                continue
            for a, b in lower:
                for c, d in upper:
                    low = max(a / s1, c / s2)
                    tops = [end / s for end, s in ((b, s1), (d, s2)) if end is not None]
                    if not tops:
                        return Link(asked, s1, s2, low + 1)
                    if low < min(tops):
                        return Link(asked, s1, s2, (low + min(tops)) / 2)
    return None
