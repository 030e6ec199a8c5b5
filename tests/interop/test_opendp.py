"""OpenDP's measurements as queries, with OpenDP itself."""

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

import residua as rz

from_opendp = pytest.importorskip("residua.interop.opendp").from_opendp


@pytest.fixture(scope="module")
def dp() -> Any:
    import opendp.prelude as prelude

    prelude.enable_features("contrib", "honest-but-curious")
    return prelude


@pytest.fixture(scope="module")
def space(dp: Any) -> Any:
    return dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()


def test_each_measure_is_the_mechanism_it_says(dp: Any, space: Any) -> None:
    mechanisms = rz.mechanisms
    counted = space >> dp.t.then_count()
    laplace, gaussian = counted >> dp.m.then_laplace(2.0), counted >> dp.m.then_gaussian(2.0)
    relation = "add-remove"
    assert from_opendp(laplace) == mechanisms.PureDp(0.5, relation=relation)
    assert from_opendp(gaussian) == mechanisms.Zcdp(0.125, relation=relation)
    approximate = dp.c.make_approximate
    assert from_opendp(approximate(laplace)) == mechanisms.ApproximateDp(0.5, 0.0, relation)
    assert from_opendp(approximate(gaussian)) == mechanisms.Zcdp(0.125, relation=relation)
    profile = dp.c.make_zCDP_to_approxDP(gaussian)
    fixed = dp.c.make_fix_delta(profile, 1e-6)
    eps, delta = fixed.map(1)
    assert from_opendp(fixed) == mechanisms.ApproximateDp(eps, delta, relation)


def test_relations_follow_from_the_metric(dp: Any, space: Any) -> None:
    measured = space >> dp.t.then_count() >> dp.m.then_laplace(2.0)
    assert from_opendp(measured, relation="replace-one") == rz.mechanisms.PureDp(
        1.0, relation="replace-one"
    )
    assert from_opendp(measured, 3) == rz.mechanisms.PureDp(1.5, relation="add-remove")
    with pytest.raises(rz.ArgumentError, match="d_in must be at least 2 under replace-one"):
        from_opendp(measured, 1, "replace-one")
    with pytest.raises(rz.UnsupportedError, match="relation must be add-remove or replace-one"):
        from_opendp(measured, relation="zero-out")
    sized = dp.vector_domain(dp.atom_domain(T=int), size=10), dp.change_one_distance()
    exchanged = dp.m.make_user_measurement(
        *sized, dp.max_divergence(), lambda data: 0, lambda d_in: 0.5 * d_in, TO=int
    )
    assert from_opendp(exchanged) == rz.mechanisms.PureDp(0.5, relation="replace-one")
    assert from_opendp(exchanged, relation="zero-out").supported == ("zero-out",)
    with pytest.raises(rz.UnsupportedError, match="replace-one or zero-out"):
        from_opendp(exchanged, relation="add-remove")


def test_a_fixed_number_of_records_is_public(dp: Any) -> None:
    """Their maps charge nothing for a distance of 1, which no two data sets of one size have."""
    elements = dp.atom_domain(bounds=(0, 10))
    for metric in (dp.symmetric_distance(), dp.insert_delete_distance()):
        sized = dp.vector_domain(elements, size=200), metric
        total = sized >> dp.t.then_sum() >> dp.m.then_laplace(20.0)
        assert total.map(1) == 0.0, "what one record more or less would have been charged"
        assert from_opendp(total) == rz.mechanisms.PureDp(0.5, relation="replace-one")
        assert from_opendp(total, 4, "replace-one").eps == 1.0
        with pytest.raises(rz.UnsupportedError, match="makes the number of records public"):
            from_opendp(total, relation="add-remove")
        with pytest.raises(rz.ArgumentError, match="d_in must be at least 2 under replace-one"):
            from_opendp(total, 1)
    # A size that every data set is cut or filled up to is one of the output.
    free = dp.vector_domain(elements), dp.symmetric_distance()
    resized = (
        free >> dp.t.then_resize(size=200, constant=0) >> dp.t.then_sum() >> dp.m.then_laplace(20.0)
    )
    assert from_opendp(resized) == rz.mechanisms.PureDp(0.5, relation="add-remove")


