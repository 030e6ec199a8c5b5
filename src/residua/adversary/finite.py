"""Queries as finite PLDs with rational masses, on a stated side.

Exact worst cases need exact atoms. A finite PLD with rational masses is taken as it is. A
randomized response has irrational masses: its testing region is a triangle on the diagonal's
upper side, and the corner is moved outwards (`above`) or inwards (`below`) to dyadic rationals
of 64 bits or more, so that it stays symmetric:

    (0, delta),  (1 - delta - p, delta + p),  (1 - delta, 1),      p = (1 - delta)/(1 + e^-eps).

Everything else (Gaussians, Laplaces, mixtures) is replaced by a finite PLD just above or just
below it (`pld/discretise/profile.py`), `accuracy` apart in `eps`, with atoms merged within that
share (`coarsen.py`).

Upper sides are for guarantees, lower sides for attacks: `⊕` and `sup` are monotone.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from residua.adversary.coarsen import coarsened
from residua.bounds import Floats
from residua.pld.arithmetic.exact import EXACT_IDENTITY, ExactAtoms
from residua.pld.arithmetic.rational import Side, exp_of
from residua.pld.curve.reads import right_half
from residua.pld.discretise.finite import written_out
from residua.pld.discretise.profile import Profile, finite
from residua.pld.families.atoms import Atoms
from residua.pld.families.randomized_response import RandomizedResponse
from residua.pld.pld import Pld

BITS = 64
"""Masses of randomized responses are rounded to multiples of 2^-BITS, or finer."""
ACCURACY = 1e-3
"""In `eps`, of what is not finite."""
_MOST_ATOMS = 1 << 16
_MOST_FACTORS = 200


def is_exact(pld: Pld) -> bool:
    """Whether both sides are the PLD itself."""
    rational = pld.gaussian is None and all(type(factor) is Atoms for factor in pld.terms)
    return rational and _written_out(pld, "above") is not None


def irrational_factors(pld: Pld) -> int | None:
    """How many factors have rounded masses, each by 2^-64 at most; None if there is more to it."""
    if _written_out(pld, "above") is None:
        return None
    return sum(n for factor, n in pld.terms.items() if isinstance(factor, RandomizedResponse))


@lru_cache(maxsize=4096)
def finite_atoms(pld: Pld, side: Side, accuracy: float = ACCURACY) -> ExactAtoms:
    """Rational atoms of a PLD that dominates the given one, or is dominated by it."""
    whole = _written_out(pld, side)
    return _smooth(pld, side, accuracy) if whole is None else whole


@lru_cache(maxsize=4096)
def _written_out(pld: Pld, side: Side) -> ExactAtoms | None:
    """All atoms of a small composition of finite factors; None for anything else."""
    if pld.gaussian is not None or sum(pld.terms.values()) > _MOST_FACTORS:
        return None
    whole = EXACT_IDENTITY
    for factor, n in pld.terms.items():
        if isinstance(factor, RandomizedResponse):
            atoms = _response(factor, side)
        elif isinstance(factor, Atoms):
            atoms = factor.exact
        else:
            return None
        for _ in range(n):
            if len(whole) * len(atoms) > _MOST_ATOMS:
                return None
            whole = whole.compose(atoms)
    return whole


def _response(factor: RandomizedResponse, side: Side) -> ExactAtoms:
    delta, eps = Fraction(factor.delta), Fraction(factor.eps)
    # The smaller mass is about e^-eps: it keeps BITS digits of its own.
    grid = max(1 << (BITS + int(1.45 * factor.eps) + 1), delta.denominator)
    e = exp_of(eps, side)
    kept = 1 - delta
    p = kept * e / (1 + e) * grid
    top = -(-p.numerator // p.denominator) if side == "above" else p.numerator // p.denominator
    rest = int(kept * grid) - top
    return ExactAtoms((rest, top), (top, rest), grid, grid)


def _smooth(pld: Pld, side: Side, accuracy: float) -> ExactAtoms:
    back = pld.reverse()

    def right(t: Floats, dt: float) -> tuple[Floats, Floats]:
        return right_half(pld, t, dt, accuracy)

    def left(t: Floats, dt: float) -> tuple[Floats, Floats]:
        return right_half(back, t, dt, accuracy)

    ends = (float(pld.mass_at_infinity_bounds.lo), float(back.mass_at_infinity_bounds.lo))
    made = finite(Profile(right, left, ends), accuracy, side)
    if made.is_identity:
        return EXACT_IDENTITY
    return coarsened(written_out(made).exact, side, accuracy)
