"""Every event of dp_accounting, under every relation: its loss, or a refusal that says why."""

import math
from typing import Any

import mpmath as mp
import pytest

import residua as rz
from residua.mechanisms.relations import RELATIONS

pytestmark = pytest.mark.needs("dp_accounting")


@pytest.fixture(scope="module")
def events() -> Any:
    from dp_accounting import dp_event

    return dp_event


def one_of_each(e: Any) -> dict[str, tuple[Any, set[str]]]:
    """Each class of event, and the relations under which it has a loss."""
    everywhere, linear = set(RELATIONS), {"add-remove", "zero-out"}
    noise = e.GaussianDpEvent(2.0)
    made = [
        (e.NoOpDpEvent(), everywhere),
        (e.NonPrivateDpEvent(), everywhere),
        (e.UnsupportedDpEvent(), set()),
        (noise, everywhere),
        (e.LaplaceDpEvent(2.0), everywhere),
        (e.DiscreteLaplaceDpEvent(0.3, 2), everywhere),
        (e.RandomizedResponseDpEvent(0.3, 4), {"replace-one", "zero-out"}),
        (e.SelfComposedDpEvent(noise, 3), everywhere),
        (e.ComposedDpEvent([noise, e.LaplaceDpEvent(2.0)]), everywhere),
        (e.PoissonSampledDpEvent(0.1, noise), everywhere),
        (e.SampledWithReplacementDpEvent(100, 10, noise), set()),
        (e.SampledWithoutReplacementDpEvent(100, 10, e.LaplaceDpEvent(2.0)), {"replace-one"}),
        (e.SingleEpochTreeAggregationDpEvent(4.0, [7, 8]), {"zero-out"}),
        (e.RepeatAndSelectDpEvent(noise, 3.0, 1.0), everywhere),
        (e.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0, 2.0], [0.2, 0.6, 0.2]), linear),
        (e.ZCDpEvent(0.1, 0.2), everywhere),
        (e.TruncatedSubsampledGaussianDpEvent(4, 0.5, 2, 1.0), {"add-remove"}),
    ]
    return {type(event).__name__: (event, known) for event, known in made}


def test_no_event_of_the_library_is_left_out(events: Any) -> None:
    def below(cls: type) -> set[type]:
        return {cls}.union(*(below(sub) for sub in cls.__subclasses__()))

    theirs = {cls.__name__ for cls in below(events.DpEvent) if cls.__module__ == events.__name__}
    assert theirs - {"DpEvent"} == set(one_of_each(events))


def test_each_event_has_a_loss_or_is_refused_by_name(events: Any) -> None:
    for name, (event, known) in one_of_each(events).items():
        for relation in RELATIONS:
            if relation in known:
                made = rz.interop.from_dp_event(event, relation)
                assert relation in made.supported, name
                assert rz.mechanisms.from_json(made.to_json()) == made
                assert made.relation_or_first(relation) == relation
            else:
                with pytest.raises(rz.UnsupportedError, match=name) as caught:
                    rz.interop.from_dp_event(event, relation)
                assert caught.value.culprit == event


def test_what_a_record_contributes_is_doubled_by_an_exchange(events: Any) -> None:
    """Norms are at most 1, so one record for another moves the sum by 2."""
    for event, inside in [
        (events.GaussianDpEvent(3.0), rz.gaussian(sigma=3.0, sensitivity=2.0)),
        (events.LaplaceDpEvent(3.0), rz.laplace(3.0, sensitivity=2.0)),
    ]:
        assert rz.interop.from_dp_event(event, "replace-one").pld(relation="replace-one") == inside
        assert rz.interop.from_dp_event(event).pld() <= inside
    sampled = events.PoissonSampledDpEvent(0.25, events.GaussianDpEvent(3.0))
    assert rz.interop.from_dp_event(sampled, "replace-one").pld(
        relation="replace-one"
    ) == rz.subsampled_gaussian(3.0, 0.25, "replace")


def test_relations_by_either_name(events: Any) -> None:
    from dp_accounting import NeighboringRelation

    names = {"ADD_OR_REMOVE_ONE": "add-remove", "REPLACE_ONE": "replace-one"}
    names["REPLACE_SPECIAL"] = "zero-out"
    for theirs in NeighboringRelation:
        event = events.GaussianDpEvent(1.5)
        ours = rz.interop.from_dp_event(event, names[theirs.name])
        assert rz.interop.from_dp_event(event, theirs) == ours
    with pytest.raises(rz.ArgumentError, match="relation must be one of"):
        rz.interop.from_dp_event(events.NoOpDpEvent(), "bounded")


