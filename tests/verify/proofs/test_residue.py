"""The residue condition in ball arithmetic: true residues are proven, larger ones refuted."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

import residua as rz
from residua.pld.residue.gdp_residue import cost_bounds

pytestmark = pytest.mark.needs("flint")


def _given(p: np.ndarray, q: np.ndarray, one_sided: bool = False):
    from residua.verify.losses.factors import Pairs
    from residua.verify.losses.laws import Finite

    tops, bottoms = (sum(map(Fraction, v.tolist())) for v in (p, q))
    pair = Pairs(
        tuple(Fraction(a) / tops for a in p.tolist()),
        tuple(Fraction(b) / bottoms for b in q.tolist()),
    )

    def make() -> Finite:
        law = pair.law()
        return Finite(law.p, law.q, law.z, law.p_inf, law.q_inf, one_sided)

    return make


def _random(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    p = rng.random(n) + 1e-3
    q = p * np.exp(rng.choice([0.05, 0.3, 1.0]) * rng.standard_normal(n))
    return p / p.sum(), q / q.sum()


def test_random_residues_against_the_library(thorough: bool) -> None:
    """What the library proves is proven here; what it shows to be too much is never proven."""
    from residua.verify.proofs.residue import prove_residue

    rng = np.random.default_rng(7)
    for _ in range(400 if thorough else 15):
        p, q = _random(rng, int(rng.integers(2, 8)))
        loss = rz.from_pair(p, q)
        mu = rz.gdp_parameter(loss) * float(rng.choice([1.001, 1.2, 3.0, 20.0]))
        v = Fraction(mu) ** 2
        bounds = cost_bounds(v, loss)
        assert bounds is not None
        low, high = bounds
        make = _given(p, q)
        assert prove_residue(make, v - Fraction(float(high)), v).verdict == "proven"
        assert prove_residue(make, v - low * (1 - Fraction(1, 10**5)), v).verdict == "refuted"


@pytest.mark.parametrize("kind", ["response", "laplace", "range"])
@pytest.mark.parametrize("mu", [0.3, 1.0, 12.0])
def test_one_contact_to_the_last_digits(kind: str, mu: float) -> None:
    from residua.verify.losses.factors import Noise, Response
    from residua.verify.proofs.residue import prove_residue

    eps, none = Fraction(mu) / 10, Fraction(0)
    factor = {
        "response": Response(eps),
        "laplace": Noise(eps, eps),
        "range": Noise(eps, eps, none),
    }[kind]
    loss = {
        "response": rz.pure_dp,
        "laplace": lambda e: rz.laplace(1.0, e),
        "range": lambda e: rz.mechanisms.ExponentialMechanism(e).pld(),
    }[kind](float(eps))
    v = Fraction(mu) ** 2
    bounds = cost_bounds(v, loss)
    assert bounds is not None
    low, high = bounds
    assert high - low < high * Fraction(1, 10**9)
    assert prove_residue(factor.law, v - high, v).verdict == "proven"
    assert prove_residue(factor.law, v - low * (1 - Fraction(1, 10**8)), v).verdict == "refuted"


@pytest.mark.parametrize("kind", ["response", "laplace", "range"])
def test_tiny_costs_are_settled(kind: str) -> None:
    """Down to a share of 1e-24 of the budget, though the charge is as near to it as floats are."""
    from residua.verify.losses.factors import Noise, Response
    from residua.verify.proofs.residue import prove_residue

    none, v = Fraction(0), Fraction(1)
    for exponent in (-6, -9, -12):
        eps = 10.0**exponent
        size = Fraction(eps)
        factor, loss = {
            "response": (Response(size), rz.pure_dp(eps)),
            "laplace": (Noise(size, size), rz.laplace(1.0, eps)),
            "range": (Noise(size, size, none), rz.mechanisms.ExponentialMechanism(eps).pld()),
        }[kind]
        bounds = cost_bounds(v, loss)
        assert bounds is not None
        low, high = bounds
        assert high - low < high * Fraction(1, 10**10)
        assert prove_residue(factor.law, v - high, v).verdict == "proven"
        assert prove_residue(factor.law, v - low * (1 - Fraction(1, 10**8)), v).verdict == "refuted"


@pytest.mark.parametrize("x", [-3.0, -1.5e4, -1e6, -1e9])
def test_tails_are_known_relatively(x: float) -> None:
    from flint import arb

    from residua.verify.arithmetic.balls import bits, normal

    with bits(160), mpmath.workdps(60):
        found = normal(arb(x) / 3 * 3)
        exponent = mpmath.mpf(x) ** 2 / 2
        # What is left of it when the exponential is taken off: a number near 1/|x|.
        scaled = found * arb(str(exponent)).exp()
        truth = mpmath.erfc(-mpmath.mpf(x) / mpmath.sqrt(2)) / 2 * mpmath.exp(exponent)
        assert scaled.contains(arb(mpmath.nstr(truth, 55), "1e-50"))
        assert int(found.rel_accuracy_bits()) > 80


def test_half_a_proof_is_not_a_proof() -> None:
    """Checked for `x >= 1` alone, an asymmetric query would be charged too little."""
    from residua.verify.proofs.residue import prove_residue

    p, q = np.array([0.05, 0.95]), np.array([0.3, 0.7])
    v = Fraction(9)
    found = None
    for numerator in range(100, 200, 8):
        m2 = v * Fraction(numerator, 200)
        half = prove_residue(_given(p, q, one_sided=True), m2, v)
        whole = prove_residue(_given(p, q), m2, v)
        if half.verdict == "proven" and whole.verdict == "refuted":
            found = m2
    assert found is not None


def test_refutations_against_quadrature() -> None:
    """The point that refutes does so in mpmath, too."""
    from residua.verify.proofs.residue import prove_residue

    p, q = np.array([0.25, 0.5, 0.25]), np.array([0.5, 0.3, 0.2])
    v = Fraction(4)
    bounds = cost_bounds(v, rz.from_pair(p, q))
    assert bounds is not None
    m2 = v - bounds[0] * Fraction(99, 100)
    reason = prove_residue(_given(p, q), m2, v).reason
    t = mpmath.mpf(reason.split("ln x = ")[1].split(" ")[0])
    m, mu = mpmath.sqrt(mpmath.mpf(m2.numerator) / m2.denominator), mpmath.mpf(2)

    def gaussian(s: mpmath.mpf, at: mpmath.mpf) -> mpmath.mpf:
        return mpmath.ncdf(s / 2 - at / s) - mpmath.exp(at) * mpmath.ncdf(-s / 2 - at / s)

    pairs = zip(p.tolist(), q.tolist(), strict=True)
    composed = sum(a * gaussian(m, t - mpmath.log(a / b)) for a, b in pairs)
    assert composed > gaussian(mu, t)


def test_rises_are_derivatives_of_each_other() -> None:
    """The jets against finite differences at high precision."""
    from flint import arb

    from residua.verify.arithmetic.balls import bits
    from residua.verify.losses.factors import Noise
    from residua.verify.losses.laws import gaussian_rise, slack_rise

    with bits(400):
        m, mu, step = arb(0.7), arb(1.1), arb(2) ** -80
        laws = [
            _given(np.array([0.3, 0.7]), np.array([0.5, 0.5]))(),
            Noise(Fraction(1, 2), Fraction(1, 2)).law(),
            Noise(Fraction(1, 2), None, Fraction(3)).law(),
        ]
        rises = [lambda t, law=law: law.rise(t, m) for law in laws]
        rises.append(lambda t: gaussian_rise(t, m, mu))
        rises.append(lambda t: slack_rise(t, m, arb(0.25), arb(0.125)))
        for rise in rises:
            for t in (arb(-0.4), arb(0), arb(0.9), arb(6)):
                low, at, high = rise(t - step), rise(t), rise(t + step)
                for k in range(3):
                    slope = (high[k] - low[k]) / (2 * step)
                    assert abs(slope - at[k + 1]) < arb(2) ** -100


def test_clusters_of_losses_are_the_sum_over_them() -> None:
    """Moments of clusters against one term for each outcome."""
    from flint import arb

    from residua.verify.arithmetic.balls import bits, density, normal
    from residua.verify.losses.laws import Finite

    rng = np.random.default_rng(11)
    for n, spread, size in ((40, 0.3, 4.0), (60, 3.0, 1.5), (30, 1e-5, 0.2), (200, 8.0, 3.0)):
        m = arb(size)
        p, q = rng.random((2, n))
        z = spread * rng.standard_normal(n)
        for t in (0.0, 0.7, -5.0, 40.0 * spread, 300.0 * spread):
            with bits(800):
                x, u0 = arb(t).exp(), m / 2 - arb(t) / m
                first, second, third, fourth = (arb(0) for _ in range(4))
                for a, b, loss in zip(p.tolist(), q.tolist(), z.tolist(), strict=True):
                    u = u0 + arb(loss) / m
                    first += a * (normal(u) - normal(u0))
                    second += b * (normal(u - m) - normal(u0 - m))
                    third += a * density(u)
                    fourth += a * u * density(u)
                over, under = sum(map(Fraction, p.tolist())), sum(map(Fraction, q.tolist()))
                surplus, kept = (arb(v.numerator) / v.denominator for v in (over - under, under))
                beside = surplus * density(u0) / m
                bent = (third - kept * density(u0)) / m
                more = (fourth - kept * u0 * density(u0)) / (m * m)
                wanted = (
                    first - x * second,
                    -x * second + beside,
                    -x * second + bent + beside * u0 / m,
                    -x * second + bent + more + beside * (u0 * u0 - 1) / (m * m),
                )
            for precision in (96, 200):
                with bits(precision):
                    parts = (tuple(arb(v) for v in side.tolist()) for side in (p, q, z))
                    # Masses at infinity only say that the others do not sum to 1.
                    found = Finite(*parts, arb(1), arb(1)).rise(arb(t), m)
                    for value, exact in zip(found, wanted, strict=True):
                        assert value.overlaps(exact)
                        if abs(t) < 10.0 * spread:
                            assert value.rad() < arb(2) ** (24 - precision)


def test_a_query_that_takes_nearly_all_of_a_small_budget_with_slack() -> None:
    """A Gaussian that is tiny beside the query: shown without what is left of it."""
    from residua.verify.descriptions.mechanisms import loss_of
    from residua.verify.proofs.gaussian_budget import approximate_gdp_residue

    query = rz.mechanisms.Laplace(0.5110162404850224, 0.36454350570760896)
    loss = loss_of(query.to_dict(), "replace-one")
    before, left = (Fraction("1e-8"), Fraction("0.3")), Fraction("1.544475607583013e-10")
    assert approximate_gdp_residue(before, (left, Fraction(1, 1 << 56)), loss).verdict == "proven"
    more = approximate_gdp_residue(before, (left, Fraction(1, 1000)), loss)
    assert more.verdict != "proven"
