"""The cost under `G_mu` of large finite losses, whose curve is close to 1 at `x = 1`.

There `A` and `B` (`excess.py`) hardly change with the cost, and what they lack of their limit does
(`excess.py`). Farther out it is the other way round. At every `l` the smaller of `A` and
its lack is at most half of the limit and has the digits, so the search goes by that one, and the
certificate closes a cell by either. Both are log-convex, and `A <= B` is the same as the reverse of
the lacks.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from residua.bounds import Floats
from residua.pld.residue.certificate import proven_by_cells
from residua.pld.residue.contact_equation import FINE, LESS_THAN_ALL, Contact, first_cost, places
from residua.pld.residue.excess import (
    FiniteExcess,
    gaussian_lack,
    gaussian_transform,
    lack_at_one,
    query_lack,
)

_LITTLE = 0.1
"""Of `1 - h(1)`: from here on `A` and `B` alone have digits enough."""
_MOST_ATOMS = 1 << 8
_SHARES = (2e-8, 4e-7, 1e-5, 1e-4, 1e-3, 1e-2, 0.1)
"""By how much the cost is raised, in turn, until that is proven; and lowered."""
_REFUTATIONS = 12
_HALVINGS = 60
_NEAR = 1e-3
_STEPS = 30
_SETTLED = 1e-10


def is_high(excess: FiniteExcess) -> bool:
    """Whether a list is better judged by what it lacks."""
    return excess.losses.size <= _MOST_ATOMS and lack_at_one(excess) < _LITTLE


class _Gap(NamedTuple):
    """`ln A - ln B`, or what `B` lacks less what `A` does, by logarithms: positive where `A > B`.

    Its slope and bend in `l`, Newton's step in `c` at a fixed `l m²`, and an error of the first.
    """

    value: Floats
    error: Floats
    slope: Floats
    bend: Floats
    move: Floats


def _gap(excess: FiniteExcess, m2: float, c: float, l: Floats) -> _Gap:
    a, b = excess.transform(m2, l), gaussian_transform(m2, c, l)
    lack, left = query_lack(excess, m2, l), gaussian_lack(m2, c, l)
    lacking = lack.log < a.log
    value = np.where(lacking, left.log - lack.log, a.log - b.log)
    error = np.where(lacking, left.error + lack.error, a.error + b.error)
    slope = np.where(lacking, left.mean - lack.mean, a.mean - b.mean)
    bend = np.where(lacking, left.spread - lack.spread, a.spread - b.spread)
    small = np.minimum(lack.log, a.log)
    # `A - B` falls by half of the density for a unit of c.
    share = np.exp(np.clip(small - excess.log_density(m2, l), -700.0, 600.0))
    return _Gap(value, error, slope, bend, 2.0 * value * share)


def high_cost(excess: FiniteExcess, v: float, v_up: float, least: float) -> tuple[float, float]:
    """Proven bounds of the cost under `G_√v`, which is known to dominate; `v` to `v_up`.

    The list is that of a whole pair: masses of either law add up to 1. The upper bound is `v`
    itself where nothing better is proven. Costs below `least` are not tried.
    """
    contact = _searched(excess, v, least)
    high = v
    for share in _SHARES:
        contact, proven = _raised(excess, v, contact, share)
        if proven is not None:
            high = proven
            break
    return _lowered(excess, v_up, contact), high


def _searched(excess: FiniteExcess, v: float, least: float) -> Contact:
    """About where they touch: bisection over a fine grid, then Newton's method."""
    low = first_cost(excess, v, least)
    high, at, near = v * LESS_THAN_ALL, 0.0, _NEAR
    for _ in range(_HALVINGS):
        c = math.sqrt(low * high)
        if high <= low * (1.0 + near):
            found = _newton(excess, v, Contact(c, at))
            if found is not None and low <= found.c <= high:
                return found
            near *= 1e-3
            if near < _SETTLED:
                break
        m2 = v - c
        l = places(excess, m2, c, FINE)
        gap = _gap(excess, m2, c, l)
        best = int(np.argmax(gap.value))
        top, place = float(gap.value[best]), float(l[best])
        if not top > 0.0 and gap.bend[best] < 0.0:
            beside = np.array([place - gap.slope[best] / gap.bend[best]])
            more = float(_gap(excess, m2, c, beside).value[0])
            top, place = (more, float(beside[0])) if more > top else (top, place)
        low, high, at = (c, high, place) if top > 0.0 else (low, c, place)
    return Contact(high, at)


def _newton(excess: FiniteExcess, v: float, start: Contact) -> Contact | None:
    """Equal heights and equal slopes; None if that does not settle."""
    c, l = start
    fixed = excess.is_symmetric and abs(l) * math.sqrt(v) < 1e-9
    l = 0.0 if fixed else l
    for _ in range(_STEPS):
        m2 = v - c
        gap = _gap(excess, m2, c, np.array([l]))
        new = c + float(gap.move[0])
        if not 0.0 < new < v:
            new = 0.5 * (c + (v if gap.move[0] > 0.0 else 0.0))
        reach = 0.5 * math.sqrt(1.0 / m2 + 1.0 / c)
        slope, bend = float(gap.slope[0]), float(gap.bend[0])
        step = 0.0 if fixed else -slope / bend if bend < 0.0 else math.copysign(reach, slope)
        step = min(max(step, -reach), reach)
        l = (l + step) * (m2 / (v - new))
        settled = abs(new - c) <= _SETTLED * c and abs(step) <= 1e-5 * reach
        c = new
        if settled:
            return Contact(c, l)
    return None


def _raised(
    excess: FiniteExcess, v: float, contact: Contact, share: float
) -> tuple[Contact, float | None]:
    """The contact found in the end, and its cost raised by that share if that is proven."""
    for _ in range(_REFUTATIONS):
        c = contact.c * (1.0 + share)
        if not c < v * LESS_THAN_ALL:
            break
        known = np.array([contact.l])
        failure = proven_by_cells(excess, v - c, c, known, lacking=True)
        if failure is None:
            return contact, c
        if not failure.is_violated:
            break
        again = _newton(excess, v, Contact(c, failure.at))
        contact = again if again is not None and again.c > contact.c else Contact(c, failure.at)
    return contact, None


def _lowered(excess: FiniteExcess, v: float, contact: Contact) -> float:
    """A cost below which `A > B` at the contact, proven."""
    for share in (1e-11, 1e-9, *_SHARES):
        c = contact.c * (1.0 - share)
        m2 = v - c
        l = contact.l * max(v - contact.c, 0.0) / m2
        gap = _gap(excess, m2, c, np.array([l]))
        if gap.value[0] > gap.error[0]:
            return c
    return 0.0
