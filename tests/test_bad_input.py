"""Bad input raises an error naming the argument and showing the value, or is answered rightly."""

from __future__ import annotations

import copy
import inspect
import math
import pickle
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp

import oracles
import residua as rz
from residua import ArgumentError, ArgumentTypeError, ResiduaError

INF = math.inf
NAN = math.nan
G = rz.gaussian(mu=1.0)

not_finite = st.sampled_from([NAN, INF, -INF])
negative = st.floats(max_value=0.0, exclude_max=True)
not_probability = st.one_of(
    st.floats(max_value=0.0, exclude_max=True),
    st.floats(min_value=1.0, exclude_min=True),
    not_finite,
)
not_numbers = st.sampled_from(
    [None, "1.0", True, 1j, [1.0], {}, object, b"1", np.timedelta64(1, "s")]
)

NON_NEGATIVE: dict[str, tuple[Callable[[float], object], str]] = {
    "gaussian mu": (lambda v: rz.gaussian(mu=v), "mu"),
    "gaussian sensitivity": (lambda v: rz.gaussian(sigma=1.0, sensitivity=v), "sensitivity"),
    "laplace sensitivity": (lambda v: rz.laplace(scale=1.0, sensitivity=v), "sensitivity"),
    "pure_dp eps": (rz.pure_dp, "eps"),
    "approximate_dp eps": (lambda v: rz.approximate_dp(v, 0.1), "eps"),
}
POSITIVE: dict[str, tuple[Callable[[float], object], str]] = {
    "gaussian sigma": (lambda v: rz.gaussian(sigma=v), "sigma"),
    "laplace scale": (lambda v: rz.laplace(scale=v), "scale"),
    "hockey_stick x": (G.hockey_stick, "x"),
    "hockey_stick_bounds x": (G.hockey_stick_bounds, "x"),
}
PROBABILITIES: dict[str, tuple[Callable[[float], object], str]] = {
    "approximate_dp delta": (lambda v: rz.approximate_dp(0.5, v), "delta"),
    "from_atoms mass_at_infinity": (
        lambda v: rz.from_atoms([0.0], [1.0], mass_at_infinity=v),
        "mass_at_infinity",
    ),
    "epsilon delta": (G.epsilon, "delta"),
    "epsilon_bounds delta": (G.epsilon_bounds, "delta"),
    "tradeoff alpha": (G.tradeoff, "alpha"),
    "tradeoff_bounds alpha": (G.tradeoff_bounds, "alpha"),
    "inverse_tradeoff beta": (G.inverse_tradeoff, "beta"),
    "inverse_tradeoff_bounds beta": (G.inverse_tradeoff_bounds, "beta"),
}


def refuses(
    call: Callable[[], object], name: str, value: object, kind: type = ArgumentError
) -> None:
    """The call raises, naming the argument and showing the value."""
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert name in message
    assert repr(value) in message or str(value) in message
    assert isinstance(caught.value, ResiduaError)


@pytest.mark.parametrize("where", NON_NEGATIVE)
@given(value=st.one_of(negative, not_finite))
def test_negative_or_infinite_parameters(where, value):
    build, name = NON_NEGATIVE[where]
    refuses(lambda: build(value), name, value)


@pytest.mark.parametrize("where", POSITIVE)
@given(value=st.one_of(negative, st.just(0.0), not_finite))
def test_parameters_that_must_be_positive(where, value):
    build, name = POSITIVE[where]
    refuses(lambda: build(value), name, value)


@pytest.mark.parametrize("where", PROBABILITIES)
@given(value=not_probability)
def test_probabilities_outside_the_unit_interval(where, value):
    build, name = PROBABILITIES[where]
    refuses(lambda: build(value), name, value)


