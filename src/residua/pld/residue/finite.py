"""The cost of a finite loss under `G_mu`: solve, raise a little, prove; and a proven lower bound.

The equations (`contact_equation.py`) are solved in floating point, and their `c` is raised until it
is proven (`certificate.py`). What is returned is proven, whatever the search did.

The GDP parameter of finitely many atoms.

The tradeoff curve of `G_nu` is `τ(α) = Φ(Φ⁻¹(1-α) - nu)`, so `L ⪯ G_nu` iff

    nu >= -Φ⁻¹(P(Z <= z)) - Φ⁻¹(Q(Z > z))      for every z,

and for a finite `L` the vertices of its tradeoff curve are enough: between them the curve is
straight and that of `G_nu` convex.
"""

from __future__ import annotations

import math

import numpy as np

from residua.bounds import Floats
from residua.pld.arithmetic import FEW, MANY
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, U, normal_density
from residua.pld.curve.support_ends import quantile_bounds
from residua.pld.families.atoms import ATOM_ULPS, Atoms
from residua.pld.pld import Pld
from residua.pld.residue.certificate import proven_cost
from residua.pld.residue.contact_equation import (
    LESS_THAN_ALL,
    Contact,
    compressed,
    lattice_points,
    solve,
)
from residua.pld.residue.excess import FiniteExcess, gaussian_transform
from residua.work_limit import work

_ALMOST_ALL = 1.0 - 1e-4
"""Of `v`: a composition on a lattice that costs more takes all there is."""
_LOWERED = [10.0**k for k in range(-11, 0)]
"""By how much the cost is lowered, in turn, until it is proven too small."""
_SMALL_LOSS = 1e-2
"""Below this, losses are worked out from exact differences of the masses."""
LOG_LEAST = -640.0
"""Weights whose logarithm is less would be lost: such lists are not written out."""


def finite_excess(pld: Pld) -> FiniteExcess | None:
    """The excess of a finite PLD without a Gaussian part or mass at infinity, if written out."""
    evaluator = pld._evaluator
    atoms = evaluator._single_atoms
    if atoms is not None:
        made = _from_atoms(atoms)
    elif evaluator._table_size <= MANY:
        table = evaluator._table
        work(60.0 * table.z.size)
        order = np.argsort(table.z, kind="stable")
        z = table.z[order]
        logs = table.log_p[order] - 0.5 * z
        if float(logs.min()) < LOG_LEAST:
            return None
        weights = np.exp(logs)
        wrong = table.log_error + 0.5 * table.loss_error + (EXP_ULPS + 4.0 * float(z[-1])) * U
        made = FiniteExcess(weights, z, 1.01 * wrong, table.loss_error)
    else:
        return None
    return symmetrised(made) if pld.is_symmetric else made


def _from_atoms(atoms: Atoms) -> FiniteExcess:
    weights, z, loss_error = np.sqrt(atoms.p) * np.sqrt(atoms.q), atoms.z, atoms.loss_error
    size = max(-float(z[0]), float(z[-1]))
    if size < _SMALL_LOSS and z.size <= FEW:
        exact = atoms.exact
        if len(exact) == z.size:
            # ln(p/q) from the exact difference keeps all digits of a small loss.
            work(400.0 * z.size)
            pairs = zip(exact.p, exact.q, strict=True)
            gaps = [(a * exact.q_den - b * exact.p_den) / (b * exact.p_den) for a, b in pairs]
            z = np.log1p(np.array(gaps))
            loss_error = (EXP_ULPS + 2.0) * U * 1.01 * size
    return FiniteExcess(weights, z, (ATOM_ULPS + 4.0) * U, loss_error)


def symmetrised(excess: FiniteExcess) -> FiniteExcess:
    """The same, with the symmetry it is known to have; means stay within the errors."""
    z, weights = excess.losses, excess.weights
    return FiniteExcess(
        0.5 * (weights + weights[::-1]),
        0.5 * (z - z[::-1]),
        excess.weight_error + 2.0 * U,
        excess.loss_error * (1.0 + U),
    )


