"""The error charged for each platform function, measured again on this machine against Arb.

`ulp_bounds.py` states a bound for every function it relies on; here each is compared with
ball arithmetic of 256 bits at a couple of thousand points, hard regions included, in
every calling form numpy treats differently (whole arrays, single elements, strides).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from residua.pld.arithmetic import ulp_bounds

flint = pytest.importorskip("flint")

Floats = NDArray[np.float64]
U = 2.0**-53
POINTS = 2000
SMALLEST_NORMAL = 2.0**-1022
SMALLEST = 2.0**-1074


@pytest.fixture(autouse=True)
def _precision():
    before = flint.ctx.prec
    flint.ctx.prec = 256
    yield
    flint.ctx.prec = before


# ------------------------------------------------------------------- where to look


def uniform(rng: np.random.Generator, lo: float, hi: float) -> Floats:
    return rng.uniform(lo, hi, POINTS)


def log_uniform(rng: np.random.Generator, lo: float, hi: float) -> Floats:
    return np.exp(rng.uniform(math.log(lo), math.log(hi), POINTS))


def signed(rng: np.random.Generator, x: Floats) -> Floats:
    return x * rng.choice([-1.0, 1.0], x.shape)


def near(rng: np.random.Generator, centres: Floats, width: float) -> Floats:
    """Points at log-uniform distances from 1e-17 to `width` on both sides of the centres."""
    return rng.choice(centres, POINTS) + signed(rng, log_uniform(rng, 1e-17, width))


def exp_points(rng: np.random.Generator) -> Floats:
    half_steps = np.arange(-64, 65) * math.log(2.0) / 2.0
    return np.concatenate(
        [
            uniform(rng, -745.0, 709.0),
            signed(rng, log_uniform(rng, 1e-18, 1.0)),
            near(rng, half_steps, 1e-6),
        ]
    )


def expm1_points(rng: np.random.Generator) -> Floats:
    breaks = np.array([-1.5, -0.5, 0.5, 1.5]) * math.log(2.0)
    return np.concatenate(
        [
            uniform(rng, -1.5, 1.5),
            uniform(rng, -700.0, 700.0),
            signed(rng, log_uniform(rng, 1e-300, 1.0)),
            near(rng, breaks, 1e-3),
        ]
    )


def log_points(rng: np.random.Generator) -> Floats:
    return np.concatenate(
        [
            log_uniform(rng, 1e-323, 1e308),
            uniform(rng, 0.5, 2.0),
            1.0 + signed(rng, log_uniform(rng, 1e-15, 0.5)),
        ]
    )


def log1p_points(rng: np.random.Generator) -> Floats:
    breaks = np.array([math.sqrt(0.5) - 1.0, math.sqrt(2.0) - 1.0])
    return np.concatenate(
        [
            uniform(rng, -0.999, 3.0),
            -1.0 + log_uniform(rng, 1e-15, 1.0),
            signed(rng, log_uniform(rng, 1e-300, 0.9)),
            log_uniform(rng, 1.0, 1e300),
            near(rng, breaks, 1e-3),
        ]
    )


def angle_points(rng: np.random.Generator) -> Floats:
    quarters = rng.integers(1, int(1e7 / math.pi * 4), POINTS) * (math.pi / 4.0)
    return np.concatenate(
        [
            uniform(rng, -10.0, 10.0),
            uniform(rng, -1e7, 1e7),
            signed(rng, log_uniform(rng, 1e-20, 1e7)),
            np.minimum(quarters, 1e7),
        ]
    )


def erfcx_points(rng: np.random.Generator) -> Floats:
    # erfcx is a table of Chebyshev fits in 400 / (4 + x), then a continued fraction from 50.
    table = 400.0 / np.arange(8.0, 101.0) - 4.0
    return np.concatenate(
        [
            uniform(rng, -0.3, 0.0),
            -log_uniform(rng, 1e-12, 0.3),
            uniform(rng, 0.0, 1.0),
            log_uniform(rng, 1e-16, 1e8),
            uniform(rng, 0.0, 60.0),
            np.abs(near(rng, table, 1e-6)),
        ]
    )


def erf_points(rng: np.random.Generator) -> Floats:
    # Both are rational fits between 0.84375, 1.25, 1 / 0.35, 6 and 28.
    borders = np.array([0.84375, 1.25, 1.0 / 0.35, 6.0])
    return np.concatenate(
        [
            log_uniform(rng, 1e-150, 1.0),
            uniform(rng, 0.0, 3.0),
            uniform(rng, 0.0, 26.5),
            near(rng, borders, 1e-3),
        ]
    )


def gammaln_points(rng: np.random.Generator) -> Floats:
    return np.concatenate(
        [
            uniform(rng, 1.0, 14.0),
            log_uniform(rng, 1.0, 1e7),
            rng.integers(1, 10**7, POINTS).astype(np.float64),
            1.0 + log_uniform(rng, 1e-15, 2.0),
            2.0 + signed(rng, log_uniform(rng, 1e-15, 0.9)),
        ]
    )


# ----------------------------------------------------------------- what is measured


def relative(exact: float) -> float:
    return abs(exact)


def absolute(exact: float) -> float:
    return 1.0


def relative_or_absolute(exact: float) -> float:
    return max(1.0, abs(exact))


def scipy_function(name: str) -> Callable[[Floats], Floats]:
    def call(x: Floats) -> Floats:
        import scipy.special

        return getattr(scipy.special, name)(x)

    return call


def scalar(function: Callable[[float], float]) -> Callable[[Floats], Floats]:
    return lambda xs: np.array([function(x) for x in xs.tolist()])


def exact_erfcx(x):
    return (x * x).exp() * x.erfc()


def exact_mills(y):
    # Arb's erfc needs an exact argument far out; the midpoint is off by 2^-256, relatively,
    # and erfcx changes by no more than that.
    half_way = (y / flint.arb(2).sqrt()).mid()
    return (flint.arb.pi() / 2).sqrt() * exact_erfcx(half_way)


@dataclass(frozen=True)
class Case:
    """One function, the constant that bounds its error, and the points to try."""

    constant: str
    function: Callable[[Floats], Floats]
    exact: Callable[..., object]
    points: Callable[[np.random.Generator], Floats]
    unit: Callable[[float], float] = relative
    more: float = 0.0
    """How much the bound is beyond the constant."""


CASES = {
    "exp": Case("EXP_ULPS", np.exp, lambda x: x.exp(), exp_points),
    "math.exp": Case("EXP_ULPS", scalar(math.exp), lambda x: x.exp(), exp_points),
    "expm1": Case("EXP_ULPS", np.expm1, lambda x: x.expm1(), expm1_points),
    "math.expm1": Case("EXP_ULPS", scalar(math.expm1), lambda x: x.expm1(), expm1_points),
    "log": Case("EXP_ULPS", np.log, lambda x: x.log(), log_points),
    "math.log": Case("EXP_ULPS", scalar(math.log), lambda x: x.log(), log_points),
    "log1p": Case("EXP_ULPS", np.log1p, lambda x: x.log1p(), log1p_points),
    "math.log1p": Case("EXP_ULPS", scalar(math.log1p), lambda x: x.log1p(), log1p_points),
    "sin": Case("EXP_ULPS", np.sin, lambda x: x.sin(), angle_points, absolute),
    "cos": Case("EXP_ULPS", np.cos, lambda x: x.cos(), angle_points, absolute),
    "math.erf": Case("ERFC_ULPS", scalar(math.erf), lambda x: x.erf(), erf_points),
    "math.erfc": Case("ERFC_ULPS", scalar(math.erfc), lambda x: x.erfc(), erf_points),
    "erfcx": Case("MILLS_ULPS", scipy_function("erfcx"), exact_erfcx, erfcx_points, more=-4.0),
    "mills_ratio": Case("MILLS_ULPS", ulp_bounds.mills_ratio, exact_mills, erfcx_points),
    "gammaln": Case(
        "GAMMALN_ULPS",
        scipy_function("gammaln"),
        lambda x: x.lgamma(),
        gammaln_points,
        relative_or_absolute,
    ),
    "math.lgamma": Case(
        "GAMMALN_ULPS",
        scalar(math.lgamma),
        lambda x: x.lgamma(),
        gammaln_points,
        relative_or_absolute,
    ),
}


def singly(function: Callable[[Floats], Floats], x: Floats) -> Floats:
    return np.concatenate([function(x[i : i + 1]) for i in range(x.size)])


def strided(function: Callable[[Floats], Floats], x: Floats) -> Floats:
    spread = np.zeros(3 * x.size)
    spread[::3] = x
    return function(spread[::3])


FORMS = {
    "array": lambda function, x: function(x),
    "one at a time": singly,
    "strided": strided,
}


def excess(computed: float, exact, bound: float, unit: Callable[[float], float]) -> bool:
    """Whether the error goes beyond `bound`; a subnormal result may also be half a step off."""
    size = abs(float(exact))
    error = abs(flint.arb(computed) - exact)
    allowed = flint.arb(bound * U) * flint.arb(unit(size))
    if size < SMALLEST_NORMAL:
        allowed += flint.arb(SMALLEST)
    return not error <= allowed


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CASES)
def test_declared_bound_holds(name: str, form: str) -> None:
    case = CASES[name]
    bound = getattr(ulp_bounds, case.constant) + case.more
    x = case.points(np.random.default_rng(20_261_003))
    computed = FORMS[form](case.function, x)
    worse = [
        (float(argument), float(value))
        for argument, value in zip(x, computed, strict=True)
        if excess(float(value), case.exact(flint.arb(float(argument))), bound, case.unit)
    ]
    assert not worse, f"{name} is off by more than {case.constant} = {bound} u at {worse[:3]}"


def test_every_declared_constant_is_measured() -> None:
    declared = {name for name in vars(ulp_bounds) if name.endswith("_ULPS")}
    assert declared == {case.constant for case in CASES.values()}


def test_normal_density_is_within_its_stated_error() -> None:
    rng = np.random.default_rng(7)
    y = np.concatenate([uniform(rng, -37.0, 37.0), uniform(rng, -2.0, 2.0)])
    for argument, value in zip(y.tolist(), ulp_bounds.normal_density(y).tolist(), strict=True):
        exact = (-(flint.arb(argument) ** 2) / 2).exp() / (2 * flint.arb.pi()).sqrt()
        bound = ulp_bounds.EXP_ULPS + 3.0 + argument * argument
        assert not excess(value, exact, bound, relative), argument


def test_normal_tail_is_within_its_stated_error() -> None:
    rng = np.random.default_rng(13)
    x = np.concatenate([erf_points(rng), uniform(rng, 6.0, 26.5), -erf_points(rng)])
    for form in FORMS.values():
        for argument, value in zip(
            x.tolist(), form(ulp_bounds.normal_tail, x).tolist(), strict=True
        ):
            exact = flint.arb(argument).erfc() / 2
            bound = 3.0 * ulp_bounds.ERFC_ULPS + 2.0 * max(argument, 0.0) ** 2
            assert not excess(value, exact, bound, relative), argument


def test_sine_of_a_small_argument_is_relatively_accurate() -> None:
    """For `|x| < 1/2`, within `2 EXP_ULPS u`: what the nodes of bounded range rely on."""
    rng = np.random.default_rng(11)
    small_sines = np.concatenate(
        [
            signed(rng, log_uniform(rng, 1e-300, 0.5)),
            signed(rng, log_uniform(rng, 1e-9, 0.5)),
            uniform(rng, -0.5, 0.5),
        ]
    )
    for form in FORMS.values():
        computed = form(np.sin, small_sines)
        for x, value in zip(small_sines.tolist(), computed.tolist(), strict=True):
            exact = flint.arb(x).sin()
            assert not excess(value, exact, 2.0 * ulp_bounds.EXP_ULPS, relative), x


def test_mixtures_ask_for_mills_ratios_within_their_range(monkeypatch) -> None:
    """The charge for `erfcx` holds from -0.3 on: no curve of a mixture goes below."""
    from residua.pld.families import gaussian, gaussian_mixture

    asked: list[float] = []

    def watched(y: Floats) -> Floats:
        asked.append(float(np.min(y)))
        return ulp_bounds.mills_ratio(y)

    for module in (gaussian, gaussian_mixture):
        monkeypatch.setattr(module, "mills_ratio", watched)
    t = np.concatenate([[0.0], np.geomspace(1e-12, 600.0, 400)])
    for sigma in (0.06, 0.5, 1.0, 5.0, 100.0, 1e6):
        for shifts, weights in (((0.0, 1.0), (0.75, 0.25)), ((0.0, 0.5, 1.0), (0.5, 0.25, 0.25))):
            others = tuple(zip(shifts[1:], weights[1:], strict=True))
            made = gaussian_mixture.GaussianMixture(sigma, 0.0, others, 0.0, ())
            for one in (made, made.reverse()):
                one.curve(t, 0.0)
        replaced = gaussian_mixture.GaussianMixture(sigma, 0.0, ((1.0, 0.3),), 0.0, ((-1.0, 0.3),))
        replaced.curve(t, 0.0)
    assert asked
    assert min(asked) * ulp_bounds.SQRT_HALF >= -0.3