@pytest.mark.parametrize("where", [*NON_NEGATIVE, *POSITIVE, *PROBABILITIES])
@given(value=not_numbers)
def test_things_that_are_not_numbers(where, value):
    build, name = (NON_NEGATIVE | POSITIVE | PROBABILITIES)[where]
    if isinstance(value, list) and ("_bounds" in where or where.split()[0] in dir(G)):
        return  # curves take sequences
    if value is None and where.startswith(("gaussian mu", "gaussian sigma", "gaussian sens")):
        return  # None means "not given" there
    refuses(lambda: build(value), name, value, ArgumentTypeError)


@given(value=not_finite)
def test_delta_reads_finite_eps(value):
    refuses(lambda: G.delta(value), "eps", value)
    refuses(lambda: G.delta_bounds(value), "eps", value)


@given(value=st.one_of(st.floats(max_value=0.0), st.just(NAN), st.just(-INF)))
def test_renyi_reads_positive_orders(value):
    refuses(lambda: G.renyi(value), "alpha", value)
    refuses(lambda: G.renyi_bounds(value), "alpha", value)


@pytest.mark.parametrize("bad", [NAN, -1.0, 2.0])
def test_one_bad_entry_in_an_array(bad):
    array = np.array([[0.25, 0.5], [bad, 0.75]])
    refuses(lambda: G.epsilon(array), "delta", bad)
    refuses(lambda: G.tradeoff(array), "alpha", bad)


def test_gaussian_takes_one_of_mu_and_sigma():
    for arguments in ({}, {"mu": 1.0, "sigma": 2.0}, {"mu": 1.0, "sensitivity": 2.0}):
        with pytest.raises(ArgumentTypeError, match="mu"):
            rz.gaussian(**arguments)


POSITIONAL = {
    "gaussian": (lambda: rz.gaussian(0.5), ["gaussian(mu=0.5)", "gaussian(sigma=0.5)"]),
    "gaussian, one named": (lambda: rz.gaussian(0.5, sigma=2.0), ["0.5 could mean mu or sigma"]),
    "Gaussian": (lambda: rz.mechanisms.Gaussian(0.5), ["Gaussian(sigma=0.5)", "Gdp(mu=0.5)"]),
    "Gaussian, two": (lambda: rz.mechanisms.Gaussian(4.0, 2.0), ["4.0 could mean sigma or mu"]),
    "DiscreteGaussian": (
        lambda: rz.mechanisms.DiscreteGaussian(2.0),
        ["2.0 could mean sigma or its square", "DiscreteGaussian(sigma=2.0)"],
    ),
    "RandomizedResponse": (
        lambda: rz.mechanisms.RandomizedResponse(0.5),
        ["RandomizedResponse(eps=0.5)", "RandomizedResponse(noise_parameter=0.5)"],
    ),
}


@pytest.mark.parametrize("which", POSITIONAL)
def test_a_bare_number_with_two_readings_is_refused(which):
    call, told = POSITIONAL[which]
    with pytest.raises(TypeError) as caught:
        call()
    assert isinstance(caught.value, ArgumentTypeError)
    for part in ("takes no positional arguments", *told):
        assert part in str(caught.value)


def test_gaussian_noise_given_by_mu_is_told_what_to_write():
    with pytest.raises(rz.ArgumentTypeError, match=r"Gaussian\(sigma=…\) or Gdp\(mu=…\)"):
        rz.Gaussian(mu=1)


@pytest.mark.parametrize("value", ["a", ["a"], None])
def test_points_that_are_not_numbers_are_told_so(value):
    with pytest.raises(rz.ArgumentTypeError, match="eps must be a number"):
        rz.gaussian(mu=1.0).delta_bounds(value)


def test_named_arguments_keep_their_signature():
    """Tools that show signatures see names only, and values pass copies unchanged."""
    for made in (rz.gaussian, rz.mechanisms.Gaussian, rz.mechanisms.DiscreteGaussian):
        kinds = {p.kind for p in inspect.signature(made).parameters.values()}
        assert kinds == {inspect.Parameter.KEYWORD_ONLY}
    for value in (rz.gaussian(mu=0.5), rz.mechanisms.Gaussian(sigma=2.0, sensitivity=3.0)):
        assert pickle.loads(pickle.dumps(value)) == copy.deepcopy(value) == value