@pytest.mark.parametrize("bad", [math.nan, -1.0, math.inf, "1", None])
def test_parameters_that_cannot_be(events: Any, bad: Any) -> None:
    for event in (
        events.GaussianDpEvent(bad),
        events.LaplaceDpEvent(bad),
        events.PoissonSampledDpEvent(0.1, events.GaussianDpEvent(bad)),
        events.PoissonSampledDpEvent(bad, events.GaussianDpEvent(1.0)),
        events.DiscreteLaplaceDpEvent(bad, 1),
        events.ZCDpEvent(bad),
        events.SelfComposedDpEvent(events.GaussianDpEvent(1.0), bad),
    ):
        with pytest.raises((rz.ArgumentError, rz.ArgumentTypeError)):
            rz.interop.from_dp_event(event)


def test_a_stranger_with_a_known_name_is_a_stranger(events: Any) -> None:
    class GaussianDpEvent(events.DpEvent):
        noise_multiplier = 1.0

    nested = events.ComposedDpEvent([events.NoOpDpEvent(), GaussianDpEvent()])
    with pytest.raises(rz.UnsupportedError, match="GaussianDpEvent"):
        rz.interop.from_dp_event(nested)
    with pytest.raises(rz.ArgumentTypeError, match="event must be a DpEvent"):
        rz.interop.from_dp_event(rz.gaussian(mu=1.0))


def test_gaussians_on_one_sample_are_one_gaussian(events: Any) -> None:
    """`sigma = (Σ n σ^-2)^-1/2`, from below and by at most an ulp."""
    inside = events.ComposedDpEvent(
        [
            events.GaussianDpEvent(1.1),
            events.SelfComposedDpEvent(events.GaussianDpEvent(2.3), 3),
            events.NoOpDpEvent(),
        ]
    )
    made = rz.interop.from_dp_event(events.PoissonSampledDpEvent(0.1, inside))
    assert isinstance(made, rz.mechanisms.SubsampledGaussian)
    with mp.workdps(50):
        exact = (mp.mpf(1.1) ** -2 + 3 * mp.mpf(2.3) ** -2) ** mp.mpf(-0.5)
        assert mp.mpf(made.sigma) <= exact < mp.mpf(math.nextafter(made.sigma, math.inf))


def test_only_noise_runs_on_a_sample(events: Any) -> None:
    for inner in (
        events.ZCDpEvent(0.1),
        events.RandomizedResponseDpEvent(0.1, 2),
        events.PoissonSampledDpEvent(0.5, events.GaussianDpEvent(1.0)),
    ):
        with pytest.raises(rz.UnsupportedError, match="on a sample only") as caught:
            rz.interop.from_dp_event(
                events.PoissonSampledDpEvent(0.1, events.ComposedDpEvent([inner]))
            )
        assert caught.value.culprit == inner


def test_a_blanked_response_is_a_bucket_at_random(events: Any) -> None:
    """The truth at `1 - p + p/k` against `1/k`: enclosed by exact rationals."""
    for p, k in ((0.3, 4), (0.7, 2), (0.05, 20)):
        made = rz.interop.from_dp_event(events.RandomizedResponseDpEvent(p, k), "zero-out")
        truth = [1 - mp.mpf(p) + mp.mpf(p) / k, mp.mpf(p) * (k - 1) / k]
        blank = [mp.mpf(1) / k, mp.mpf(k - 1) / k]
        for x in (0.2, 0.9, 1.0, 1.7, 3.0):
            for direction, (a, b) in {"remove": (truth, blank), "add": (blank, truth)}.items():
                exact = sum(max(s - x * t, mp.mpf(0)) for s, t in zip(a, b, strict=True))
                bounds = made.pld(direction, "zero-out").hockey_stick_bounds(x)
                assert exact <= bounds.hi <= exact + 1e-12


def test_discrete_laplace_by_its_parameter(events: Any) -> None:
    """`e^-a|x|`, shifted by the sensitivity, summed in mpmath."""
    a, shift = 0.3, 2
    made = rz.interop.from_dp_event(events.DiscreteLaplaceDpEvent(a, shift))
    with mp.workdps(30):
        mass = mp.tanh(mp.mpf(a) / 2)
        for eps in (0.0, 0.2, 0.45, 0.59):
            exact = mp.mpf(0)
            for x in range(-300, 300):
                p, q = (
                    mass * mp.exp(-mp.mpf(a) * abs(x)),
                    mass * mp.exp(-mp.mpf(a) * abs(x - shift)),
                )
                exact += max(p - mp.exp(mp.mpf(eps)) * q, mp.mpf(0))
            hi = made.pld().delta(eps)
            assert exact <= hi <= exact * (1 + mp.mpf("1e-9")) + mp.mpf("1e-12")


