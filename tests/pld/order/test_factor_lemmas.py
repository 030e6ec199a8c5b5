"""The lemmas behind the order: each against curves in mpmath, and what they decide together."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import mixture_oracles as slow
import oracles
import residua as rz
import strategies
from catalogue import high, low
from mixture_oracles import Blend, Mixture, laplace_weight, range_curve
from residua import Order
from residua.bounds import Verdict
from residua.pld.families.gaussian_mixture import GaussianMixture
from residua.pld.families.symmetric import BoundedRange
from residua.pld.order.compare import dominated
from residua.pld.order.factor_lemmas import (
    below,
    dominated_by_structure,
    variance_above,
    variance_below,
)
from residua.pld.order.tails import tail_escapes, tail_start

XS = [mp.exp(mpf(t) / 8) for t in (-60, -9, -2, -1, 0, 1, 3, 12, 50)]
few = settings(max_examples=8)
NOISE = mpf("1e-30")


def assert_below(first, second):
    """One curve is below another, each a function of `x`."""
    for x in XS:
        a, b = first(x), second(x)
        assert a <= b + NOISE * b


# -- bounded losses ---------------------------------------------------------------------

eps = strategies.log_uniform(1e-3, 20)
weight = st.sampled_from([0.0, 0.125, 0.5, 0.53125, 0.75, 0.9375])


def factor(pld: rz.Pld):
    ((only, n),) = pld.terms.items()
    assert n == 1
    return only


def bounded(kind: str, e: float, w: float):
    """A factor of largest loss `e`, and its curve."""
    if kind == "response":
        return factor(rz.pure_dp(e)), lambda x: range_curve(e, 1, x)
    if kind == "laplace":
        top = 1 / oracles.exact(1 / e)
        return factor(rz.laplace(1 / e)), lambda x: range_curve(top, laplace_weight(top), x)
    return factor(rz.bounded_range(e, atomic=w)), lambda x: range_curve(e, w, x)


kinds = st.sampled_from(["response", "laplace", "range"])


@given(kinds, kinds, eps, st.floats(0.9, 2.5), weight, weight)
def test_what_the_lemmas_say_of_bounded_losses_holds(kind, other, e, ratio, w, v):
    first, first_curve = bounded(kind, e, w)
    second, second_curve = bounded(other, e * ratio, v)
    if below(first, second):
        assert_below(first_curve, second_curve)
    if below(second, first):
        assert_below(second_curve, first_curve)


@given(eps, st.floats(1, 3), weight, weight)
def test_bounded_range_increases(e, ratio, w, v):
    w, v = sorted([w, v])
    assert below(BoundedRange(e, w), BoundedRange(e * ratio, v))
    assert below(BoundedRange(e, v), factor(rz.pure_dp(e * ratio)))
    assert below(factor(rz.pure_dp(e)), BoundedRange(2 * e, w))
    assert not below(BoundedRange(e * 1.001, w), BoundedRange(e, v))
    assert rz.bounded_range(e, atomic=w) <= rz.pure_dp(e)


@given(eps)
def test_laplace_lies_between_bounded_ranges(e):
    laplace = factor(rz.laplace(1 / e))
    share = float(laplace_weight(laplace.top))
    assume(1 - share > 1e-12)
    assume(oracles.exact(e) >= laplace.top)
    assert below(BoundedRange(float(laplace.top) * (1 - 1e-15), share * (1 - 1e-12)), laplace)
    assert below(laplace, BoundedRange(e, share * (1 + 1e-12)))
    assert not below(BoundedRange(e, share * (1 + 1e-12)), laplace)
    assert not below(laplace, BoundedRange(e, share * (1 - 1e-12)))


@given(strategies.finite(max_size=4), eps, strategies.log_uniform(1e-6, 0.9))
def test_atoms_below_a_response(case, e, delta):
    if below(factor(case.pld), factor(rz.approximate_dp(e, delta))) if case.pld.terms else False:
        for sign in (1, -1):
            side = case if sign > 0 else case.reverse()
            assert oracles.real(low(side.truth(mp.exp(mpf(e))))) <= delta


def test_a_response_covers_losses_and_mass():
    L = rz.from_atoms([0.5, -0.25], [0.75, 0.125], mass_at_infinity=0.125)
    assert dominated_by_structure(L, rz.approximate_dp(1.5, 0.5))
    assert not dominated_by_structure(L, rz.approximate_dp(1.5, 0.0625))
    assert not dominated_by_structure(L, rz.approximate_dp(0.375, 0.5))
    assert dominated_by_structure(rz.approximate_dp(0.0, 0.125), rz.approximate_dp(0.5, 0.125))


# -- mixtures ---------------------------------------------------------------------------

eighths = st.integers(1, 24).map(lambda k: k / 8)


@st.composite
def sides(draw, sign: int):
    """Shifts of one sign and weights in sixteenths, the remainder first."""
    count = draw(st.integers(0, 3))
    shifts = draw(st.lists(eighths, min_size=count, max_size=count, unique=True))
    weights = [draw(st.integers(1, 5)) / 16 for _ in shifts]
    rest = draw(st.sampled_from([0.0, 0.125]))
    assume(rest not in shifts)
    return sign * rest + 0.0, tuple(
        sorted((sign * a, w) for a, w in zip(shifts, weights, strict=True))
    )


@st.composite
def mixtures(draw):
    sigma = draw(st.sampled_from([0.5, 1.0, 1.5, 3.0]))
    (p_rest, p), (q_rest, q) = draw(sides(1)), draw(sides(-1))
    assume(p or q)
    return GaussianMixture(sigma, p_rest, p, q_rest, q)


def twin(mixture: GaussianMixture) -> Mixture:
    """The same in exact rationals, written out anew."""
    made = []
    for rest, others in ((mixture.p_rest, mixture.p), (mixture.q_rest, mixture.q)):
        left = 1 - sum(Fraction(w) for _, w in others)
        made.append([(Fraction(rest), left), *((Fraction(a), Fraction(w)) for a, w in others)])
    return Mixture.of(mixture.sigma, *made)


def raised(draw, mixture: GaussianMixture) -> GaussianMixture:
    """Larger shifts of `P`, smaller ones of `Q`, or less noise."""
    up, down = draw(st.sampled_from([0.0, 0.0625, 1.0])), draw(st.sampled_from([0.0, 0.03125, 2.0]))
    scale = draw(st.sampled_from([1.0, 0.5]))
    p = tuple((a + up, w) for a, w in mixture.p)
    q = tuple((a - down, w) for a, w in mixture.q)
    return GaussianMixture(mixture.sigma * scale, mixture.p_rest, p, mixture.q_rest, q)


@few
@given(mixtures(), st.data())
def test_larger_shifts_and_less_noise_raise_a_mixture(mixture, data):
    larger = raised(data.draw, mixture)
    assert below(mixture, larger)
    assert below(mixture.reverse(), larger.reverse())
    assert_below(twin(mixture).hockey_stick, twin(larger).hockey_stick)


@few
@given(mixtures(), mixtures())
def test_what_the_lemmas_say_of_mixtures_holds(first, second):
    for a, b in ((first, second), (second, first)):
        assert below(a, b) == below(a.reverse(), b.reverse())
        if below(a, b):
            assert_below(twin(a).hockey_stick, twin(b).hockey_stick)


@few
@given(mixtures())
def test_a_mixture_lies_between_two_gaussians(mixture):
    curve = twin(mixture).hockey_stick
    most, least = (mp.sqrt(oracles.real(f(mixture))) for f in (variance_above, variance_below))
    assert_below(curve, lambda x: oracles.gaussian(most, x))
    assert_below(lambda x: oracles.gaussian(least, x), curve)


@given(st.sampled_from([0.5, 1.0, 2.0]), strategies.log_uniform(1e-4, 0.9), st.floats(1, 1.1))
def test_sampling_increases_in_its_rate_and_under_replacement(sigma, rate, ratio):
    for direction in ("remove", "add", "replace"):
        one = rz.subsampled_gaussian(sigma, rate, direction)
        assert one <= rz.subsampled_gaussian(sigma, rate * ratio, direction)
        assert one <= rz.subsampled_gaussian(sigma / ratio, rate, direction)
        assert one <= rz.subsampled_gaussian(sigma, rate, "replace")
        distance = 2.0 if direction == "replace" else 1.0
        assert one <= rz.gaussian(sigma=sigma, sensitivity=distance)


@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 0.125), (2.0, 0.5), (0.5, 0.01)])
@pytest.mark.parametrize("gaussian", [0.0, 1.0])
def test_an_aligned_composition_is_above(sigma, rate, gaussian):
    """Weights of 0, 1 and 2 sampled, at the lengths of their vectors."""
    composed = 2 * rz.subsampled_gaussian(sigma, rate) + rz.gaussian(mu=gaussian)
    lengths = np.sqrt(np.arange(3.0) / sigma**2 + gaussian**2)
    weights = [(1 - rate) ** 2, 2 * rate * (1 - rate), rate**2]
    above = rz.mixture_of_gaussians(1.0, lengths * (1 + 1e-15), weights)
    short = rz.mixture_of_gaussians(1.0, lengths * (1 - 1e-9), weights)
    assert dominated_by_structure(composed, above)
    assert dominated_by_structure(composed.reverse(), above.reverse())
    assert not dominated_by_structure(composed, short)
    if gaussian == 0.0:
        curve = two_sampled(1.0 / sigma, rate)
        for t in (0.0, 0.01, 0.25, 1.0, 3.0):
            assert curve(t) <= above.delta(t) * (1 + 1e-9)
            assert curve(t) == pytest.approx(composed.delta(t), rel=0.1)


def two_sampled(shift: float, rate: float):
    """`h(e^t)` of two rounds of sampling: over the first observation, the second's closed form."""
    x = np.linspace(-12.0, 12.0 + shift, 4001)
    ratio = 1 - rate + rate * np.exp(shift * x - shift**2 / 2)
    mass = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi) * ratio * (x[1] - x[0])

    def second(y):
        inside = np.log(np.maximum(1 + (y - 1) / rate, 1e-300))
        a = shift / 2 - inside / shift
        tail = [math.erfc(-u / math.sqrt(2)) / 2 for u in a]
        other = [math.erfc((shift - u) / math.sqrt(2)) / 2 for u in a]
        sampled = rate * np.array(tail) - (rate + y - 1) * np.array(other)
        return np.where(y > 1 - rate, sampled, 1 - y)

    return lambda t: float(mass @ second(np.exp(t) / ratio))