# ------------------------------------------------------------------ counts


@given(n=st.integers(max_value=-1))
def test_negative_count(n):
    refuses(lambda: n * G, "n", n)
    refuses(lambda: G * n, "n", n)


@pytest.mark.parametrize("n", [1.5, 2.0, "3", None, True, NAN, np.float64(2)])
def test_count_that_is_not_an_integer(n):
    with pytest.raises(TypeError):
        n * G
    with pytest.raises(TypeError):
        G * n


def test_numpy_integers_count():
    assert np.int64(3) * G == 3 * G
    assert G * np.int64(3) == 3 * G


@pytest.mark.parametrize("other", [1, 1.0, None, "L"])
def test_adding_something_else(other):
    with pytest.raises(TypeError):
        G + other
    with pytest.raises(TypeError):
        other + G
    with pytest.raises(TypeError):
        G | other
    with pytest.raises(TypeError):
        G & other


# ------------------------------------------------------------------ atoms


@given(st.integers(1, 5), not_finite)
def test_losses_are_finite(size, bad):
    losses = [0.5] * size + [bad]
    masses = [1 / (size + 1)] * (size + 1)
    refuses(lambda: rz.from_atoms(losses, masses), "losses", bad)


@given(st.integers(1, 5), st.one_of(negative, not_finite))
def test_masses_are_not_negative(size, bad):
    refuses(lambda: rz.from_atoms([0.5] * (size + 1), [1 / size] * size + [bad]), "masses", bad)
    refuses(
        lambda: rz.from_pair([1 / size] * size + [bad], [1 / (size + 1)] * (size + 1)), "p", bad
    )
    refuses(
        lambda: rz.from_pair([1 / (size + 1)] * (size + 1), [1 / size] * size + [bad]), "q", bad
    )


@given(st.floats(1e-8, 0.5), st.booleans())
def test_masses_that_do_not_sum_to_one(off, more):
    total = 0.5 + (0.5 + off if more else 0.5 - off)
    masses = [0.5, 0.5 + off if more else 0.5 - off]
    refuses(lambda: rz.from_atoms([1.0, 2.0], masses), "masses", total)
    refuses(lambda: rz.from_pair(masses, [0.5, 0.5]), "p", total)
    refuses(lambda: rz.from_pair([0.5, 0.5], masses), "q", total)
    refuses(lambda: rz.from_atoms([1.0, 2.0], [0.5, 0.5], mass_at_infinity=off), "masses", 1 + off)


@given(st.floats(-1e-10, 1e-10))
def test_masses_that_nearly_sum_to_one_are_normalised(off):
    p, q = [0.5, 0.5 + off], [0.25, 0.75]
    L = rz.from_pair(p, q)
    law = oracles.Finite.of(p, q)
    for x in (0.5, 1.0, 1.5):
        assert oracles.agrees(L.hockey_stick_bounds(x), law.hockey_stick(x))
    assert L.mass_at_infinity == 0.0
    assert L.mass_at_minus_infinity == 0.0


@given(st.floats(-30.0, -1e-6), st.floats(0.01, 1.0))
def test_losses_too_low_to_be_a_pld(loss, mass):
    """`E e^-Z > 1`: there is no Q."""
    losses, masses = [loss, 0.0], [mass, 1 - mass]
    with pytest.raises(ArgumentError) as caught:
        rz.from_atoms(losses, masses)
    assert "E[e^-Z]" in str(caught.value)
    assert "at most 1" in str(caught.value)


def test_losses_that_just_fit():
    """`E e^-Z` within 1e-12 of 1 denotes 1: nothing at -inf."""
    z = math.log(2)
    low = -math.log(1.5)
    L = rz.from_atoms([z, low], [0.5, 0.5])
    assert L.mass_at_minus_infinity == 0.0
    with pytest.raises(ArgumentError):
        rz.from_atoms([z, low - 1e-9], [0.5, 0.5])
    assert rz.from_atoms([z, low + 1e-9], [0.5, 0.5]).mass_at_minus_infinity > 0.0


