"""An attack compares the worst case of a rule with what the rule promises.

YES means that the promise holds, proven for this catalogue and these rounds: the upper side of the
worst case lies below the guarantee. NO means that it is broken, proven: the lower side rises above
it, with the adversary that does it. UNDECIDED means that the two curves are closer than the
rounding of irrational masses; `apart` says how close. The point of the largest gap is searched in
floats; the gap that is reported is proven there.

**What the natural filter over a finite catalogue costs** is the worst case of the natural rule:
`V_k(Id)` of the operator `V_{k+1}(L') = sup {L ⊕ V_k(L' ⊕ L) : L ∈ 𝓛, L' ⊕ L ⪯ B}`. The filter is
free for this budget iff `V_k(Id) ⪯ B`.

**The attack suite** plays every filter we ship against small catalogues, and rules that must fall.

A filter survives if its exact worst case is below its own guarantee, for every catalogue. A check
that cannot fail is worth nothing, so the suite also holds rules that are known not to keep what
they promise, and these must be caught with an adversary in hand.

Catalogues are finite and rational, so that survival is proven to the last digit, but for
`responses` (irrational masses) and `smooth` (continuous losses), which are rounded both ways.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Unpack

import numpy as np

from residua import checks
from residua.adversary.rule import NaturalRule, Rule, as_rounds, as_rule
from residua.adversary.strategy import Strategy
from residua.adversary.worst_case import Settings, WorstCase, worst_case
from residua.bounds import Floats, Verdict
from residua.filters.base import Filter
from residua.filters.codec import KINDS, from_dict
from residua.filters.potential.renyi_commit import Commit
from residua.filters.query import Query
from residua.pld.constructors import (
    approximate_dp,
    from_exact,
    from_pair,
    gaussian,
    laplace,
    pure_dp,
)
from residua.pld.curve import kinks
from residua.pld.discretise.finite import listed_atoms
from residua.pld.order import Witness
from residua.pld.order.compare import dominated
from residua.pld.pld import Pld
from residua.pld.pld import query as as_pld


def largest_gap(value: Pld, budget: Pld) -> Witness | None:
    """Where `value` rises farthest above `budget`, as searched; None if it is not proven to."""
    refuted = dominated(value, budget)
    if refuted.proven:
        return None
    x = _widest(value, budget)[0]
    bounds = value.hockey_stick_bounds(x) - budget.hockey_stick_bounds(x)
    found = [Witness(x, float(bounds.lo))] if bounds.lo > 0.0 else []
    # What the search misses, far out in a tail, the order may still refute.
    found += [refuted.witness] if refuted.witness is not None else []
    return max(found, key=lambda witness: witness.gap, default=None)


def _widest(value: Pld, budget: Pld) -> tuple[float, float]:
    """The point `x` where `value` rises farthest above `budget` and by how much, as searched."""

    def highest(t: Floats) -> tuple[int, float]:
        x = np.exp(t)
        gaps = np.asarray(value.hockey_stick(x)) - np.asarray(budget.hockey_stick(x))
        best = int(np.argmax(gaps))
        return best, float(gaps[best])

    ends = -690.0, 690.0  # of `ln x`: its exponentials are floats
    # A finite PLD with more kinks is searched as if it were smooth.
    stops = np.concatenate([np.zeros(1), kinks(value, 1 << 17), kinks(budget, 1 << 14)])
    # Masses at infinity show past the kinks, where a smooth budget has come down.
    # An even net, then steps that narrow down: more of them miss fewer gaps and take longer.
    net = np.linspace(stops.min() - 12.0, stops.max() + 12.0, 800)
    places = np.unique(np.clip(np.concatenate([stops, net]), *ends))
    best, height = highest(places)
    at = float(places[best])
    step = float(np.max(np.diff(places)[max(best - 1, 0) : best + 1], initial=1e-6))
    for _ in range(12):
        near = np.clip(at + step * np.linspace(-1.0, 1.0, 17), *ends)
        best, reached = highest(near)
        step /= 8.0
        if reached > height:
            at, height = float(near[best]), reached
    return math.exp(at), height


@dataclass(frozen=True)
class Attack:
    """Whether a promise holds against every adversary of a rule, and by how much it is broken."""

    verdict: Verdict
    """YES and NO are proven."""
    violation: float
    """A proven lower bound on how far the worst case exceeds the guarantee at the witness; 0.0 if
    there is none."""
    witness: float | None
    """The point `x = e^eps` of the violation."""
    strategy: Strategy | None
    """The adversary that attains the violation."""
    apart: float
    """How far the upper side reaches above the guarantee, as searched; 0.0 where it does not."""
    guarantee: Pld = field(repr=False)
    worst: WorstCase = field(repr=False)

    @property
    def pld(self) -> Pld:
        """What the whole interaction is dominated by; exact where queries are rational."""
        return self.worst.pld


def attack(
    rule: Rule, guarantee: Pld, rounds: int | None = None, **settings: Unpack[Settings]
) -> Attack:
    """Compare the worst case of a rule with a guarantee.

    Args:
        rule: what may be asked.
        guarantee: what the rule promises.
        rounds: how many queries may be asked; None means any number.
        settings: `accuracy`, `coarse`, `limit` and `progress`, as for `worst_case`.

    Returns:
        The verdict, with the worst case and, where the promise is broken, the adversary.

    Raises:
        TooLargeError: there are more states than `limit`, or too many atoms.
    """
    as_pld("guarantee", guarantee)
    return judge(worst_case(rule, rounds, **settings), guarantee)


def attack_filter(
    filter: Filter,
    catalogue: Sequence[Query | Commit],
    rounds: int | None = None,
    **settings: Unpack[Settings],
) -> Attack:
    """Attack a filter over a catalogue of queries, against its own `guarantee`.

    Args:
        filter: any filter; its state is left alone.
        catalogue: the queries (and commits, where it takes them) that may be asked.
        rounds: how many queries may be asked; None means any number.
        settings: `accuracy`, `coarse`, `limit` and `progress`, as for `worst_case`.

    Returns:
        The verdict, with the worst case and, where the guarantee is broken, the adversary.

    Raises:
        TooLargeError: there are more states than `limit`, or too many atoms.
    """
    return attack(as_rule(filter, catalogue), filter.guarantee, rounds, **settings)


def natural_cost(
    catalogue: Sequence[Query], budget: Pld, rounds: int, **settings: Unpack[Settings]
) -> Attack:
    """The exact cost of the natural filter over a catalogue, its violation and its adversary.

    Args:
        catalogue: the queries that may be asked, in the direction they are given in.
        budget: what the filter checks.
        rounds: how many queries may be asked.
        settings: `accuracy`, `coarse`, `limit` and `progress`, as for `worst_case`.

    Returns:
        The cost; its verdict says whether the natural filter is free for this budget.

    Raises:
        TooLargeError: there are more states than `limit`, or too many atoms.
    """
    return attack(NaturalRule(catalogue, budget), budget, as_rounds(rounds), **settings)


def judge(worst: WorstCase, guarantee: Pld) -> Attack:
    """Compare a worst case with a guarantee."""
    if dominated(worst.pld, guarantee).proven:
        return Attack(Verdict.YES, 0.0, None, None, 0.0, guarantee, worst)
    found = largest_gap(worst.below, guarantee)
    if found is None:
        apart = max(0.0, _widest(worst.pld, guarantee)[1])
        return Attack(Verdict.UNDECIDED, 0.0, None, None, apart, guarantee, worst)
    strategy = worst.strategy(found.x)
    return Attack(Verdict.NO, found.gap, found.x, strategy, found.gap, guarantee, worst)


_MENU = [{"kind": "pure_dp", "eps": eps} for eps in (0.25, 0.5)]
EXAMPLES: dict[str, dict[str, Any]] = {
    "pure": {"eps": 1.1},
    "basic": {"eps": 1.1, "delta": 0.06},
    "renyi": {"alpha": 4.0, "rho": 0.6},
    "renyi_curve": {"curve": [[2.0, 0.4], [8.0, 0.7]]},
    "zcdp": {"rho": 0.25},
    "approximate_zcdp": {"eps": 1.5, "delta": 0.06, "delta_conversion": 0.03},
    "gdp": {"mu": 1.0},
    "gdp_residue": {"mu": 1.0},
    "approximate_gdp_residue": {"mu": 1.0, "delta": 0.06},
    "target_residue": {"eps": 1.1, "delta": 0.06},
    "plan": {"eps": 1.1, "delta": 0.06, "plan": _MENU},
    "menu": {"eps": 1.1, "delta": 0.06, "menu": _MENU},
    "renyi_commit": {"eps": 1.5, "delta": 0.06},
    "auto": {"eps": 1.5, "delta": 0.06},
    "union": {
        "eps": 1.1,
        "filters": [
            {"kind": "pure", "eps": 1.1},
            {"kind": "basic", "eps": 0.6, "delta": 0.06},
            {"kind": "renyi", "alpha": 4.0, "rho": 0.3},
        ],
    },
    "natural": {"budget": {"kind": "approximate_dp", "eps": 1.0, "delta": 0.05}, "rounds": 3},
    "additive_profile": {"eps": 1.0, "delta": 0.05, "rounds": 3},
}
"""A filter of each kind, small enough for a few queries to use it up."""


def example(kind: str) -> Filter:
    """The filter of a kind that the suite attacks."""
    checks.one_of("kind", kind, tuple(sorted(KINDS)))
    return from_dict({"kind": kind, **EXAMPLES[kind]})


@cache
def catalogues() -> dict[str, tuple[Pld, ...]]:
    """The queries that filters are attacked with."""
    half, quarter = _response(3, 5), _response(7, 9)
    asymmetric = from_pair([0.5, 0.5], [0.25, 0.75])
    leaning = from_pair([0.5, 0.5, 0.0], [0.5, 0.46875, 0.03125])
    return {
        "pure": (half, quarter),
        "approximate": (
            from_pair([1 / 64, 37 / 64, 26 / 64, 0.0], [0.0, 26 / 64, 37 / 64, 1 / 64]),
            approximate_dp(0.0, 1 / 32),
        ),
        "asymmetric": (asymmetric, asymmetric.reverse()),
        "minus infinity": (leaning, leaning.reverse()),
        "gaussian-like": (_binomial(4), quarter),
        "responses": (pure_dp(0.5), approximate_dp(0.25, 0.01)),
        "smooth": (gaussian(mu=0.5), laplace(scale=2.0)),
    }


def _response(low: int, high: int) -> Pld:
    total = float(low + high)
    return from_pair([low / total, high / total], [high / total, low / total])


def _binomial(n: int) -> Pld:
    """`n` small responses written out as one query: losses spread like those of a Gaussian."""
    return from_exact(listed_atoms(n * _response(15, 17)).exact)


def survivors(kinds: tuple[str, ...] | None = None) -> Iterator[tuple[str, str, Attack]]:
    """Attack every filter with every catalogue: three rounds, two where losses are continuous."""
    rough = 0.05  # in eps: keeps the compositions of continuous losses small
    for kind in kinds if kinds is not None else tuple(KINDS):
        filter = example(kind)
        for name, queries in catalogues().items():
            finite = all(query.is_finite for query in queries)
            rounds, coarse = (3, None) if finite else (2, rough)
            yield kind, name, attack_filter(filter, queries, rounds, accuracy=rough, coarse=coarse)