def test_a_tree_is_as_many_gaussians_as_it_is_deep(events: Any) -> None:
    for steps, depth in ((1, 1), (2, 2), (3, 2), (4, 3), ([7, 8], 4), ([1, 1], 1)):
        event = events.SingleEpochTreeAggregationDpEvent(5.0, steps)
        made = rz.interop.from_dp_event(event, "zero-out")
        assert made.pld(relation="zero-out") == depth * rz.gaussian(sigma=5.0)


def test_a_sample_that_is_cut(events: Any) -> None:
    """Two records on either side of 0, cut to one: integrated in mpmath, both ways."""
    rate, sigma = 0.4, 1.5
    made = rz.interop.from_dp_event(events.TruncatedSubsampledGaussianDpEvent(2, rate, 1, sigma))
    q = mp.mpf(rate)
    alone = {0: 1 - q, -1: q}
    joined = {0: (1 - q) ** 2, -1: q * (1 - q) + q * q / 2, 1: q * (1 - q) + q * q / 2}
    uncut = rz.subsampled_gaussian(sigma, rate)
    for p, other, direction in ((joined, alone, "remove"), (alone, joined, "add")):
        for x in (0.8, 1.0, 1.3):

            def density(weights: dict[int, Any], y: Any) -> Any:
                return sum(w * mp.npdf(y, a, sigma) for a, w in weights.items())

            def payoff(y: Any, p: Any = p, other: Any = other, x: float = x) -> Any:
                return max(density(p, y) - x * density(other, y), mp.mpf(0))

            exact = mp.quad(payoff, mp.linspace(-12, 12, 25), maxdegree=4)
            assert exact - mp.mpf("1e-6") <= made.pld(direction).hockey_stick(x)
    # Uncut, one record more moves the sum by 1; where it displaces another, that is not enough.
    assert uncut <= made.pld()
    empty = events.TruncatedSubsampledGaussianDpEvent(0, rate, 3, sigma)
    assert rz.interop.from_dp_event(empty).pld() == uncut, "its neighbour has a record"
    whole = events.TruncatedSubsampledGaussianDpEvent(2, rate, 3, sigma)
    assert rz.interop.from_dp_event(whole).pld() == uncut
    for relation, direction in (("replace-one", "replace"), ("zero-out", "remove")):
        loss = rz.interop.from_dp_event(whole, relation).pld(relation=relation)
        assert loss == rz.subsampled_gaussian(sigma, rate, direction)


@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, 3.0, math.inf])
def test_repeating_and_selecting(events: Any, shape: float) -> None:
    """The theorems of Papernot and Steinke, evaluated in mpmath at the orders of the answer."""
    mean, sigma = 8.0, 5.0
    event = events.RepeatAndSelectDpEvent(events.GaussianDpEvent(sigma), mean, shape)
    made = rz.interop.from_dp_event(event)
    assert isinstance(made, rz.mechanisms.Rdp)
    with mp.workdps(40):
        cost = [mp.mpf(order) / (2 * mp.mpf(sigma) ** 2) for order in made.orders]
        if shape < math.inf:
            gamma = mp.findroot(lambda g: _mean(g, shape) - mean, (0.01, 0.5), "anderson")
            shared = (1 + mp.mpf(shape)) * min(
                (1 - 1 / mp.mpf(a)) * c - mp.log(gamma) / mp.mpf(a)
                for a, c in zip(made.orders, cost, strict=True)
            )
        for order, eps, single in zip(made.orders, made.epsilons, cost, strict=True):
            if shape == math.inf:
                at = mp.log(1 + 1 / (mp.mpf(order) - 1))
                shared = mean * _gaussian_delta(at, 1 / mp.mpf(sigma))
            exact = single + shared + mp.log(mean) / (mp.mpf(order) - 1)
            assert exact <= eps <= exact * (1 + mp.mpf("1e-9"))


def _mean(gamma: Any, shape: float) -> Any:
    if shape == 0.0:
        return (1 / gamma - 1) / mp.log(1 / gamma)
    return shape * (1 - gamma) / (gamma * (1 - gamma**shape))


def _gaussian_delta(eps: Any, mu: Any) -> Any:
    return mp.ncdf(mu / 2 - eps / mu) - mp.exp(eps) * mp.ncdf(-mu / 2 - eps / mu)


def test_a_composition_of_no_list_is_refused(events: Any) -> None:
    for given in (5, None, "ab"):
        with pytest.raises(rz.ArgumentTypeError, match="events must be a list"):
            rz.interop.from_dp_event(events.ComposedDpEvent(given))


def test_what_is_nested_too_deeply_is_refused(events: Any) -> None:
    event = events.GaussianDpEvent(1.0)
    for _ in range(20_000):
        event = events.ComposedDpEvent([event])
    with pytest.raises(rz.UnsupportedError, match="nested too deeply"):
        rz.interop.from_dp_event(event)
