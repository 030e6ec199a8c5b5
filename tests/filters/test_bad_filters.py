"""Configurations and calls that make no sense: clear errors, whatever they are."""

from __future__ import annotations

import numpy as np
import pytest

import residua as rz
from residua import mechanisms

TENTH = rz.pure_dp(0.1)
NO_LISTS = [1.0, True, "ab", b"ab", np.array(0.5), np.ma.masked, object(), len]


@pytest.mark.parametrize("bad", NO_LISTS)
def test_what_is_no_list_is_refused_by_name(bad):
    for name, make in (
        ("plan", lambda: rz.PlanFilter(1.0, 1e-6, bad)),
        ("menu", lambda: rz.MenuFilter(1.0, 1e-6, bad)),
        ("prices", lambda: rz.MenuFilter(1.0, 1e-6, [TENTH], bad)),
        ("expect", lambda: rz.AutoFilter(1.0, 1e-6, bad)),
        ("curve", lambda: rz.RenyiCurveFilter(bad)),
    ):
        with pytest.raises(rz.ArgumentTypeError, match=f"{name} must be"):
            make()


def test_one_query_may_be_expected():
    for query in (TENTH, mechanisms.PureDp(0.1)):
        assert rz.AutoFilter(1.0, 1e-6, query) == rz.AutoFilter(1.0, 1e-6, [query])


def test_equal_filters_have_equal_fingerprints():
    for signed, plain in (
        (rz.BasicFilter(1.0, -0.0), rz.BasicFilter(1.0, 0.0)),
        (rz.PureFilter(-0.0), rz.PureFilter(0.0)),
        (rz.ApproximateGdpResidueFilter(-0.0, -0.0), rz.ApproximateGdpResidueFilter(0.0, 0.0)),
    ):
        assert signed == plain
        assert signed.fingerprint == plain.fingerprint


@pytest.mark.parametrize("eps", [2.0**-1000, 1e-300, 1e-8, 600.0])
@pytest.mark.parametrize("delta", [5e-324, 1e-300, 0.999])
def test_extreme_targets_have_a_guarantee_and_are_read_back(eps, delta):
    for filter in (
        rz.BasicFilter(eps, delta),
        rz.ApproximateZcdpFilter(eps, delta),
        rz.ApproximateZcdpFilter(eps, delta, None, "whitehouse"),
        rz.RenyiCommitFilter(eps, delta),
    ):
        assert filter.guarantee.delta_bounds(eps).lo <= delta
        assert rz.Filter.from_json(filter.to_json()) == filter
        assert filter.state_from_json(filter.state_to_json(filter.state)) == filter.state


@pytest.mark.parametrize("make", [rz.ApproximateZcdpFilter, rz.RenyiCommitFilter])
def test_targets_without_a_guarantee_are_refused(make):
    with pytest.raises(rz.ArgumentError, match="eps must be"):
        make(5e-324, 1e-6)


def test_relations_are_checked_where_nothing_depends_on_them():
    for filter in (rz.GdpResidueFilter(1.0), rz.PureFilter(1.0)):
        with pytest.raises(rz.ArgumentError, match="relation must be"):
            rz.how_many(filter, TENTH, relation="neither")


def test_a_plan_names_what_has_no_pair_for_add_remove():
    coin = mechanisms.RandomizedResponse(eps=0.1, num_buckets=3)
    with pytest.raises(rz.ArgumentError, match=r"plan must .* add-remove, got RandomizedResponse"):
        rz.PlanFilter(1.0, 1e-6, [coin])
    planned = rz.PlanFilter(1.0, 1e-6, [mechanisms.PureDp(0.11)])
    assert planned.check(coin, relation="replace-one").admitted
