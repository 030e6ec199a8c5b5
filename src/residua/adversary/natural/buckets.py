"""How much of each size of loss a natural filter can let through, and how often it then occurs.

Queries are symmetric and at most `k`. Cut losses by size at `0 = e_0 < e_1 < … < e_n = ∞`; a query
has probability `p_i` of a loss with `e_{i-1} <= |Z| < e_i`. Two bounds for one bucket:

**Total probability** (`largest_total`). If everything admitted composes to `(eps, delta)`-DP, so
does what is left of it when every loss in the bucket is replaced by `RR_e`, `e = e_{i-1}`, and
all others by nothing (rounding down, then data processing). The number `m <= k` of losses in the
bucket is a sum of independent indicators with mean the total `s` of the `p_i`, so with `H(m)` the
curve of `m` of them at `e^eps`, `E H(m) <= delta`. Jensen's inequality for the greatest convex
minorant of `H`, and `Pr[m >= 1] >= 1 - e^-s`, each bound `s`.

**Number of draws** (`overflow`). The analyst chooses the `p_i` adaptively, but their total stays
below `s`. For `w > 0` let `U_n(s) = (1+w)^{-(n-1)} e^{sw} / (e w)`. Then `U_1(s) >= min(1, s)`,
which bounds one draw (Markov), and `p U_{n-1}(s-p) + (1-p) U_n(s-p) = U_n(s) e^{-pw} (1 + pw) <=
U_n(s)`: by induction no strategy makes `n` draws with more probability than `U_n(s)`, whatever
`w`.
"""

from __future__ import annotations

import math

import numpy as np

from residua import checks
from residua.bounds import Floats
from residua.pld.constructors import pure_dp

_SLACK = 1.0 + 1e-9
_ENOUGH = 0.5
"""Heights of `H` beyond this need not be told apart."""


def heights(e: float, eps: float, rounds: int, delta: float = 1.0) -> Floats:
    """`H(0), H(1), …`: lower bounds of the curve of `m` times `RR_e` at `e^eps`, up to `rounds`.

    Ends early where it is high: it does not decrease, so the last value bounds the rest. For the
    convex minorant where it passes `delta`, high is `delta + rounds H(m)` with the first `m` above
    `delta`: no chord to a later point is as flat as the one to that.
    """
    first = int(eps / e)
    values = [0.0] * (min(first, rounds) + 1)
    query = pure_dp(e)
    enough = _ENOUGH
    for m in range(len(values), rounds + 1):
        values.append(max(float((m * query).delta_bounds(eps).lo), values[-1]))
        if values[-1] > delta >= values[-2]:
            enough = min(enough, delta + rounds * values[-1])
        if values[-1] > enough:
            break
    return np.array(values)


def largest_total(e: float, eps: float, delta: float, rounds: int) -> float:
    """The largest total probability of losses of size `e` or more, upper bound.

    Args:
        e: a size of loss, positive.
        eps, delta: the promise that the queries, composed, keep.
        rounds: the most queries there are.

    Returns:
        An upper bound on the sum over the queries of `Pr[|Z| >= e]`, at most `rounds`.
    """
    e, eps = checks.positive("e", e), checks.positive("eps", eps)
    delta, rounds = checks.probability("delta", delta), checks.count("rounds", rounds)
    known = heights(e, eps, rounds, delta)
    total = _by_jensen(known, delta, rounds)
    if known.size > 1 and known[1] > delta:
        total = min(total, -math.log1p(-delta / float(known[1])))
    return min(total * _SLACK, float(rounds))


def _by_jensen(known: Floats, delta: float, rounds: int) -> float:
    """The largest `s` where the convex minorant of `H` is at most `delta`."""
    m, h = np.arange(known.size, dtype=np.float64), known
    if known.size <= rounds:
        m, h = np.append(m, float(rounds)), np.append(h, known[-1])
    if float(h[-1]) <= delta:
        return float(rounds)
    # Lower hull of the points: for each start the least slope, from left to right.
    at = 0
    while True:
        slopes = (h[at + 1 :] - h[at]) / (m[at + 1 :] - m[at])
        step = int(np.argmin(slopes))
        following = at + 1 + step
        if float(h[following]) > delta:
            slope = float(slopes[step]) * (1.0 - 1e-12)
            return float(m[at]) + (delta - float(h[at])) / slope
        at = following


def overflow(total: float, draws: int) -> float:
    """The probability of more than `draws` draws, for any strategy of this total, upper bound.

    Args:
        total: what the probabilities of the draws sum to, at most; they may be chosen adaptively.
        draws: how many draws are allowed.

    Returns:
        An upper bound of the probability that there are more, at most 1.
    """
    total, draws = checks.non_negative("total", total), checks.count("draws", draws)
    n = draws + 1
    if total >= n:
        return 1.0
    if n == 1:
        return total
    # The best `w`, where s w² + (s - n) w = 1; any other would do.
    gap = n - total
    w = (gap + math.sqrt(gap * gap + 4.0 * total)) / (2.0 * total)
    exponent = total * w - (n - 1) * math.log1p(w) - 1.0 - math.log(w)
    return min(1.0, total, math.exp(exponent) * _SLACK)