def test_other_domains_that_fix_sizes_are_known_by_what_they_print(dp: Any) -> None:
    """As OpenDP 0.16 writes them: margins of a frame may make sizes public, and do not show it."""

    def measured(written: str, metric: Any) -> Any:
        domain = dp.user_domain(written, lambda _: True)
        return dp.m.make_user_measurement(
            domain, metric, dp.max_divergence(), lambda data: 0, lambda d_in: 0.0, TO=int
        )

    own = dp.user_distance("FrameDistance(SymmetricDistance())")
    array = (
        "NPArray2Domain(origin=[0. 0.], norm=1.0, p=2, size=100, num_columns=2, nan=True, T=f64)"
    )
    for metric in (dp.symmetric_distance(), own):
        fixed = measured(array, metric)
        with pytest.raises(rz.UnsupportedError, match="makes the number of records public"):
            from_opendp(fixed, 1, "add-remove")
        assert from_opendp(fixed, 2, "replace-one").supported == ("replace-one",)
        for margins in ('a: i64, g: str; margins=[{col("g")}]', "a: i64; margins=[{}]"):
            frame = measured(f"FrameDomain({margins})", metric)
            for relation in ("add-remove", "replace-one"):
                with pytest.raises(rz.UnsupportedError, match="must not be on a frame with margin"):
                    from_opendp(frame, 2, relation)


def test_a_metric_on_numbers_says_nothing_of_neighbours(dp: Any) -> None:
    number = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    measured = number >> dp.m.then_laplace(2.0)
    for given in ({}, {"d_in": 1.0}, {"relation": "add-remove"}):
        with pytest.raises(rz.UnsupportedError, match="relation and d_in must be given"):
            from_opendp(measured, **given)
    assert from_opendp(measured, 3.0, "add-remove") == rz.mechanisms.PureDp(
        1.5, relation="add-remove"
    )


def test_a_profile_is_a_curve_in_both_directions(dp: Any, space: Any) -> None:
    """Never above the profile at its own points, never below the noise that was really added."""
    gaussian = space >> dp.t.then_count() >> dp.m.then_gaussian(2.0)
    measured = dp.c.make_zCDP_to_approxDP(gaussian)
    made, profile = from_opendp(measured), measured.map(1)
    truth = rz.gaussian(sigma=2.0)
    loss = made.pld()
    assert truth <= loss and loss.is_symmetric
    for eps in np.linspace(0.0, 3.0, 13):
        assert truth.delta(eps) <= loss.delta(eps) <= profile.delta(float(eps)) * 1.02
    assert rz.mechanisms.from_json(made.to_json()) == made


def test_a_profile_with_a_floor_has_it_at_infinity(dp: Any, space: Any) -> None:
    def measured(delta: Any) -> Any:
        return dp.m.make_user_measurement(
            *space,
            dp.smoothed_max_divergence(),
            function=lambda data: 0,
            privacy_map=lambda d_in: dp.new_privacy_profile(lambda eps: delta(eps / d_in)).curve,
            TO=int,
        )

    flat = from_opendp(measured(lambda eps: 1e-5)).pld()
    assert 1e-5 <= flat.delta(3.0) <= 1e-5 + 1e-14
    pure = from_opendp(measured(lambda eps: 0.0 if eps >= 0.5 else 0.3)).pld()
    assert 0.5 <= pure.epsilon(1e-12) <= 0.5 + 1e-8
    with pytest.raises(rz.ArgumentError, match="privacy profile must fall below 1"):
        from_opendp(measured(lambda eps: 1.0))


def test_orders_of_a_renyi_curve(dp: Any, space: Any) -> None:
    measured = dp.m.make_user_measurement(
        *space,
        dp.renyi_divergence(),
        function=lambda data: 0,
        privacy_map=lambda d_in: lambda alpha: 0.1 * d_in * alpha,
        TO=int,
    )
    made = from_opendp(measured)
    assert isinstance(made, rz.mechanisms.Rdp)
    assert np.allclose(made.epsilons, 0.1 * np.array(made.orders), rtol=1e-12)


def test_what_is_unclear_is_refused(dp: Any, space: Any) -> None:
    own = dp.m.make_user_measurement(
        *space, dp.user_divergence("mine"), lambda data: 0, lambda d_in: 1.0, TO=int
    )
    with pytest.raises(rz.UnsupportedError, match="measure with a proven loss, got mine") as caught:
        from_opendp(own)
    assert caught.value.culprit is own
    for stranger in (space >> dp.t.then_count(), rz.laplace(2.0), None):
        with pytest.raises(rz.ArgumentTypeError, match="must be an OpenDP Measurement"):
            from_opendp(stranger)