@pytest.mark.parametrize(
    ("build", "names"),
    [
        (rz.from_atoms, ("losses", "masses")),
        (rz.from_pair, ("p", "q")),
        (rz.from_tradeoff, ("alphas", "betas")),
        (rz.from_hockey_stick, ("xs", "values")),
    ],
)
def test_empty_ragged_and_unequal_vectors(build, names):
    first, second = names
    refuses(lambda: build([], []), first, [])
    refuses(lambda: build([0.25, 0.75], [1.0]), second, 1)
    refuses(lambda: build([1.0], [0.5, 0.5]), second, 2)
    with pytest.raises(ArgumentError, match=first):
        build([[0.0, 1.0]], [[1.0, 0.0]])
    with pytest.raises(ArgumentError, match=first):
        build(0.5, 0.5)
    with pytest.raises(ArgumentTypeError, match=first):
        build([[0.0], [1.0, 2.0]], [1.0, 0.0])
    with pytest.raises(ArgumentTypeError, match=first):
        build("ab", [1.0, 0.0])
    with pytest.raises(ArgumentTypeError, match=second):
        build([0.25, 0.75], ["a", "b"])
    with pytest.raises(ArgumentTypeError, match=second):
        build([0.25, 0.75], None)


@given(st.permutations([(1.5, 0.25), (-0.25, 0.25), (0.5, 0.25), (0.5, 0.125), (1.5, 0.125)]))
def test_unsorted_and_duplicate_losses_are_merged(atoms):
    losses, masses = zip(*atoms, strict=True)
    assert rz.from_atoms(losses, masses) == rz.from_atoms([-0.25, 0.5, 1.5], [0.25, 0.375, 0.375])


def test_zero_masses_are_dropped():
    L = rz.from_atoms([0.0, 3.0, 1.0], [0.5, 0.0, 0.5])
    assert rz.from_atoms([0.0, 1.0], [0.5, 0.5]) == L
    assert L.epsilon_bounds(0.0).hi <= 1.0 + 1e-12
    assert rz.from_pair([0.5, 0.5, 0.0], [0.25, 0.75, 0.0]) == rz.from_pair(
        [0.5, 0.5], [0.25, 0.75]
    )


def test_inputs_of_many_types():
    expected = rz.from_pair([0.5, 0.5], [0.25, 0.75])
    assert rz.from_pair(np.array([0.5, 0.5]), (0.25, 0.75)) == expected
    assert rz.from_pair(np.array([0.5, 0.5], dtype=np.float32), [0.25, 0.75]) == expected
    assert rz.pure_dp(1) == rz.pure_dp(1.0)
    assert rz.pure_dp(np.float64(0.5)) == rz.pure_dp(0.5)
    assert rz.gaussian(sigma=np.int64(2)) == rz.gaussian(mu=0.5)
    assert rz.gaussian(mu=1.0).delta(1) == rz.gaussian(mu=1.0).delta(1.0)


# ------------------------------------------------------------------ curves


@pytest.mark.parametrize(
    ("xs", "values", "name"),
    [
        ([0.5, 1.0], [0.75, 0.8], "values"),  # not decreasing
        ([0.5, 1.0, 2.0], [0.9, 0.5, 0.4], "values"),  # not convex
        ([0.5, 1.0], [0.25, 0.0], "values"),  # below 1 - x
        ([0.0, 1.0], [1.0, 0.5], "xs"),
        ([-1.0, 1.0], [1.0, 0.5], "xs"),
        ([0.5, INF], [0.75, 0.5], "xs"),
        ([0.5, 1.0], [0.75, -0.1], "values"),
        ([0.5, 1.0], [1.25, 0.5], "values"),
        ([0.5, 0.5], [0.75, 0.5], "xs"),
    ],
)
def test_hockey_sticks_of_the_wrong_shape(xs, values, name):
    with pytest.raises(ArgumentError) as caught:
        rz.from_hockey_stick(xs, values)
    assert name in str(caught.value)
    assert any(character.isdigit() or character == "f" for character in str(caught.value))


