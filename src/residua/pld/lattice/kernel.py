"""Blackwell's theorem made explicit: a Markov kernel that turns `M` into `L`.

`L ⪯ M` iff some kernel maps the pair of `M` to the pair of `L`. For finite PLDs that is a
linear feasibility problem; the kernel found is checked by multiplying it out.
"""

from __future__ import annotations

import numpy as np

from residua.bounds import Floats
from residua.errors import ArgumentError, ResiduaError
from residua.pld.order.compare import dominated
from residua.pld.pld import Pld, query
from residua.work_limit import work

TOLERANCE = 1e-9
_LARGEST = 250_000


def kernel(low: Pld, high: Pld) -> Floats:
    """A row-stochastic matrix `k` with `P_M k = P_L` and `Q_M k = Q_L` (within 1e-9).

    Rows are the outcomes of `high.pair()`, columns those of `low.pair()`. Raises
    `ArgumentError` unless both are finite and `low ⪯ high` is not refuted.
    """
    query("low", low)._require_finite("kernel")
    query("high", high)._require_finite("kernel")
    answer = dominated(low, high)
    if answer.witness is not None:
        raise ArgumentError(
            f"low must be dominated by high, got a witness x={answer.witness.x!r} "
            f"with gap {answer.witness.gap!r}"
        )
    p, q = high.pair()
    p_low, q_low = low.pair()
    rows, columns = p.size, p_low.size
    if rows * columns > _LARGEST:
        raise ArgumentError(f"kernel needs at most {_LARGEST} entries, got {rows} x {columns}")
    found = _solve(p, q, p_low, q_low)
    found = np.clip(found, 0.0, None)
    found /= found.sum(axis=1, keepdims=True)
    miss = max(np.max(np.abs(p @ found - p_low)), np.max(np.abs(q @ found - q_low)))
    if not miss <= TOLERANCE:
        raise ResiduaError(f"no kernel within {TOLERANCE:g}: the best one misses by {miss:.3g}")
    return found


def _solve(p: Floats, q: Floats, p_low: Floats, q_low: Floats) -> Floats:
    from scipy.optimize import linprog
    from scipy.sparse import coo_array, hstack, vstack

    rows, columns = p.size, p_low.size
    work(5000.0 * rows * columns, 1000.0 * rows * columns)
    entry = np.arange(rows * columns)
    row, column = entry // columns, entry % columns
    stochastic = coo_array((np.ones(entry.size), (row, entry)), shape=(rows, entry.size))
    blocks, targets = [stochastic], [np.ones(rows)]
    for mass, wanted in ((p, p_low), (q, q_low)):
        blocks.append(coo_array((mass[row], (column, entry)), shape=(columns, entry.size)))
        targets.append(wanted)
    # Minimise the miss |mass k - wanted| instead of demanding equality: floats never sum exactly.
    n = entry.size
    slack = 2 * columns
    matrix = vstack(blocks, format="csr")
    extra_rows = rows + np.arange(slack)
    plus = coo_array((np.ones(slack), (extra_rows, np.arange(slack))), shape=(rows + slack, slack))
    system = hstack([matrix, plus, -plus], format="csr")
    cost = np.concatenate([np.zeros(n), np.ones(2 * slack)])
    result = linprog(
        cost,
        A_eq=system,
        b_eq=np.concatenate(targets),
        bounds=(0, None),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if not result.success or result.x is None:
        raise ResiduaError(f"the linear program failed: {result.message}")
    return np.asarray(result.x[:n]).reshape(rows, columns)
