"""Other accountants, asked for an interval of eps: below and above the truth as they claim it.

dp_accounting rounds losses up (`connect the dots`, or buckets where that is not offered) or, for
the lower end, down to a grid. prv_accountant returns both ends itself. Imports are inside, so
that tests are collected where a peer is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Ends = tuple[float, float]


def google(
    build: Callable[..., Any], count: int, delta: float, *, grid: float, dots: bool = True
) -> Ends:
    """dp_accounting's optimistic and pessimistic eps; `build(module, **options)` makes a PLD."""
    from dp_accounting.pld import privacy_loss_distribution as module

    ends = []
    for pessimistic in (False, True):
        # Rounding down is offered by the buckets only.
        choice = {"use_connect_dots": pessimistic} if dots else {}
        pld = build(
            module,
            pessimistic_estimate=pessimistic,
            value_discretization_interval=grid,
            **choice,
        )
        pld = pld.self_compose(count) if count > 1 else pld
        ends.append(float(pld.get_epsilon_for_delta(delta)))
    return ends[0], ends[1]


def replace_one() -> Any:
    """dp_accounting's name for the relation."""
    from dp_accounting.privacy_accountant import NeighboringRelation

    return NeighboringRelation.REPLACE_ONE


def microsoft(kind: str, count: int, delta: float, **parameters: float) -> Ends:
    """prv_accountant's lower and upper eps."""
    import prv_accountant

    prv = getattr(prv_accountant, kind)(**parameters)
    accountant = prv_accountant.PRVAccountant(
        prvs=[prv], max_self_compositions=[count], eps_error=0.02, delta_error=delta * 1e-3
    )
    low, _, high = accountant.compute_epsilon(delta=delta, num_self_compositions=[count])
    return float(low), float(high)