@pytest.mark.parametrize(
    ("alphas", "betas", "name"),
    [
        ([0.0, 0.5, 1.0], [0.5, 0.75, 0.0], "betas"),  # not decreasing
        ([0.0, 0.5, 1.0], [0.75, 0.45, 0.0], "betas"),  # not convex
        ([0.0, 0.5, 1.0], [1.0, 0.75, 0.0], "betas"),  # above 1 - alpha
        ([0.0, 1.5], [1.0, 0.0], "alphas"),
        ([-0.5, 1.0], [1.0, 0.0], "alphas"),
        ([0.0, 1.0], [1.5, 0.0], "betas"),
        ([0.0, 1.0], [1.0, -0.5], "betas"),
        ([0.25, 1.0], [0.5, 0.0], "alphas"),  # does not say where it starts
        ([0.0, 0.5], [1.0, 0.25], "betas"),  # does not reach 0
    ],
)
def test_tradeoff_curves_of_the_wrong_shape(alphas, betas, name):
    with pytest.raises(ArgumentError) as caught:
        rz.from_tradeoff(alphas, betas)
    assert name in str(caught.value)
    with pytest.raises(ArgumentError):
        rz.compose_tradeoff((alphas, betas), ([0.0, 1.0], [1.0, 0.0]))
    with pytest.raises(ArgumentError):
        rz.hockey_stick_from_tradeoff(alphas, betas, 1.0)


@given(st.lists(st.floats(0.0, 4.0), min_size=2, max_size=6), st.randoms())
def test_hockey_sticks_that_are_not_convex_are_refused(heights, random):
    """A curve with one value pushed up in the middle of two others."""
    xs = [0.5 + 0.5 * i for i in range(len(heights) + 2)]
    values = [max(1 - 0.25 * x, 0.3) for x in xs]
    where = random.randrange(1, len(xs) - 1)
    values[where] = values[where - 1] + 1e-3 + heights[0] * 1e-3
    with pytest.raises(ArgumentError, match="values"):
        rz.from_hockey_stick(xs, values)


@pytest.mark.parametrize("x", [NAN, INF, 0.0, -1.0])
def test_conversions_check_their_points(x):
    refuses(lambda: rz.hockey_stick_from_tradeoff([0.0, 1.0], [1.0, 0.0], x), "x", x)


@pytest.mark.parametrize("alpha", [NAN, INF, -0.5, 1.5])
def test_conversions_check_their_levels(alpha):
    refuses(lambda: rz.tradeoff_from_hockey_stick([1.0], [0.25], alpha), "alpha", alpha)


# ------------------------------------------------------------------ lattice, kernel, accuracy


def test_lattice_of_nothing():
    refuses(lambda: rz.supremum([]), "plds", [])
    refuses(lambda: rz.infimum([]), "plds", [])


@pytest.mark.parametrize("bad", [1.0, None, "G"])
def test_lattice_of_something_else(bad):
    for call in (rz.supremum, rz.infimum):
        with pytest.raises(ArgumentTypeError):
            call([G, bad])
    with pytest.raises(ArgumentTypeError):
        rz.kernel(bad, G)
    with pytest.raises(ArgumentTypeError):
        rz.compare(G, bad)


@given(st.one_of(negative, st.just(0.0), not_finite))
def test_accuracy_is_positive(accuracy):
    refuses(lambda: rz.supremum([G, rz.pure_dp(0.5)], accuracy=accuracy), "accuracy", accuracy)
    refuses(lambda: rz.infimum([G, rz.pure_dp(0.5)], accuracy=accuracy), "accuracy", accuracy)


@pytest.mark.parametrize("method", ["pair", "hockey_stick_points", "tradeoff_points"])
def test_only_finite_plds_have_points(method):
    with pytest.raises(ArgumentError, match=method):
        getattr(G, method)()


# ------------------------------------------------------------------ subnormal and huge

EXTREME = [5e-324, 1e-310, 2.3e-308, 1e-200, 1e-17, 1e17, 1e200, 1.7e308]


