"""Lemmas between factors: which lies below which, without looking at a curve.

Composition is monotone, so `L ⪯ M` as soon as the factors of `L` lie below distinct factors of
`M`. All comparisons are between rationals, except with the weight `λ(e)` of a Laplace's atoms.

**Bounded losses.** Finite losses in `[-e, e]` and at most `δ` at either infinity are below
`R_{e,δ}`: `h(e^e) <= δ` in both directions. Losses in an interval of length `r`, none infinite,
are below `B_r`, which is the supremum of those; so `R_{r/2} ⪯ B_r`. `w R_e + (1-w) B_e` increases
in `w`, because `B_e ⪯ R_e`, and in `e`, because both parts do. A Laplace of largest loss `e` has
`w = λ(e) = (1 + e^-e)/2`, and increases in `e` though `λ` decreases.

**Mixtures.** The loss of `(P, Q)` increases with the observation, so `h(x)` is the supremum of
`P(A) - x Q(A)` over upper half-lines `A`. If `P'` is stochastically above `P` and `Q'` below `Q`
(after a common translation), then `P'(A) >= P(A)`, `Q'(A) <= Q(A)` and `(P, Q) ⪯ (P', Q')`. In
units of the noise that is a comparison of the quantiles of the shifts. Hence larger shifts, more
weight on them or less noise raise a mixture, sampling by replacement is above sampling by
removal, and the Gaussian of `mu = D`, all of `P` at its largest and all of `Q` at its smallest
shift, is above; the one of `mu = a_min - b_max` is below.

**Aligned mixtures.** If every `Q` is a single normal, a composition is `Σ w_k N(v_k, I)` against
`N(0, I)` with vectors `v_k`, and `h(x) = E_Q (Σ w_k e^{v_k X - |v_k|²/2} - x)_+`. Each term has a
law that depends on `|v_k|` only; the convex function of their sum is largest if they increase
together. So the composition is below the mixture on the line with shifts `|v_k|`, whose squares
are rational. A Gaussian part is a vector like any other. Reversed, the same holds for `P`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

from residua.pld.arithmetic import FEW
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, U
from residua.pld.families.atoms import Atoms
from residua.pld.families.factors import Factor
from residua.pld.families.gaussian import Gaussian
from residua.pld.families.gaussian_mixture import GaussianMixture
from residua.pld.families.symmetric import BoundedRange, Laplace, RandomizedResponse
from residua.pld.pld import Pld
from residua.work_limit import work

Law = dict[Fraction, Fraction]
"""Weights by place."""

_MOST_KINDS = 1 << 5
"""Compositions of more kinds than that are not matched factor by factor: pairs are compared."""
_MOST_COUNT = 1 << 6
"""Aligned mixtures of more queries are not written out, nor of more than `FEW` places."""


# -- one factor below another -----------------------------------------------------------


def below(low: Factor, high: Factor) -> bool:
    """Whether a lemma proves `low ⪯ high`."""
    if type(low) is RandomizedResponse and type(high) is RandomizedResponse:
        return low.eps <= high.eps and low.delta <= high.delta
    if low == high:
        return True
    if isinstance(high, GaussianMixture):
        return isinstance(low, GaussianMixture) and _mixture_below(low, high)
    if isinstance(low, GaussianMixture) or isinstance(high, Atoms):
        return False
    if isinstance(high, RandomizedResponse):
        masses = max(low.mass_at_infinity, low.mass_at_minus_infinity)
        return masses <= high.mass_at_infinity and _reach(low) <= high.top
    if max(low.mass_at_infinity, low.mass_at_minus_infinity) > 0:
        return False
    if _range(low) <= high.top:
        return True
    if isinstance(low, Atoms | RandomizedResponse) or low.top > high.top:
        return False
    # Raise the weight first and then the loss, or the other way round, or pass by a Laplace.
    light = isinstance(low, Laplace) or _at_most_laplace(low.atomic, low.top)
    heavy = isinstance(high, Laplace) or _at_least_laplace(high.atomic, high.top)
    if light and heavy:
        return True
    both = isinstance(low, BoundedRange) and isinstance(high, BoundedRange)
    return both and low.atomic <= high.atomic  # type: ignore[union-attr]


def _reach(factor: RandomizedResponse | Laplace | BoundedRange | Atoms) -> Fraction:
    """A bound on the absolute value of every finite loss."""
    if isinstance(factor, Atoms):
        return Fraction(max(factor.top, factor.reverse().top))
    return factor.top


def _range(factor: RandomizedResponse | Laplace | BoundedRange | Atoms) -> Fraction:
    """A bound on the difference of any two finite losses."""
    if isinstance(factor, Atoms):
        return Fraction(factor.top) + Fraction(factor.reverse().top)
    return 2 * factor.top


def _at_most_laplace(weight: float, eps: Fraction) -> bool:
    """Whether `weight <= λ(eps)`, proven: `2w - 1` is exact wherever it is positive."""
    return 2.0 * weight - 1.0 <= math.exp(-eps) * (1.0 - (EXP_ULPS + float(eps) + 4.0) * U)


def _at_least_laplace(weight: float, eps: Fraction) -> bool:
    return 2.0 * weight - 1.0 >= math.exp(-eps) * (1.0 + (EXP_ULPS + float(eps) + 4.0) * U)


# -- mixtures ---------------------------------------------------------------------------


@lru_cache(maxsize=256)
def laws(mixture: GaussianMixture) -> tuple[Law, Law]:
    """The shifts of `P` and of `Q` in units of the noise, exactly."""
    sigma = Fraction(mixture.sigma)
    made = []
    for rest, others in ((mixture.p_rest, mixture.p), (mixture.q_rest, mixture.q)):
        law: Law = {Fraction(rest) / sigma: 1 - sum((Fraction(w) for _, w in others), Fraction(0))}
        for shift, weight in others:
            place = Fraction(shift) / sigma
            law[place] = law.get(place, Fraction(0)) + Fraction(weight)
        made.append({place: weight for place, weight in law.items() if weight > 0})
    return made[0], made[1]


def _mixture_below(low: GaussianMixture, high: GaussianMixture) -> bool:
    (p, q), (p_high, q_high) = laws(low), laws(high)
    work(600.0 * (len(p) + len(q) + len(p_high) + len(q_high)))
    return _moves(q, q_high)[1] <= _moves(p, p_high)[0]


def _moves(first: Law, second: Law) -> tuple[Fraction, Fraction]:
    """The least and the largest difference between the quantiles of the second and the first."""
    a, b = sorted(first.items()), sorted(second.items())
    ends_a, ends_b = (list(accumulate(w for _, w in law)) for law in (a, b))
    i = j = 0
    moves = []
    while True:
        moves.append(b[j][0] - a[i][0])
        step = min(ends_a[i], ends_b[j])
        i, j = i + (ends_a[i] == step), j + (ends_b[j] == step)
        if i == len(a) or j == len(b):
            return min(moves), max(moves)


def variance_above(mixture: GaussianMixture) -> Fraction:
    """`mu²` of the Gaussian that dominates."""
    p, q = laws(mixture)
    return (max(p) - min(q)) ** 2


def variance_below(mixture: GaussianMixture) -> Fraction:
    """`mu²` of the largest Gaussian that is dominated."""
    p, q = laws(mixture)
    return (min(p) - max(q)) ** 2


# -- compositions -----------------------------------------------------------------------


def dominated_by_structure(low: Pld, high: Pld) -> bool:
    """Whether the lemmas prove `low ⪯ high`, factor by factor."""
    for rest, room in (without_common(low, high), without_matched(low, high)):
        if rest.is_identity or _fits_gaussian(rest, room):
            return True
        if _aligned(rest, room) or _aligned(rest.reverse(), room.reverse()):
            return True
    return False


def without_matched(low: Pld, high: Pld) -> tuple[Pld, Pld]:
    """What is left after factors of `low` are set against distinct ones of `high` above them.

    `low ⪯ high` follows from the same for the rest (not conversely).
    """
    terms, room = dict(low.terms), dict(high.terms)
    _match(terms, room, equal=True)
    if max(len(terms), len(room)) <= _MOST_KINDS:
        _match(terms, room, equal=False)
    mine, theirs = _without_common_gaussian(low, high)
    return Pld(mine, terms), Pld(theirs, room)


def without_common(low: Pld, high: Pld) -> tuple[Pld, Pld]:
    """What is left after common factors are cancelled: `A ⪯ B` implies `L ⊕ A ⪯ L ⊕ B`."""
    terms, room = dict(low.terms), dict(high.terms)
    _match(terms, room, equal=True)
    mine, theirs = _without_common_gaussian(low, high)
    return Pld(mine, terms), Pld(theirs, room)


def _match(terms: dict[Factor, int], room: dict[Factor, int], equal: bool) -> None:
    """Cross off what can be matched: factors with least choice first, each to its least match."""
    if equal:
        choices = {f: [f] for f in terms if f in room}
    else:
        work(300.0 * len(room) * (len(room) + len(terms)))
        rank = {g: sum(below(h, g) for h in room) for g in room}
        choices = {f: sorted((g for g in room if below(f, g)), key=rank.__getitem__) for f in terms}
    for factor in sorted(choices, key=lambda f: len(choices[f])):
        for match in choices[factor]:
            n = min(terms.get(factor, 0), room.get(match, 0))
            for side, name in ((terms, factor), (room, match)):
                left = side.get(name, 0) - n
                if left:
                    side[name] = left
                else:
                    side.pop(name, None)


def _without_common_gaussian(low: Pld, high: Pld) -> tuple[Gaussian | None, Gaussian | None]:
    """The Gaussian parts without what they share."""
    if low._exact_variance == high._exact_variance:
        return None, None
    if low.gaussian is None or high.gaussian is None:
        return low.gaussian, high.gaussian
    mine = {(d, s): n for d, s, n in low.gaussian.compose(Gaussian(())).parts}
    theirs = {(d, s): n for d, s, n in high.gaussian.compose(Gaussian(())).parts}
    for part in mine.keys() & theirs.keys():
        n = min(mine[part], theirs[part])
        mine[part] -= n
        theirs[part] -= n
    return _gaussian(mine), _gaussian(theirs)


def _gaussian(counts: dict[tuple[float, float], int]) -> Gaussian | None:
    parts = tuple((d, s, n) for (d, s), n in counts.items() if n)
    return Gaussian(parts) if parts else None


def _fits_gaussian(low: Pld, high: Pld) -> bool:
    """Whether Gaussians above `low` fit below the Gaussians that `high` contains."""
    mixtures = _mixtures(low)
    if len(mixtures) < len(low.terms):
        return False
    needed = sum((n * variance_above(f) for f, n in mixtures), low._exact_variance)
    room = sum((n * variance_below(f) for f, n in _mixtures(high)), high._exact_variance)
    return needed <= room


def _mixtures(pld: Pld) -> list[tuple[GaussianMixture, int]]:
    return [(f, n) for f, n in pld.terms.items() if isinstance(f, GaussianMixture)]


def _aligned(low: Pld, high: Pld) -> bool:
    """Whether `low`, its vectors aligned, is below one mixture of `high`."""
    single = [laws(f) for f, _ in _mixtures(high)]
    above = [_squares(p, q) for p, q in single if len(q) == 1]
    if not above or sum(low.terms.values()) > _MOST_COUNT:
        return False
    parts: list[Law] = [{low._exact_variance: Fraction(1)}]
    for factor, n in low.terms.items():
        if not isinstance(factor, GaussianMixture):
            return False
        p, q = laws(factor)
        if len(q) != 1:
            return False
        parts += n * [_squares(p, q)]
    if sum(max(part) for part in parts) > max(max(law) for law in above):
        return False
    law: Law = {Fraction(0): Fraction(1)}
    for part in parts:
        law = _sum(law, part)
        if len(law) > FEW:
            return False
    return any(_moves(law, other)[0] >= 0 for other in above)


def _squares(p: Law, q: Law) -> Law:
    (origin,) = q
    return {(place - origin) ** 2: weight for place, weight in p.items()}


def _sum(first: Law, second: Law) -> Law:
    """The law of the sum of independent places."""
    work(600.0 * len(first) * len(second))
    total: Law = {}
    for a, v in first.items():
        for b, w in second.items():
            total[a + b] = total.get(a + b, Fraction(0)) + v * w
    return total