# -- compositions -----------------------------------------------------------------------


def test_factors_are_matched_one_to_one():
    S, G = rz.subsampled_gaussian, rz.gaussian
    for A, B in [
        (S(1, 0.01) + rz.pure_dp(0.1), S(1, 0.02) + rz.pure_dp(0.2)),
        (3 * S(1, 0.01) + S(1, 0.05), S(1, 0.06) + 3 * S(0.9, 0.02)),
        (S(1, 0.01) + S(1, 0.02), G(mu=1.0) + S(1, 0.02)),
        (2 * S(1, 0.5) + G(mu=1.0), G(mu=1.0) + G(mu=1.5)),
        (rz.laplace(2) + S(1, 0.1, "add"), rz.pure_dp(0.5) + S(1, 0.1, "replace")),
        (rz.bounded_range(0.5) + rz.laplace(2), rz.laplace(2) + rz.pure_dp(0.5)),
        (2 * S(1, 0.01), rz.mixture_of_gaussians(1, [0, 1, 2], [0.9, 0.05, 0.05])),
        (G(mu=1.0), rz.mixture_of_gaussians(1, [1, 2], [0.5, 0.5])),
    ]:
        assert dominated_by_structure(A, B)
        assert dominated_by_structure(A.reverse(), B.reverse())
    for A, B in [
        (2 * S(1, 0.01), S(1, 0.02)),
        (S(1, 0.01), S(1, 0.02, "add")),
        (S(1, 0.01) + G(mu=1.0), G(mu=1.0)),
        (2 * rz.pure_dp(0.1), rz.pure_dp(0.5)),
        (S(1, 0.01) + rz.pure_dp(0.1), S(1, 0.02)),
    ]:
        assert not dominated_by_structure(A, B)