@pytest.mark.parametrize("value", EXTREME)
def test_extreme_parameters_work_or_say_why(value):
    """Subnormal and huge: an error with name and value, or an interval with the truth."""
    builders = {
        "mu": (lambda: rz.gaussian(mu=value), lambda x: oracles.gaussian(value, x)),
        "eps": (
            lambda: rz.pure_dp(value),
            lambda x: sum(max(p - x * q, 0) for p, q in oracles.approximate_dp(value).pairs),
        ),
    }
    for name, (build, truth) in builders.items():
        try:
            L = build()
        except ArgumentError as error:
            assert name in str(error)
            assert repr(value) in str(error)
            continue
        with mp.workdps(450):  # digits enough for 1 - e^-eps
            for t in (0.0, 1.0):
                bounds = L.delta_bounds(t)
                assert bounds.hi <= 1
                assert oracles.agrees(bounds, truth(mp.exp(t)))


@pytest.mark.parametrize("value", [Fraction(1, 10**400), Fraction(-1, 10**400)])
def test_numbers_that_round_to_zero(value):
    """What is charged as 0 must be 0."""
    for build in (rz.pure_dp, rz.PureDp, rz.PureFilter):
        with pytest.raises(ArgumentError, match="eps must be 0 or large enough for a float"):
            build(value)


@pytest.mark.parametrize("text", ["1e-400", "-1e-400", "0." + "0" * 400 + "1", "0.5E-999"])
def test_numbers_in_json_that_round_to_zero(text):
    with pytest.raises(ArgumentError, match="must be 0 or large enough for a float, got '"):
        rz.mechanisms.from_json(f'{{"kind": "pure_dp", "eps": {text}}}')


@pytest.mark.parametrize("text", ["0", "0.0", "0e5", "0.000E-999", "0e-400"])
def test_zeros_in_json(text):
    assert rz.mechanisms.from_json(f'{{"kind": "pure_dp", "eps": {text}}}').eps == 0.0  # type: ignore[attr-defined]


@pytest.mark.parametrize("value", EXTREME)
def test_extreme_arguments_work_or_say_why(value):
    for L, law in (
        (G, oracles.Law(variance=1)),
        (rz.pure_dp(0.5), oracles.Law(oracles.approximate_dp(0.5))),
        (rz.laplace(scale=2.0), oracles.Law(laplaces=((0.5, 1),))),
        (rz.from_pair([0.5, 0.5], [0.25, 0.75]), oracles.Law(oracles.Finite.of([1, 1], [1, 3]))),
    ):
        assert oracles.agrees(L.hockey_stick_bounds(value), law.hockey_stick(value))
        if value < 1e5:
            assert oracles.agrees(L.delta_bounds(value), law.delta(value))
            assert oracles.agrees(L.delta_bounds(-value), law.delta(-value))
        else:
            assert L.delta_bounds(value).lo == 0.0
            assert L.delta_bounds(-value).hi == 1.0
        if value <= 1:
            epsilon = L.epsilon_bounds(value)
            assert epsilon.hi < INF or value < 1e-300
            assert epsilon.hi == INF or law.delta(epsilon.hi) <= mp.mpf(value)
            assert L.tradeoff_bounds(value).lo <= 1 - value


@pytest.mark.parametrize("tiny", [5e-324, 1e-310])
def test_subnormal_masses_work_or_say_why(tiny):
    for build, law in (
        (lambda: rz.from_pair([tiny, 1.0], [0.5, 0.5]), ([tiny, 1.0], [0.5, 0.5])),
        (lambda: rz.from_pair([0.5, 0.5], [tiny, 1.0]), ([0.5, 0.5], [tiny, 1.0])),
    ):
        try:
            L = build()
        except ArgumentError as error:
            assert repr(tiny) in str(error)
            continue
        exact = oracles.Finite.of(*law)
        for x in (1e-300, 0.5, 3.0):
            assert oracles.agrees(L.hockey_stick_bounds(x), exact.hockey_stick(x))