def test_admitted_before_it_runs(dp: Any, space: Any) -> None:
    """The order that a guard keeps: ask, and only then run."""
    budget, answers = rz.BasicFilter(1.0, 1e-6), []
    measured = space >> dp.t.then_count() >> dp.m.then_laplace(2.5)
    while budget.request(from_opendp(measured)).admitted:
        answers.append(measured([1, 2, 3]))
    assert len(answers) == 2 and budget.remaining.eps == pytest.approx(0.2)


def made(dp: Any, space: Any, measure: Any, map: Any) -> Any:
    return dp.m.make_user_measurement(*space, measure, lambda data: 0, map, TO=int)


def failing(*_: Any) -> Any:
    raise ValueError("the map broke")


def test_maps_that_fail_or_make_no_sense_are_refused(dp: Any, space: Any) -> None:
    pure, renyi, smoothed = (
        dp.max_divergence(), dp.renyi_divergence(), dp.smoothed_max_divergence(),
    )  # fmt: skip

    def profile(delta: Any) -> Any:
        return made(dp, space, smoothed, lambda d_in: dp.new_privacy_profile(delta).curve)

    for measurement, said in [
        (made(dp, space, pure, failing), "d_in = 1, got 'ValueError: the map broke'"),
        (made(dp, space, pure, lambda d_in: None), "d_in = 1, got"),
        (made(dp, space, pure, lambda d_in: math.inf), "finite loss, got inf"),
        (made(dp, space, pure, lambda d_in: math.nan), "got nan"),
        (made(dp, space, pure, lambda d_in: -1.0), "got -1.0"),
        (made(dp, space, dp.approximate(pure), lambda d_in: (math.inf, 0.0)), "got inf"),
        (made(dp, space, dp.approximate(pure), lambda d_in: (0.1, 2.0)), "delta must be in"),
        (made(dp, space, renyi, lambda d_in: failing), "the map broke"),
        (made(dp, space, renyi, lambda d_in: lambda alpha: -1.0), "at some order, got none"),
        (made(dp, space, renyi, lambda d_in: lambda alpha: math.nan), "got nan"),
        (profile(failing), "the map broke"),
        (profile(lambda eps: math.nan), "got nan"),
        (profile(lambda eps: min(1.0, eps / 600.0)), "must not increase in eps"),
        (
            profile(lambda eps: 0.1 if 100.0 < eps < 300.0 else 0.01 / (1.0 + eps)),
            "must not increase",
        ),
    ]:
        with pytest.raises(rz.ArgumentError, match=re.escape(said)):
            from_opendp(measurement)
    count = space >> dp.t.then_count() >> dp.m.then_laplace(2.0)
    with pytest.raises(rz.UnsupportedError, match="not representable"):
        from_opendp(count, 10**12)
    with pytest.raises(rz.ArgumentError, match="got inf"):
        from_opendp(space >> dp.t.then_count() >> dp.m.then_laplace(0.0))


def test_what_a_user_calls_as_opendp_does_is_not_taken_for_it(dp: Any, space: Any) -> None:
    """`user_divergence("MaxDivergence")` prints like pure DP, and may mean anything."""
    for own in (dp.user_divergence("MaxDivergence"), dp.user_divergence("RenyiDivergence")):
        for measure in (own, dp.approximate(own)):
            with pytest.raises(
                rz.UnsupportedError, match=r"with a proven loss, got .*the user's own"
            ):
                from_opendp(made(dp, space, measure, lambda d_in: 0.1))
    metric = dp.user_distance("SymmetricDistance")
    strange = dp.m.make_user_measurement(
        space[0], metric, dp.max_divergence(), lambda data: 0, lambda d_in: 0.1, TO=int
    )
    with pytest.raises(rz.UnsupportedError, match="the user's own metric"):
        from_opendp(strange, 1)
    assert from_opendp(strange, 1, "add-remove").eps == 0.1


@drawn(st.floats(1e-9, 1e3))
def test_no_bound_of_a_map_is_charged_less_than_it_is(bound: float) -> None:
    """In rationals: what filters charge is the decimal as it is written."""
    from residua.interop.opendp import _as_written

    charged = Fraction(repr(_as_written(bound)))
    assert charged <= Fraction(math.nextafter(math.nextafter(bound, math.inf), math.inf))
    if len(Decimal(repr(bound)).as_tuple().digits) > 15:
        assert charged >= Fraction(bound)
    else:
        assert charged == Fraction(repr(bound)), "a decimal that somebody wrote denotes itself"
