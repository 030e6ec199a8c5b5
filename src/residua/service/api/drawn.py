"""Curves of a budget: the whole, the spent, the left and the promised. Pure, for a worker."""

from __future__ import annotations

from typing import Any

import numpy as np

from residua.errors import ResiduaError
from residua.ledger.api.views import Budget
from residua.pld.pld import Pld

FURTHEST = 50.0
"""The largest eps that is drawn."""


def drawn(budget: Budget, points: int) -> dict[str, Any]:
    """The curves of a budget."""
    plds = {
        part: as_pld(getattr(budget, part, None)) for part in ("capacity", "spent", "remaining")
    }
    plds["guarantee"] = as_pld(budget.filter.guarantee)
    top = widest([pld for pld in plds.values() if pld is not None])
    curves = {part: None if pld is None else curve(pld, points, top) for part, pld in plds.items()}
    return {"budget": budget.name, "seq": budget.seq, **curves}


def as_pld(value: Any) -> Pld | None:
    """The PLD of what is left or spent; None where it has none."""
    if isinstance(value, Pld):
        return value
    try:
        found = getattr(value, "pld", None)
    except ResiduaError:
        return None
    return found if isinstance(found, Pld) else None


def widest(plds: list[Pld]) -> float:
    """The eps up to which curves are drawn: where the largest of them is about 1e-9, or level."""
    return float(min(max([0.1, *map(_end, plds)]), FURTHEST))


def _end(pld: Pld) -> float:
    """Where a curve is about 1e-9; one that does not get there, a little after it has levelled."""
    eps = float(pld.epsilon(1e-9))
    if np.isfinite(eps):
        return eps
    level = float(pld.delta(FURTHEST))
    eps = 1.25 * float(pld.epsilon(min(1.0, 1.01 * level)))
    return eps if np.isfinite(eps) else 10.0


def curve(pld: Pld, points: int, top: float) -> dict[str, dict[str, list[float]]]:
    """One PLD in both views."""
    eps = np.linspace(0.0, top, points)
    alpha = np.linspace(0.0, 1.0, points)
    delta = np.atleast_1d(np.asarray(pld.delta(eps), dtype=np.float64))
    beta = np.atleast_1d(np.asarray(pld.tradeoff(alpha), dtype=np.float64))
    return {
        "hockey_stick": {"eps": eps.tolist(), "delta": np.clip(delta, 0.0, 1.0).tolist()},
        "tradeoff": {"alpha": alpha.tolist(), "beta": np.clip(beta, 0.0, 1.0).tolist()},
    }
