"""Slow twins of mechanisms, from what they do: outcomes and their probabilities.

Nothing here imports the library. Laplace noise, mixed, shifted and cut off, is integrated exactly
piece by piece; discrete noise is summed over the integers; choices are lists of probabilities,
worked out from the noise on each score; sampling is enumerated subset by subset. Numbers are
mpmath's unless said otherwise.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from mpmath import mp, mpf
from numpy.typing import NDArray

from finite_oracles import real

Masses = Sequence[Any]
Centres = Sequence[tuple[Any, Any]]
"""Where noise is centred, and with what probability."""
Floats = NDArray[np.float64]


def hockey_stick(p: Masses, q: Masses, x: object) -> mpf:
    """`Σ (p - x q)_+` over outcomes."""
    level = real(x)
    return mp.fsum(max(real(a) - level * real(b), mpf(0)) for a, b in zip(p, q, strict=True))


def response(eps: object, categories: int) -> tuple[list[mpf], list[mpf]]:
    """Randomized response to two different truths, every category an outcome of its own."""
    e = mp.exp(real(eps))
    total = e + categories - 1
    p = [e / total, *[1 / total] * (categories - 1)]
    return p, [p[1], p[0], *p[2:]]


def uniform_response(noise: object, categories: int) -> tuple[list[mpf], list[mpf]]:
    """The same, with the truth replaced by a uniform category with probability `noise`."""
    other = real(noise) / categories
    p = [1 - real(noise) + other, *[other] * (categories - 1)]
    return p, [p[1], p[0], *p[2:]]


# -- Laplace noise --------------------------------------------------------------------------


def laplace_hockey_stick(
    p: Centres, q: Centres, scale: object, x: object, bound: object | None = None
) -> mpf:
    """`∫ (p - x q)_+` of two mixtures of Laplace noise, cut off at `±bound` from each centre.

    Between neighbouring centres (and ends) the integrand is `A e^{y/b} + B e^{-y/b}`, which
    changes sign at most once.
    """
    b, level = real(scale), real(x)
    weighted = [(real(c), real(w)) for c, w in p] + [(real(c), -level * real(w)) for c, w in q]
    reach = None if bound is None else real(bound)
    whole = 2 * b * (1 if reach is None else -mp.expm1(-reach / b))
    edges = {c for c, _ in weighted}
    if reach is not None:
        edges |= {c + reach for c in edges} | {c - reach for c in edges}
    cuts = sorted(edges)
    if reach is None:
        cuts = [-mp.inf, *cuts, mp.inf]
    total = mpf(0)
    for left, right in itertools.pairwise(cuts):
        near = [(c, w) for c, w in weighted if reach is None or _within(left, right, c, reach)]
        rise = mp.fsum(w * mp.exp(-c / b) for c, w in near if c >= right) / whole
        fall = mp.fsum(w * mp.exp(c / b) for c, w in near if c <= left) / whole
        total += _positive_part(rise, fall, b, left, right)
    return total


def _within(left: mpf, right: mpf, centre: mpf, reach: mpf) -> bool:
    return bool(abs((left + right) / 2 - centre) < reach)


def _positive_part(rise: mpf, fall: mpf, b: mpf, left: mpf, right: mpf) -> mpf:
    """`∫ (rise e^{y/b} + fall e^{-y/b})_+` from left to right."""

    def integral(l: mpf, r: mpf) -> mpf:
        up = rise * b * (mp.exp(r / b) - mp.exp(l / b)) if rise else mpf(0)
        return up + (fall * b * (mp.exp(-l / b) - mp.exp(-r / b)) if fall else mpf(0))

    cuts = [left, right]
    if rise * fall < 0:
        root = b / 2 * mp.log(-fall / rise)
        if left < root < right:
            cuts = [left, root, right]
    return mp.fsum(max(integral(l, r), mpf(0)) for l, r in itertools.pairwise(cuts))


# -- discrete noise -------------------------------------------------------------------------


def discrete_laplace(scale: object, far: int) -> list[mpf]:
    """`P(X = x) ∝ e^{-|x|/scale}` for `x = -far, …, far`, divided by the sum over all integers."""
    r = mp.exp(-1 / real(scale))
    return [r ** abs(x) * (1 - r) / (1 + r) for x in range(-far, far + 1)]


def discrete_gaussian(sigma: object, far: int) -> list[mpf]:
    """`P(X = x) ∝ e^{-x²/(2σ²)}` for `x = -far, …, far`."""
    weights = [mp.exp(-mpf(x * x) / (2 * real(sigma) ** 2)) for x in range(far + 1)]
    total = 2 * mp.fsum(weights) - weights[0]
    return [weights[abs(x)] / total for x in range(-far, far + 1)]


def discrete_laplace_losses(scale: object, shift: int) -> dict[int, mpf]:
    """Discrete Laplace noise against itself shifted: losses, as multiples of `1/scale`."""
    r = mp.exp(-1 / real(scale))
    between = {shift - 2 * x: r**x * (1 - r) / (1 + r) for x in range(1, shift)}
    return {shift: 1 / (1 + r), **between, -shift: r**shift / (1 + r)}


def discrete_laplace_power(scale: object, shift: int, count: int, eps: object) -> mpf:
    """`h(e^eps)` of that many of them: the masses of the sum of losses, one after another."""
    one = discrete_laplace_losses(scale, shift)
    low = -shift * count
    total = [mpf(0)] * (2 * shift * count + 1)
    total[-low] = mpf(1)
    for used in range(count):
        after = [mpf(0)] * len(total)
        for at in range(-shift * used - low, shift * used - low + 1):
            if total[at]:
                for loss, mass in one.items():
                    after[at + loss] += total[at] * mass
        total = after
    level, b = real(eps), real(scale)
    losses = ((mpf(i + low) / b, mass) for i, mass in enumerate(total))
    return mp.fsum(-mass * mp.expm1(level - z) for z, mass in losses if z > level)


def mixed(noise: Sequence[mpf], centres: Iterable[tuple[int, Any]], room: int) -> list[mpf]:
    """Noise on integers around several centres, `room` more integers on each side."""
    size = len(noise)
    total = [mpf(0)] * (size + 2 * room)
    for centre, weight in centres:
        w = real(weight)
        if w:
            for i, mass in enumerate(noise):
                total[i + room + centre] += w * mass
    return total


# -- sampling -------------------------------------------------------------------------------


def poisson_sums(records: Sequence[Any], rate: object) -> list[tuple[Any, mpf]]:
    """The sum over a Poisson sample: every value with its probability."""
    sums: dict[Any, mpf] = {Fraction(0): mpf(1)}
    q = real(rate)
    for record in records:
        after: dict[Any, mpf] = {}
        for total, mass in sums.items():
            after[total] = after.get(total, mpf(0)) + (1 - q) * mass
            after[total + record] = after.get(total + record, mpf(0)) + q * mass
        sums = after
    return list(sums.items())


def subset_sums(records: Sequence[Any], size: int) -> list[tuple[Any, mpf]]:
    """The sum over a subset of this size, all equally likely."""
    counts: dict[Any, int] = {}
    for chosen in itertools.combinations(range(len(records)), size):
        total = sum((records[i] for i in chosen), Fraction(0))
        counts[total] = counts.get(total, 0) + 1
    every = sum(counts.values())
    return [(total, mpf(n) / every) for total, n in counts.items()]


# -- choices --------------------------------------------------------------------------------


def softmax(scores: Sequence[object], scale: object) -> list[mpf]:
    """Probabilities proportional to `e^{score / scale}`: what Gumbel noise of that scale gives."""
    weights = [mp.exp(real(s) / real(scale)) for s in scores]
    return [w / mp.fsum(weights) for w in weights]


Laurent = dict[int, Any]
"""`Σ c_k e^{k y / b}`."""


def largest(scores: Sequence[object], noise: str, scale: object) -> list[mpf]:
    """Which noisy score is largest: `∫ f(y - s_i) Π F(y - s_j) dy`, exactly, for each `i`.

    Densities and distribution functions of Laplace and exponential noise are sums of `e^{k y/b}`
    between the scores.
    """
    b = real(scale)
    s = [real(v) / b for v in scores]
    cuts = [-mp.inf, *sorted(set(s)), mp.inf]
    out = [mpf(0)] * len(s)
    for left, right in itertools.pairwise(cuts):
        parts = [_noise(noise, c, left) for c in s]
        for i in range(len(s)):
            product: Laurent = parts[i][0]
            for j, (_, below) in enumerate(parts):
                if j != i:
                    product = _times(product, below)
            out[i] += mp.fsum(_integral(k, c, left, right) for k, c in product.items())
    return out


def _noise(noise: str, centre: mpf, left: mpf) -> tuple[Laurent, Laurent]:
    """Density and distribution function of unit noise around a centre, right of `left`."""
    up, down = mp.exp(-centre), mp.exp(centre)
    if noise == "laplace":
        if left >= centre:
            return {-1: down / 2}, {0: mpf(1), -1: -down / 2}
        return {1: up / 2}, {1: up / 2}
    if left >= centre:
        return {-1: down}, {0: mpf(1), -1: -down}
    return {}, {}


def _times(a: Laurent, b: Laurent) -> Laurent:
    out: Laurent = {}
    for i, c in a.items():
        for j, d in b.items():
            out[i + j] = out.get(i + j, mpf(0)) + c * d
    return out


def _integral(power: int, weight: mpf, left: mpf, right: mpf) -> mpf:
    if not weight:
        return mpf(0)
    if power == 0:
        return weight * (right - left)
    return weight / power * (mp.exp(power * right) - mp.exp(power * left))


def permute_and_flip(scores: Sequence[object], scale: object) -> list[mpf]:
    """McKenna and Sheldon's procedure: in random order, each candidate is taken with probability
    `e^{(score - best)/scale}`; one of the best always is.
    """
    s = [real(v) for v in scores]
    take = [mp.exp((v - max(s)) / real(scale)) for v in s]
    out = [mpf(0)] * len(s)
    orders = list(itertools.permutations(range(len(s))))
    for order in orders:
        left = mpf(1)
        for i in order:
            out[i] += left * take[i] / len(orders)
            left *= 1 - take[i]
    return out


# -- Rényi bounds ---------------------------------------------------------------------------


def renyi(p: Floats, q: Floats, orders: Floats) -> Floats:
    """`D_α(P, Q)` at each order of two lists of positive masses, in floats."""
    a = np.log(p)[:, None] * orders + np.log(q)[:, None] * (1.0 - orders)
    top = a.max(axis=0)
    return np.asarray((top + np.log(np.exp(a - top).sum(axis=0))) / (orders - 1.0))


def coin_excess(
    log_p: Floats, log_p_bar: Floats, log_q: Floats, log_q_bar: Floats, orders: Floats
) -> Floats:
    """`D_α` of coins in both directions: arrays of coins by orders, in floats."""
    a = orders[None, :]
    rows = []
    for one, one_bar, other, other_bar in (
        (log_p, log_p_bar, log_q, log_q_bar),
        (log_q, log_q_bar, log_p, log_p_bar),
    ):
        first = one[:, None] * a + other[:, None] * (1.0 - a)
        second = one_bar[:, None] * a + other_bar[:, None] * (1.0 - a)
        rows.append(np.logaddexp(first, second) / (a - 1.0))
    return np.asarray(np.maximum(rows[0], rows[1]))


def most_excess(
    log_p: Floats, log_p_bar: Floats, log_q: Floats, log_q_bar: Floats, rho: float, xi: float
) -> Floats:
    """`sup (D_α - xi - rho α)` over all orders `α > 1` for each coin, in floats.

    A net of orders, then finer ones around the best: the maximum is flat, so that three rounds
    leave about 1e-8 of it.
    """
    coins = log_p.size
    best = np.full(coins, -np.inf)
    net = np.broadcast_to(np.geomspace(1e-6, 1e7, 100), (coins, 100))
    for _ in range(4):
        logs = (log_p[:, None], log_p_bar[:, None], log_q[:, None], log_q_bar[:, None])
        worst = np.maximum(_divergence(*logs, net), _divergence(*logs[2:], *logs[:2], net))
        gap = worst - xi - rho * (1.0 + net)
        at = gap.argmax(axis=1)
        rows = np.arange(coins)
        best = np.maximum(best, gap[rows, at])
        low, high = (
            net[rows, np.maximum(at - 1, 0)],
            net[rows, np.minimum(at + 1, net.shape[1] - 1)],
        )
        share = np.linspace(0.0, 1.0, 11)
        net = low[:, None] ** (1.0 - share) * high[:, None] ** share
    return best


def _divergence(p: Floats, p_bar: Floats, q: Floats, q_bar: Floats, above_one: Floats) -> Floats:
    a = 1.0 + above_one
    terms = np.logaddexp(a * p - above_one * q, a * p_bar - above_one * q_bar)
    return np.asarray(terms / above_one)


def region_hockey_stick(orders: Floats, bounds: Floats, xs: Sequence[float]) -> list[float]:
    """The largest `p - x q` of two coins whose divergences stay within the bounds, in floats."""

    def within(p: Floats, p_bar: Floats, q: Floats, q_bar: Floats) -> NDArray[np.bool_]:
        excess = coin_excess(p, p_bar, q, q_bar, orders) - bounds
        return np.asarray(excess.max(axis=1) <= 0.0)

    return _best_coins(within, xs)


def zcdp_hockey_stick(rho: float, xi: float, xs: Sequence[float]) -> list[float]:
    """The same with `D_α <= xi + rho α` at every order."""
    return _best_coins(lambda *logs: most_excess(*logs, rho, xi) <= 0.0, xs)


_ROUNDS = 8
"""Each narrows `q` sevenfold, to 1e-7 in its logit."""


def _best_coins(within: Callable[..., NDArray[np.bool_]], xs: Sequence[float]) -> list[float]:
    """A scan over `q` with the largest allowed `p` from bisection, refined around the best."""

    def largest_p(logit_q: Floats) -> Floats:
        log_q, log_q_bar = -np.logaddexp(0.0, -logit_q), -np.logaddexp(0.0, logit_q)
        low, high = logit_q.copy(), np.full(logit_q.shape, 200.0)
        for _ in range(44):
            middle = 0.5 * (low + high)
            log_p, log_p_bar = -np.logaddexp(0.0, -middle), -np.logaddexp(0.0, middle)
            good = within(log_p, log_p_bar, log_q, log_q_bar)
            low, high = np.where(good, middle, low), np.where(good, high, middle)
        return low

    start = np.linspace(-80.0, 12.0, 150)
    # One row of candidates for each x.
    at = np.tile(start, (len(xs), 1))
    top = np.tile(largest_p(start), (len(xs), 1))
    level = np.asarray(xs)[:, None]
    rows = np.arange(len(xs))
    for round_ in range(_ROUNDS + 1):
        gain = 1.0 / (1.0 + np.exp(-top)) - level / (1.0 + np.exp(-at))
        best = gain.argmax(axis=1)
        if round_ == _ROUNDS:
            break
        low, high = (
            at[rows, np.maximum(best - 1, 0)],
            at[rows, np.minimum(best + 1, at.shape[1] - 1)],
        )
        at = np.linspace(low, high, 16, axis=1)
        top = largest_p(at.ravel()).reshape(at.shape)
    return np.maximum(gain[rows, best], 0.0).tolist()