# -- tails ------------------------------------------------------------------------------

q = strategies.log_uniform(1e-3, 0.5)


@few
@given(mixtures(), mixtures())
def test_tails_begin_where_they_say(first, second):
    A, B = rz.Pld(None, {first: 1}), rz.Pld(None, {second: 1})
    start = tail_start(A, B)
    if start is not None:
        for t in (start, 1.1 * start, 1.5 * start + 0.1, 3 * start + 1):
            if t < 500:
                assert twin(first).delta(mpf(t)) <= twin(second).delta(mpf(t)) * (1 + NOISE)
        assert not tail_escapes(A, B) or twin(first).top < mp.inf


@few
@given(mixtures(), st.sampled_from([0.25, 1.0, 1.5, 2.0, 4.0]))
def test_tails_against_a_gaussian(mixture, mu):
    A, G = rz.Pld(None, {mixture: 1}), rz.gaussian(mu=mu)
    curves = twin(mixture).delta, lambda t: oracles.gaussian(mu, mp.exp(t))
    for L, M, (lower, upper) in ((A, G, curves), (G, A, curves[::-1])):
        start = tail_start(L, M)
        if start is not None:
            assert not tail_escapes(L, M) or L._evaluator._top < mp.inf
            for t in (start, 1.2 * start + 0.1, 2 * start + 1):
                if t < 500:
                    assert lower(mpf(t)) <= upper(mpf(t)) * (1 + NOISE)
        elif tail_escapes(L, M) and tail_start(M, L) is not None:
            t = min(tail_start(M, L) + 1, 500)
            assert lower(mpf(t)) >= upper(mpf(t))


