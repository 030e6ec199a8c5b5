"""The oracles against each other: every slow version is reached in two ways."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

import oracles
from oracles import Finite, Law

CLOSE = mpf("1e-30")
QUADRATURE = mpf("1e-22")


def integers(size: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, 9), min_size=size, max_size=size).filter(any)


finite_laws = st.integers(1, 5).flatmap(
    lambda n: st.builds(Finite.of, integers(n), integers(n)).map(Finite.merge)
)


def over_laplace(h, eps: float, x: object) -> mpf:
    """`E h(x e^-Z)` over one Laplace law, by quadrature to about 25 digits."""
    e, t = oracles.real(eps), mp.log(oracles.real(x))
    breaks = sorted({-e, e, *(z for k in range(-30, 31) if -e < (z := t - k / mpf(4)) < e)})
    top = h(mp.exp(t - e))
    with mp.workdps(30):
        inner = mp.quad(lambda z: mp.exp((z - e) / 2) / 4 * (h(mp.exp(t - z)) / top), breaks)
    return top / 2 + mp.exp(-e) * h(mp.exp(t + e)) / 2 + top * inner


@pytest.mark.parametrize("mu", [0.01, 1.0, 7.0])
@pytest.mark.parametrize("t", [-3.0, 0.0, 0.4, 9.0])
def test_gaussian_is_the_integral_of_the_hockey_stick(mu, t):
    m, start = mpf(mu), mpf(t)
    density = lambda z: mp.npdf(z, m * m / 2, m) * -mp.expm1(start - z)  # noqa: E731
    points = [start, *sorted(z for k in range(-12, 13) if (z := m * m / 2 + k * m) > start)]
    if len(points) == 1:
        points.append(start + 20 * m)
    with mp.workdps(30):
        integral = mp.quad(density, [*points, points[-1] + 40 * m])
    assert abs(oracles.gaussian(mu, mp.exp(start)) - integral) < QUADRATURE


def test_laplace_sum_of_one_is_the_closed_form():
    for t in (-0.7, -0.5, -0.1, 0.0, 0.3, 0.5, 2.0):
        assert (
            abs(oracles.laplace_sum([(0.5, 1)], mp.exp(t)) - oracles.laplace(0.5, mp.exp(t)))
            < CLOSE
        )


@pytest.mark.parametrize(
    ("parts", "more", "t"),
    [([(0.5, 1)], 0.5, -0.6), ([(0.5, 2)], 0.25, 0.7), ([(1.0, 1), (0.25, 1)], 0.5, 0.7)],
)
def test_laplace_sum_is_an_iterated_integral(parts, more, t):
    together = Law(laplaces=tuple(parts)) + Law(laplaces=((more, 1),))
    integral = over_laplace(lambda x: oracles.laplace_sum(parts, x), more, mp.exp(t))
    assert abs(oracles.laplace_sum(together.laplaces, mp.exp(t)) - integral) < QUADRATURE


@pytest.mark.parametrize("mu", [0.3, 3.0])
@pytest.mark.parametrize("t", [-2.0, 0.5, 6.0])
def test_gaussian_curve_integrated_over_a_laplace_law(mu, t):
    law = Law(laplaces=((0.5, 1),), variance=mpf(mu) ** 2)
    integral = over_laplace(lambda x: oracles.gaussian(mu, x), 0.5, mp.exp(t))
    assert abs(law.hockey_stick(mp.exp(t)) / integral - 1) < QUADRATURE


@pytest.mark.parametrize("parts", [((0.5, 1),), ((0.25, 6),), ((1.0, 1), (0.25, 2))])
@pytest.mark.parametrize("t", [-2.0, 0.5, 8.0])
def test_contour_is_the_closed_form_of_laplace_laws_and_a_gaussian(parts, t):
    law = Law(oracles.approximate_dp(0.5, 0.125), laplaces=parts, variance=mpf(0.5))
    assert abs(oracles.contour(law, mpf(t)) / law.hockey_stick(mp.exp(t)) - 1) < CLOSE


@pytest.mark.parametrize("t", [-1.0, 2.0, 12.0])
def test_contour_without_laplace_is_the_gaussian_mixture(t):
    law = Law(finite=oracles.approximate_dp(0.7, 0.125), variance=mpf(2))
    assert abs(oracles.contour(law, mpf(t)) / law.hockey_stick(mp.exp(t)) - 1) < CLOSE


@pytest.mark.parametrize(("eps", "delta", "n"), [(0.1, 0.0, 20), (1.0, 0.25, 7), (0.0, 0.5, 3)])
@pytest.mark.parametrize("x", [0.01, 0.9, 1.0, 1.3, 5.0])
def test_binomial_sum_is_the_composed_law(eps, delta, n, x):
    composed = oracles.approximate_dp(eps, delta).power(n)
    assert abs(oracles.response_power(eps, delta, n, x) - composed.hockey_stick(x)) < CLOSE


@pytest.mark.parametrize(("eps", "n", "t"), [(0.1, 100, 3.0), (0.05, 150, -1.0)])
def test_laplace_power_brackets_the_closed_form(eps, n, t):
    bracket = oracles.laplace_power(eps, n, mp.exp(t))
    truth = oracles.laplace_sum([(eps, n)], mp.exp(t))
    assert bracket.lo <= truth <= bracket.hi
    assert bracket.hi / bracket.lo - 1 < mpf("1e-3")


@pytest.mark.parametrize("t", [-3.0, 0.1, 20.0, 60.0])
def test_lattice_sum_is_the_binomial_sum(t):
    p = mp.exp(0.125) / (1 + mp.exp(0.125))
    lattice = oracles.lattice_power({1: p, -1: 1 - p}, 0.125, 1000, mp.exp(t))
    assert abs(lattice / oracles.response_power(0.125, 0, 1000, mp.exp(t)) - 1) < mpf("1e-17")


@pytest.mark.parametrize("t", [-0.3, 0.0, 0.4, 1.3])
def test_lattice_sum_is_the_multinomial_sum(t):
    losses, masses = oracles.subsampled_lattice(1.0, 0.25, 0.5, 2)
    law = oracles.from_atoms(losses, masses, 0.0)
    direct = law.power(6).hockey_stick(mp.exp(t))
    lattice = {round(z * 2): p for z, (p, _) in zip(losses, law.pairs, strict=False)}
    assert abs(oracles.lattice_power(lattice, 0.5, 6, mp.exp(t)) - direct) < mpf("1e-11")


def test_subsampled_lattice_is_a_pair_of_distributions():
    losses, masses = oracles.subsampled_lattice(0.8, 0.01, 1 / 32, 64)
    assert min(masses) > 0
    assert abs(math.fsum(masses) - 1) < 1e-15
    assert abs(mp.fsum(m * mp.exp(-z) for z, m in zip(losses, masses, strict=True)) - 1) < 1e-15


@given(finite_laws, finite_laws, st.fractions(0, 6))
def test_composition_is_the_mixture_of_shifted_curves(a, b, x):
    mixed = sum(p * b.hockey_stick(x * q / p) if q else p for p, q in a.pairs if p)
    assert (a + b).hockey_stick(x) == mixed


@given(finite_laws, st.integers(0, 4))
def test_power_is_repeated_composition(a, n):
    by_hand = oracles.IDENTITY
    for _ in range(n):
        by_hand = by_hand + a
    assert sorted(a.power(n).merge().pairs) == sorted(by_hand.merge().pairs)


@given(finite_laws, finite_laws, st.fractions(0, 6))
def test_supremum_and_infimum_bound_and_touch(a, b, x):
    top, bottom = a.sup_of(b), a.inf_of(b)
    assert top.hockey_stick(x) == max(a.hockey_stick(x), b.hockey_stick(x))
    assert bottom <= a <= top
    assert bottom <= b <= top


@given(finite_laws, finite_laws, st.fractions(0, 1))
def test_infimum_has_the_larger_tradeoff_curve(a, b, alpha):
    largest = max(oracles.interpolate(law.tradeoff_points(), alpha) for law in (a, b))
    assert oracles.interpolate(a.inf_of(b).tradeoff_points(), alpha) == largest


@given(finite_laws, st.fractions(0, 1))
def test_tradeoff_is_conjugate_to_the_hockey_stick(a, alpha):
    """`tau(alpha) = max over x of (1 - alpha - h(x)) / x`, attained at a kink or at infinity."""
    best = max([(1 - alpha - a.hockey_stick(x)) / x for x in a.kinks] + [Fraction(0)])
    # x -> 0: one minus the mass at -inf, less what alpha costs there.
    if alpha == 0:
        best = max(best, 1 - a.mass_at_minus_infinity)
    assert oracles.interpolate(a.tradeoff_points(), alpha) == best


@given(finite_laws)
def test_curves_determine_the_law(a):
    xs = a.kinks
    if xs:
        again = Finite.from_hockey_stick(xs, [a.hockey_stick(x) for x in xs])
        assert sorted(again.merge().pairs) == sorted(a.merge().pairs)
    points = a.tradeoff_points()
    again = Finite.from_tradeoff(*zip(*points, strict=True))
    assert sorted(again.merge().pairs) == sorted(a.merge().pairs)


@given(finite_laws, st.fractions(Fraction(1, 10), 6))
def test_reversal_mirrors_the_curve(a, x):
    assert a.reverse().hockey_stick(x) == 1 - x + x * a.hockey_stick(1 / x)


@pytest.mark.parametrize("alpha", [1e-20, 1e-3, 0.5, 0.999])
def test_gaussian_tradeoff_is_the_largest_tangent(alpha):
    law = Law(variance=mpf(2.25))
    searched = oracles.maximum(lambda t: law._tangent(mpf(alpha), t))
    assert abs(oracles.gaussian_tradeoff(1.5, alpha) / searched - 1) < CLOSE


@pytest.mark.parametrize("alpha", [0.25, 0.5, 1.0, 2.0])
def test_renyi_of_a_sum_of_laplace_laws_is_an_integral(alpha):
    """`E e^{(a-1)Z}` from the hockey-stick curve: `a(a-1)` times the integral of `x^(a-2) h`."""
    law = Law(laplaces=((0.5, 2),))
    breaks = [mp.exp(k * mpf(0.5)) for k in range(-2, 3)]
    h = law.hockey_stick
    if alpha > 1:
        with mp.workdps(20):
            inner = mp.quad(lambda x: x ** (mpf(alpha) - 2) * h(x), [0, *breaks])
        value = mp.log(alpha * (mpf(alpha) - 1) * inner) / (mpf(alpha) - 1)
        assert abs(law.renyi(alpha) - value) < mpf("1e-12")
    elif alpha == 1:
        assert abs(law.renyi(1) - law.renyi(1 + mpf("1e-20"))) < mpf("1e-18")
    else:
        # Skew symmetry of a symmetric law: (1 - a) D_a = a D_(1-a).
        assert abs((1 - alpha) * law.renyi(alpha) - alpha * law.renyi(1 - alpha)) < CLOSE