@given(st.floats(700.0, 1e300))
def test_huge_losses_work_or_say_why(loss):
    """A loss so high that `q` is no float any more."""
    try:
        L = rz.from_atoms([0.0, loss], [0.5, 0.5])
    except ArgumentError as error:
        assert repr(loss) in str(error)
    else:
        assert L.delta_bounds(1.0).hi >= 0.5
        assert L.mass_at_infinity <= 0.5


def test_errors_are_the_builtin_ones_too():
    assert issubclass(ArgumentError, ValueError)
    assert issubclass(ArgumentTypeError, TypeError)
    assert issubclass(ArgumentError, ResiduaError)
    assert issubclass(ArgumentTypeError, ResiduaError)


# ------------------------------------------------------------------ mixtures and bounded range

MIXTURE_NON_NEGATIVE: dict[str, tuple[Callable[[float], object], str]] = {
    "subsampled sensitivity": (
        lambda v: rz.subsampled_gaussian(1.0, 0.5, sensitivity=v),
        "sensitivity",
    ),
    "bounded_range eps": (rz.bounded_range, "eps"),
}
MIXTURE_POSITIVE: dict[str, tuple[Callable[[float], object], str]] = {
    "subsampled sigma": (lambda v: rz.subsampled_gaussian(v, 0.5), "sigma"),
    "mixture sigma": (lambda v: rz.mixture_of_gaussians(v, [0.0, 1.0], [0.5, 0.5]), "sigma"),
}
MIXTURE_PROBABILITIES: dict[str, tuple[Callable[[float], object], str]] = {
    "subsampled rate": (lambda v: rz.subsampled_gaussian(1.0, v), "sampling_rate"),
    "bounded_range atomic": (lambda v: rz.bounded_range(0.5, atomic=v), "atomic"),
}


@pytest.mark.parametrize("where", MIXTURE_NON_NEGATIVE)
@given(value=st.one_of(negative, not_finite))
def test_mixtures_refuse_negative_or_infinite_parameters(where, value):
    build, name = MIXTURE_NON_NEGATIVE[where]
    refuses(lambda: build(value), name, value)


@pytest.mark.parametrize("where", MIXTURE_POSITIVE)
@given(value=st.one_of(negative, st.just(0.0), not_finite))
def test_mixtures_need_positive_noise(where, value):
    build, name = MIXTURE_POSITIVE[where]
    refuses(lambda: build(value), name, value)


@pytest.mark.parametrize("where", MIXTURE_PROBABILITIES)
@given(value=not_probability)
def test_mixtures_refuse_weights_outside_the_unit_interval(where, value):
    build, name = MIXTURE_PROBABILITIES[where]
    refuses(lambda: build(value), name, value)


@pytest.mark.parametrize(
    "where", [*MIXTURE_NON_NEGATIVE, *MIXTURE_POSITIVE, *MIXTURE_PROBABILITIES]
)
@given(value=not_numbers)
def test_mixtures_of_things_that_are_not_numbers(where, value):
    build, name = (MIXTURE_NON_NEGATIVE | MIXTURE_POSITIVE | MIXTURE_PROBABILITIES)[where]
    refuses(lambda: build(value), name, value, ArgumentTypeError)


@pytest.mark.parametrize("direction", ["Remove", "both", "", "remove "])
def test_unknown_directions(direction):
    refuses(lambda: rz.subsampled_gaussian(1.0, 0.5, direction), "direction", direction)
    refuses(
        lambda: rz.mixture_of_gaussians(1.0, [0.0, 1.0], [0.5, 0.5], direction),
        "direction",
        direction,
    )


def test_a_mixture_has_no_replace():
    with pytest.raises(ArgumentError, match="direction"):
        rz.mixture_of_gaussians(1.0, [0.0, 1.0], [0.5, 0.5], "replace")


@pytest.mark.parametrize("direction", [None, 1, True, ["add"]])
def test_directions_that_are_not_strings(direction):
    with pytest.raises(ResiduaError, match="direction"):
        rz.subsampled_gaussian(1.0, 0.5, direction)