@given(q, q, st.integers(1, 4), st.integers(1, 4))
def test_a_composition_of_more_has_the_heavier_tail(rate, other, n, m):
    A, B = n * rz.subsampled_gaussian(1, rate), m * rz.subsampled_gaussian(1, other)
    assert tail_escapes(A, B) == ((n, n * mp.log(rate)) > (m, m * mp.log(other)))
    assert (tail_start(A, B) is not None) or n >= m
    if n == m and rate < 0.9 * other:
        assert tail_start(A, B) is not None


def test_a_light_gaussian_does_not_escape_a_mixture():
    """Its variance is the larger one, but the mixture reaches further."""
    G, M = rz.gaussian(mu=0.1), rz.subsampled_gaussian(1, 0.5, "replace")
    assert not tail_escapes(G, M)
    assert rz.compare(G, M).verdict == Order.LESS


def test_bounded_losses_beside_a_gaussian():
    """Equal Gaussian parts: the larger largest loss has the heavier tail."""
    G = rz.gaussian(mu=1.0)
    A, B = G + rz.laplace(2), G + 3 * rz.bounded_range(0.5)
    assert tail_escapes(B, A)
    start = tail_start(A, B)
    first = Blend((), ((0.5, laplace_weight(0.5), 1),), 1)
    second = Blend((), ((0.5, 0, 3),), 1)
    for t in (start, start + 1, 2 * start):
        assert first.delta(t) <= second.delta(t)
    assert rz.compare(A, B).verdict == Order.LESS


# -- verdicts ---------------------------------------------------------------------------


def _sampled(rate: float, direction: str = "remove", sigma: float = 1.0, n: int = 1):
    pld = n * rz.subsampled_gaussian(sigma, rate, direction)
    return pld, Blend(((slow.subsampled(sigma, rate, direction), n),))


def _range(e, w, n=1):
    return Blend((), ((e, w, n),))