def finite_cost(
    excess: FiniteExcess, v: float, v_up: float, least: float, surplus: float = 0.0
) -> tuple[float, float]:
    """Proven bounds of the cost under `G_√v`, which is known to dominate; `v` to `v_up`.

    The upper one is `v` itself where nothing better is proven. The lower one is for a loss whose
    excess is less by at most `surplus`, integrated. Costs below `least` are not tried.
    """
    given, excess = excess, compressed(excess, math.sqrt(v))
    most = _ALMOST_ALL if surplus > 0.0 else LESS_THAN_ALL
    contact = solve(excess, v, most=most, least=least)
    if excess is not given:
        # Steep transforms over a narrow Gaussian need more points.
        steep = abs(contact.l) / 3.0 + 1.0 / math.sqrt(max(v - contact.c, 1e-6 * v))
        if lattice_points(given, 1.0 / steep) != lattice_points(given, math.sqrt(v)):
            excess = compressed(given, 1.0 / steep)
            contact = solve(excess, v, contact, most=most)
    contact, high = proven_cost(excess, v, contact, most, least)
    return _lower(excess, v_up, contact, surplus), v if high is None else high


def _lower(excess: FiniteExcess, v: float, contact: Contact, surplus: float) -> float:
    """A cost below which `A > B` at the contact (at 0 if there is a surplus), proven."""
    for share in _LOWERED:
        c = contact.c * (1.0 - share)
        m2 = v - c
        l = contact.l * max(v - contact.c, 0.0) / m2 if surplus == 0.0 else 0.0
        a = excess.transform(m2, np.array([l]))
        b = gaussian_transform(m2, c, np.array([l]))
        low = float(a.log[0] - a.error[0])
        if surplus > 0.0:
            kept = 1.0 - 1.01 * surplus * math.exp(min(-low, 700.0))
            low = low + math.log(kept) if kept > 0.0 else -math.inf
        if low > b.log[0] + b.error[0]:
            return c
    return 0.0


def finite_parameter(excess: FiniteExcess) -> tuple[float, float]:
    """Bounds of the parameter of a finite loss without mass at infinity."""
    z, half = excess.losses, np.exp(0.5 * excess.losses)
    if z.size < 2:
        return 0.0, 0.0
    p, q = excess.weights * half, excess.weights / half
    wrong = excess.weight_error + 0.5 * excess.loss_error + (EXP_ULPS + 2.0 + p.size) * U
    # The smaller of both tails of each law has the digits.
    p_low, q_high = np.cumsum(p)[:-1], np.cumsum(q[::-1])[-2::-1]
    p_high, q_low = np.cumsum(p[::-1])[-2::-1], np.cumsum(q)[:-1]
    low_p, high_p = quantile_bounds(p_low, p_high, wrong)
    low_q, high_q = quantile_bounds(q_high, q_low, wrong)
    low, high = low_p + low_q, high_p + high_q
    near_low, near_high = _small_difference(excess, high_p, high_q, wrong)
    low, high = np.maximum(low, near_low), np.minimum(high, near_high)
    return max(float(np.max(low)), 0.0), float(np.max(high)) * (1.0 + 4.0 * U)


def _small_difference(
    excess: FiniteExcess, high_p: Floats, high_q: Floats, wrong: float
) -> tuple[Floats, Floats]:
    """The same from `Φ⁻¹(b) - Φ⁻¹(a) = (b - a) / φ` at a point between, for tiny losses.

    `b - a = Q(Z <= z) - P(Z <= z)` sums terms of one sign on either side of 0.
    """
    gap = 2.0 * excess.weights * np.sinh(0.5 * excess.losses)
    left, right = np.cumsum(-gap)[:-1], np.cumsum(gap[::-1])[-2::-1]
    difference = np.where(excess.losses[:-1] <= 0.0, left, right)
    spread = np.cumsum(excess.weights)[:-1]
    spread = np.where(excess.losses[:-1] <= 0.0, spread, spread[-1] - spread + excess.weights[-1])
    error = wrong * difference + 1.1 * excess.loss_error * (1.0 + wrong) * spread
    # Both quantiles lie between -high_p and low_q; the density is smallest at an end.
    first, last = -high_p, high_q
    least = np.minimum(normal_density(first), normal_density(last)) * (1.0 - 1e-12)
    most = np.where(
        (first < 0.0) & (last > 0.0), 0.4, np.maximum(normal_density(first), normal_density(last))
    )
    with np.errstate(divide="ignore", over="ignore"):
        high = np.where(least > 0.0, (difference + error) / np.maximum(least, 1e-300), np.inf)
    return (difference - error) / np.maximum(most * (1.0 + 1e-12), 1e-300), high