@given(st.floats(1e-8, 0.5), st.booleans())
def test_probabilities_that_do_not_sum_to_one(off, more):
    weights = [0.25, 0.75 + off / 2 if more else 0.75 - off / 2]
    refuses(
        lambda: rz.mixture_of_gaussians(1.0, [0.0, 1.0], weights), "probabilities", sum(weights)
    )


@given(st.integers(1, 4), st.one_of(negative, not_finite))
def test_sensitivities_and_probabilities_are_not_negative(size, bad):
    weights = [1 / (size + 1)] * (size + 1)
    refuses(
        lambda: rz.mixture_of_gaussians(1.0, [0.5] * size + [bad], weights), "sensitivities", bad
    )
    refuses(
        lambda: rz.mixture_of_gaussians(1.0, [0.5] * (size + 1), [1 / size] * size + [bad]),
        "probabilities",
        bad,
    )


def test_empty_ragged_and_unequal_mixtures():
    def build(shifts: object, weights: object) -> object:
        return rz.mixture_of_gaussians(1.0, shifts, weights)

    refuses(lambda: build([], []), "sensitivities", [])
    refuses(lambda: build([0.0, 1.0], [1.0]), "probabilities", 1)
    refuses(lambda: build([1.0], [0.5, 0.5]), "probabilities", 2)
    with pytest.raises(ArgumentError, match="sensitivities"):
        build([[0.0, 1.0]], [[0.5, 0.5]])
    with pytest.raises(ArgumentError, match="sensitivities"):
        build(0.5, 1.0)
    with pytest.raises(ArgumentTypeError, match="sensitivities"):
        build("ab", [0.5, 0.5])
    with pytest.raises(ArgumentTypeError, match="probabilities"):
        build([0.0, 1.0], ["a", "b"])
    with pytest.raises(ArgumentTypeError, match="probabilities"):
        build([0.0, 1.0], None)


@pytest.mark.parametrize("ratio", [1e-13, 5e-324, 21.0, 1e300])
def test_noise_out_of_range(ratio):
    for call in (
        lambda: rz.subsampled_gaussian(1.0, 0.5, sensitivity=ratio),
        lambda: rz.mixture_of_gaussians(1.0, [0.0, ratio], [0.25, 0.75]),
    ):
        refuses(call, "sensitivity / sigma", ratio)


@pytest.mark.parametrize("rate", [5e-324, 1e-101])
def test_rates_too_small(rate):
    refuses(lambda: rz.subsampled_gaussian(1.0, rate), "sampling_rate", rate)


@pytest.mark.parametrize("eps", [5e-324, 1e-310, 600.5, 1e300])
def test_ranges_out_of_range(eps):
    refuses(lambda: rz.bounded_range(eps), "eps", eps)


@given(st.floats(-1e-10, 1e-10))
def test_probabilities_that_nearly_sum_to_one(off):
    """The largest sensitivity takes what the others leave."""
    made = rz.mixture_of_gaussians(2.0, [0.0, 1.0], [0.75, 0.25 + off])
    assert made == rz.subsampled_gaussian(2.0, 0.25)


MASKED = np.ma.masked_array([0.5, 0.3, 0.2], mask=[False, True, False])


@pytest.mark.parametrize(
    "make",
    [
        lambda: rz.from_pair(MASKED, [0.5, 0.3, 0.2]),
        lambda: rz.gaussian(mu=1.0).delta(MASKED),
        lambda: rz.mechanisms.FromAtoms(MASKED, MASKED),
        lambda: rz.gaussian(mu=np.ma.masked),
        lambda: rz.pure_dp(np.ma.masked_array(1.0, mask=True)),
    ],
)
def test_masked_entries_are_refused(make):
    with pytest.raises(rz.ArgumentError, match="masked"):
        make()
    assert rz.gaussian(mu=1.0).delta(MASKED[:1])[0] == rz.gaussian(mu=1.0).delta(0.5)
