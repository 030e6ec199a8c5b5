"""One read of a composition, in scalars: what a stream asks for after every query.

What `Evaluator.at_log_x` would give, or better, without its arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from residuum.bounds import Interval
from residuum.pld import reading, tuning
from residuum.pld.contour import Contour
from residuum.pld.factors import Terms
from residuum.pld.laplace import Laplace
from residuum.pld.many_atoms import ManyAtoms
from residuum.pld.randomized_response import RandomizedResponse

if TYPE_CHECKING:
    from residuum.pld.evaluate import Evaluator

_RELATIVE = 2e-7
"""Relative width at which a contour without a phantom is accepted."""
_NOTHING = 1e-290
_HUGE = 1e15
_FEW = 12
"""Kinds of query up to which other ways are as good."""
_HIGH = -2.0
"""Where `ln C` of another contour at hand is above this, `D` is not small."""
_NARROW, _WIDE = 1e-5, 1e-4
"""Relative width up to which a stream's contour of many atoms is kept, and that of a new one."""


def read(evaluator: Evaluator, t: float) -> Interval | None:
    """Enclosure of `h(e^t)` for one `t >= 0` where that is quick; else None."""
    pld = evaluator.pld
    if not (0.0 <= t <= _HUGE and pld.terms) or pld.mass_at_infinity_bounds.hi != 0.0:
        return None
    _inherit_many(evaluator)
    if evaluator.many:
        return _many(evaluator, t)
    if pld.gaussian is None and t >= evaluator._top:
        return Interval(0.0, 0.0)
    if evaluator._is_smooth:
        return _smooth(evaluator, t) if evaluator._by_contour else None
    if len(pld.terms) > _FEW and are_pairs(pld.terms) and evaluator._by_contour:
        return _many(evaluator, t)
    return None


def are_pairs(terms: Terms) -> bool:
    """Whether all are Laplaces, or responses without mass at infinity."""
    return all(
        isinstance(f, Laplace) or (isinstance(f, RandomizedResponse) and f.delta == 0.0)
        for f in terms
    )


def _smooth(evaluator: Evaluator, t: float) -> Interval | None:
    """From the contour at hand, if it is good enough there."""
    evaluator._inherit()
    made = evaluator.contours[0] if evaluator.contours else None
    if type(made) is not Contour or not reading.is_plain(made):
        return None
    lo, hi = reading.at(made, t)
    return Interval(lo, hi) if hi - lo <= _RELATIVE * hi + _NOTHING else None


def _inherit_many(evaluator: Evaluator) -> None:
    """Take over a parent's contour of many atoms, if this is still a composition of such."""
    pld = evaluator.pld
    if evaluator.many or pld._heritage is None or pld.gaussian is not None:
        return
    lines, since = pld._heritage
    many = [made for made in lines if isinstance(made, ManyAtoms)]
    if many and are_pairs(since.terms):
        evaluator.many = tuple(made.extended(since.terms) for made in many)


def _many(evaluator: Evaluator, t: float) -> Interval | None:
    """From the contour of many atoms at hand, or a new one."""
    for made in evaluator.many:
        if t >= made.largest_loss:
            return Interval(0.0, 0.0)
        lo, hi = made.at(t)
        if hi - lo <= max(_NARROW, 2.0 * made.width) * hi + _NOTHING:
            evaluator.many = (made.read(t, lo, hi),)
            return Interval(lo, hi)
    known, evaluator.many = bool(evaluator.many), ()
    if any(
        one.line.lam < 0.0 or one.log_m - one.line.lam * t > _HIGH for one in evaluator.contours
    ):
        return None
    new = tuning.tuned_many(evaluator.pld.terms, evaluator._moments, t, known)
    if new is None:
        return None
    lo, hi = new.at(t)
    if hi - lo > _WIDE * hi + _NOTHING:
        return None
    evaluator.many = (new.read(t, lo, hi),)
    return Interval(lo, hi)
