"""What a refusal says is needed is more than what it says is left, however close they are."""

import re
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import residua as rz
from filters.catalogue import CATALOGUE, HOPELESS
from residua import mechanisms
from residua.filters import amounts

NUMBER = r"(\d[\d.e+-]*)"
A_HAIR = 1e-12
BY_A_HAIR = {
    "pure": (rz.PureFilter(0.5), rz.pure_dp(0.5 + A_HAIR), "eps"),
    "basic": (rz.BasicFilter(0.5, 1e-6), rz.approximate_dp(0.5 + A_HAIR, 0.0), "eps"),
    "basic, delta": (rz.BasicFilter(0.5, 1e-6), rz.approximate_dp(0.1, 1e-6 + 1e-18), "delta"),
    "zcdp": (rz.ZcdpFilter(0.5), mechanisms.Zcdp(0.5 + A_HAIR), "rho"),
    "renyi": (rz.RenyiFilter(2.0, 0.5), mechanisms.Rdp((2.0,), (0.5 + A_HAIR,)), "rho"),
    "renyi_curve": (rz.RenyiCurveFilter({2: 0.5}), mechanisms.Rdp((2.0,), (0.5 + A_HAIR,)), "rho"),
    "approximate_gdp_residue": (
        rz.ApproximateGdpResidueFilter(0.5, 1e-6), mechanisms.Gdp(0.5 + A_HAIR), "mu²",
    ),
    "approximate_gdp_residue, delta": (
        rz.ApproximateGdpResidueFilter(0.5, 1e-6), rz.approximate_dp(0.0, 1e-6 + 1e-18), "delta",
    ),
    "gdp": (rz.GdpFilter(0.5), mechanisms.Gdp(0.5 + A_HAIR), "mu²"),
    "gdp_residue": (rz.GdpResidueFilter(0.5), mechanisms.Gdp(0.5 + A_HAIR), "mu²"),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_A_HAIR)
def test_a_refusal_by_a_hair_does_not_contradict_itself(name):
    filter, query, unit = BY_A_HAIR[name]
    decision = filter.check(query)
    assert not decision.admitted
    needed, left = decision.reason.split("; ")[:2]
    said = [Decimal(re.search(rf"{unit} {NUMBER}", part)[1]) for part in (needed, left)]
    assert said[0] > said[1], decision.reason


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_check_says_what_would_be(name):
    """And only a check: what was decided for good says so."""
    filter, part = CATALOGUE[name].make(), CATALOGUE[name].part
    for query, outcome in ((part, "admitted: "), (HOPELESS, "refused: ")):
        assert filter.check(query).reason.startswith(f"would be {outcome}")
        assert filter.request(query).reason.startswith(outcome)
    after = filter.check(part).reason
    assert after.startswith("would be admitted: ") and " would be left" in after


def test_a_check_of_what_was_committed_says_what_would_be():
    filter = rz.RenyiCommitFilter(1.0, 1e-3, 8.0)
    filter.commit(filter.largest_gaussian())
    assert filter.check(rz.gaussian(sigma=50.0)).reason.startswith("would be admitted: ")
    assert filter.check(rz.gaussian(sigma=0.1)).reason.startswith("would be refused: ")


@pytest.mark.parametrize("query", [rz.gaussian(sigma=20.0), rz.pure_dp(0.1)], ids=repr)
@pytest.mark.parametrize("times", [1, 3, 6])
def test_a_refusal_recommends_no_more_than_is_left(query, times):
    """The largest `R_eps` that fits is the same number everywhere."""
    filter = rz.AutoFilter(1.0, 1e-6)
    for _ in range(times):
        assert filter.request(query).admitted
    refused = filter.request(rz.pure_dp(0.99))
    assert refused.largest == filter.remaining
    fits = re.findall(rf"pure_dp\({NUMBER}\)", refused.reason)[-1]
    assert float(fits) == filter.balance.largest_eps and filter.check(refused.largest).admitted


@given(
    st.just(0.0) | st.floats(min_value=1e-290, max_value=1e290),
    st.integers(1, 9),
)
def test_numbers_are_shown_on_their_side(value, digits):
    """Against exact rationals: on the safe side, and within a unit of the last digit."""
    exact = Fraction(repr(value))
    low, high = (Fraction(amounts.shown(value, digits, up=up)) for up in (False, True))
    assert low <= exact <= high
    if exact:
        assert high - low <= exact * Fraction(10) ** (1 - digits)
    if len(Decimal(repr(value)).normalize().as_tuple().digits) <= digits:
        assert low == exact == high, "what is short enough is shown as it is written"