THREE = [0.0, 1.0, 2.0], [0.9, 0.05, 0.05]
TABLE = {
    "Id": (rz.identity(), Blend()),
    "R .1": (rz.pure_dp(0.1), _range(0.1, 1)),
    "R 1": (rz.pure_dp(1), _range(1, 1)),
    "R .5 .01": (rz.approximate_dp(0.5, 0.01), _range(0.5, 1)),
    "laplace 2": (rz.laplace(2), _range(0.5, laplace_weight(0.5))),
    "laplace 10": (rz.laplace(10), _range(Fraction(1, 10), laplace_weight(Fraction(1, 10)))),
    "G .5": (rz.gaussian(mu=0.5), Blend(variance=0.25)),
    "G 1": (rz.gaussian(mu=1), Blend(variance=1)),
    "G 2": (rz.gaussian(mu=2), Blend(variance=4)),
    "remove .01": _sampled(0.01),
    "add .01": _sampled(0.01, "add"),
    "replace .01": _sampled(0.01, "replace"),
    "remove .02": _sampled(0.02),
    "2 remove .01": _sampled(0.01, n=2),
    "10 remove .05": _sampled(0.05, sigma=2.0, n=10),
    "three": (rz.mixture_of_gaussians(1, *THREE), Blend(((slow.mixture(1, *THREE, "remove"), 1),))),
    "B .1": (rz.bounded_range(0.1), _range(0.1, 0)),
    "B 1": (rz.bounded_range(1), _range(1, 0)),
    "3 B .5": (3 * rz.bounded_range(0.5), _range(0.5, 0, 3)),
}
NAMES = list(TABLE)
LESS = {
    ("laplace 10", "R .1"),
    ("remove .01", "G 1"),
    ("add .01", "G 1"),
    ("replace .01", "G 1"),
    ("remove .01", "remove .02"),
    ("remove .01", "replace .01"),
    ("add .01", "replace .01"),
    ("remove .01", "2 remove .01"),
    ("remove .01", "three"),
    ("2 remove .01", "three"),
    ("2 remove .01", "G 2"),
    ("three", "G 2"),
    ("10 remove .05", "G 2"),
    ("2 remove .01", "R .5 .01"),
    ("B .1", "B 1"),
    ("B 1", "R 1"),
    ("laplace 2", "B 1"),
    ("laplace 10", "3 B .5"),
    ("3 B .5", "G 1"),
}
READ_AT = (-2.0, -0.3, -0.02, 0.0, 0.05, 0.3, 1.0, 4.0)
CHEAP = [name for name in NAMES if name not in ("2 remove .01", "10 remove .05")]


@cache
def read(name: str, t: object):
    """`h(e^t)`, or the reversed curve at `-t` where `t < 0`: there are the digits."""
    law = TABLE[name][1]
    value = law.delta(t) if t >= 0 else law.reverse().delta(-t)
    delta = oracles.real(oracles.exact(0.01 if name == "R .5 .01" else 0.0))
    return delta + (1 - delta) * value if delta else value


@pytest.mark.parametrize(("a", "b"), list(itertools.combinations(NAMES, 2)))
def test_every_pair_is_decided(a, b):
    comparison = rz.compare(TABLE[a][0], TABLE[b][0])
    assert comparison.verdict != Order.UNDECIDED
    if (a, b) in LESS or a == "Id":
        assert comparison.verdict == Order.LESS
    if (b, a) in LESS:
        assert comparison.verdict == Order.GREATER
    if a in CHEAP and b in CHEAP:
        for t in READ_AT:
            if comparison.verdict in (Order.LESS, Order.EQUAL):
                assert low(read(a, t)) <= high(read(b, t)) * (1 + NOISE)
            if comparison.verdict in (Order.GREATER, Order.EQUAL):
                assert low(read(b, t)) <= high(read(a, t)) * (1 + NOISE)
        for lower, upper, witness in (
            (a, b, comparison.not_below),
            (b, a, comparison.not_above),
        ):
            if witness is not None and witness.gap > 0.0:
                t = mp.log(mpf(witness.x))
                gap = high(read(lower, t)) - low(read(upper, t))
                assert gap * min(mp.exp(t), 1) * (1 + mpf("1e-12")) >= witness.gap


@pytest.mark.parametrize(("a", "b"), list(itertools.combinations(NAMES, 2))[::4])
def test_every_pair_beside_a_gaussian_is_decided(a, b):
    G = rz.gaussian(mu=1)
    A, B = TABLE[a][0], TABLE[b][0]
    for L, M in ((A + G, B + G), (A, B + G)):
        verdict = rz.compare(L, M).verdict
        assert verdict != Order.UNDECIDED
        if (a, b) in LESS:
            assert verdict == Order.LESS


def test_what_is_left_open_says_so():
    """A tail that begins where both curves are far below the floats."""
    A, B = 1000 * rz.subsampled_gaussian(1, 0.01), 1100 * rz.subsampled_gaussian(1, 0.0099)
    assert dominated(A, B).verdict is Verdict.UNDECIDED
    assert dominated(B, A).verdict is Verdict.NO
