"""The natural filter says what it really guarantees, or is not made."""

from __future__ import annotations

import math

import pytest

import residua as rz
from residua.filters import amounts, from_json

R = rz.approximate_dp
CROSSING = (R(0.0847, 0.478), R(1.404, 0.0208))
LEANING = rz.from_pair([0.5, 0.5], [0.25, 0.75])


def test_a_catalogue_that_breaks_the_budget() -> None:
    """Delta 0.509 promised, 0.597 real, at eps = 1.395."""
    natural = rz.NaturalFilter(R(1.395, 0.509), 2, CROSSING)
    assert not natural.free
    assert natural.guarantee.delta(1.395) == pytest.approx(0.597, abs=5e-4)
    assert natural.budget.delta(1.395) == pytest.approx(0.509)
    assert "worst case" in natural.proven.reason
    found = rz.attack_filter(natural, CROSSING)
    assert found.verdict is rz.Verdict.YES, "what it says is what it keeps"


def test_the_first_move_and_the_answers_to_it() -> None:
    cost = rz.natural_cost(CROSSING, R(1.395, 0.509), 2)
    assert cost.witness is not None and math.log(cost.witness) == pytest.approx(1.395)
    assert cost.violation == pytest.approx(0.088, abs=5e-4)
    assert str(cost.strategy).splitlines() == [
        "ask approximate_dp(1.404, 0.0208)",
        "  loss -1.404: ask approximate_dp(0.0847, 0.478)",
        "  loss +1.404: ask approximate_dp(1.404, 0.0208)",
    ]


@pytest.mark.parametrize(
    ("natural", "said"),
    [
        (lambda: rz.NaturalFilter(rz.pure_dp(1.0)), "add up"),
        (lambda: rz.NaturalFilter(rz.gaussian(mu=1.0), catalogue="gaussian"), "gaussian"),
        (lambda: rz.NaturalFilter(R(1.0, 1e-5), catalogue="gaussian"), "gaussian"),
        (lambda: rz.NaturalFilter(R(0.5, 0.1), catalogue="pure_delta"), "pure_delta"),
        (lambda: rz.NaturalFilter(R(1.0, 0.1), None, (rz.laplace(4.0),)), "multiples"),
        (lambda: rz.NaturalFilter(R(1.0, 0.1), 2, (rz.pure_dp(0.3), rz.pure_dp(0.5))), "below"),
    ],
)
def test_free_families_guarantee_the_budget(natural: object, said: str) -> None:
    made = natural()
    assert made.free
    assert made.guarantee == made.budget
    assert said in made.proven.reason


def test_arbitrary_queries_get_the_computed_guarantee() -> None:
    natural = rz.NaturalFilter(R(1.0, 1e-6), 3)
    assert not natural.free
    assert natural.guarantee.delta(1.0) > 1e-6
    assert "arbitrary" in natural.proven.reason
    assert natural.request(rz.gaussian(mu=0.1)).admitted
    assert natural.request(rz.laplace(4.0)).admitted
    assert not natural.request(rz.pure_dp(0.9)).admitted
    assert natural.request(rz.pure_dp(0.1)).admitted
    last = natural.request(rz.pure_dp(0.001))
    assert not last.admitted and "all 3 rounds are used" in last.reason


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: rz.NaturalFilter(rz.gaussian(mu=1.0), 3), "catalogue must be a list.*nothing is"),
        (lambda: rz.NaturalFilter(R(1.0, 0.1)), "rounds must be given for arbitrary queries"),
        (lambda: rz.NaturalFilter(R(1.0, 0.1), 0), "rounds must be 1 or more, got 0"),
        (lambda: rz.NaturalFilter(R(1.0, 0.1), 2, ()), "catalogue must contain at least one"),
        (lambda: rz.NaturalFilter(R(1.0, 0.1), 2, "pure"), "one of gaussian, pure_delta"),
        (lambda: rz.NaturalFilter(1.0, 2), "budget must be a Pld or a mechanism"),
        (lambda: rz.NaturalFilter(R(1.0, 0.1), None, CROSSING), "rounds must be given unless"),
    ],
)
def test_what_is_not_proven_is_not_made(call: object, said: str) -> None:
    with pytest.raises(rz.ResiduaError, match=said):
        call()


def test_asymmetric_queries_count_in_both_directions() -> None:
    catalogue = (LEANING, rz.approximate_dp(0.0, 0.1))
    natural = rz.NaturalFilter(R(1.5, 0.2), 2, catalogue)
    both = LEANING | LEANING.reverse()
    assert natural.members[0] == both and both.is_symmetric
    decision = natural.request(LEANING.reverse())
    assert decision.admitted
    assert natural.spent == both


def test_a_query_is_charged_as_one_that_dominates_it() -> None:
    natural = rz.NaturalFilter(R(1.0, 0.1), 2, (rz.pure_dp(0.3), rz.pure_dp(0.5)))
    assert natural.request(rz.pure_dp(0.2)).cost == rz.pure_dp(0.3)
    refused = natural.request(rz.pure_dp(0.6))
    assert not refused.admitted and "no query of the catalogue does" in refused.reason
    family = rz.NaturalFilter(rz.gaussian(mu=1.0), catalogue="gaussian")
    assert "not in the family" in family.request(rz.pure_dp(0.1)).reason


def test_reasons_say_what_was_asked_what_it_needs_what_is_left_and_what_would_fit() -> None:
    natural = rz.NaturalFilter(R(1.0, 1e-6), 3)
    first = natural.request(rz.pure_dp(1.5))
    needed = amounts.shown(rz.pure_dp(1.5).delta(1.0), up=True)
    assert first.reason == (
        f"refused: pure_dp(1.5) needs delta {needed} at eps 1, where the budget has 1e-06;"
        " approximate_dp(1.0, 1e-06) in 3 rounds left; pure_dp(1.0) would fit"
    )
    assert natural.check(first.largest).admitted
    assert natural.request(rz.gaussian(mu=0.1)).reason == (
        "admitted: gaussian(mu=0.1) costs gaussian(mu=0.1); approximate_dp(1.0, 1e-06) less"
        " gaussian(mu=0.1) in 2 rounds left"
    )
    refused = natural.request(rz.pure_dp(0.9))
    together = (rz.gaussian(mu=0.1) + rz.pure_dp(0.9)).delta(1.0)
    assert (
        f"pure_dp(0.9) and what was spent need delta {amounts.shown(together, up=True)} at eps 1"
        in refused.reason
    )
    pure = rz.NaturalFilter(rz.pure_dp(1.0)).request(rz.pure_dp(1.1))
    assert "at eps 1, where the budget has 0;" in pure.reason


def test_a_guarantee_of_nothing_is_called_trivial() -> None:
    natural = rz.NaturalFilter(R(1.0, 0.3), 8)
    assert natural.guarantee.is_infinite and not natural.free
    assert natural.guarantee.delta(50.0) == 1.0
    assert "trivial (delta = 1): nothing is guaranteed" in natural.proven.reason
    assert not rz.NaturalFilter(R(1.0, 1e-6), 3).guarantee.is_infinite


def test_gaussians_fit_as_they_are_written() -> None:
    natural = rz.NaturalFilter(rz.gaussian(mu=1.0), catalogue="gaussian")
    assert natural.request(rz.gaussian(mu=0.6)).admitted
    assert natural.request(rz.gaussian(mu=0.8)).admitted
    assert not natural.request(rz.gaussian(mu=1e-6)).admitted
    assert natural.remaining.spent == natural.spent


@pytest.mark.parametrize(
    "natural",
    [
        rz.NaturalFilter(rz.pure_dp(1.0)),
        rz.NaturalFilter(rz.gaussian(mu=1.0), catalogue="gaussian"),
        rz.NaturalFilter(R(1.0, 0.1), 2, (rz.pure_dp(0.3), rz.mechanisms.PureDp(0.5))),
    ],
)
def test_written_down_and_read_back(natural: rz.NaturalFilter) -> None:
    again = from_json(natural.to_json())
    assert again == natural and again.fingerprint == natural.fingerprint
    for query in (rz.gaussian(mu=0.1), rz.pure_dp(0.3)):
        natural.request(query)
    state = natural.state
    text = natural.state_to_json(state)
    assert again.state_from_json(text) == state
    again.resume(again.state_from_json(text))
    assert again.remaining == natural.remaining
    for wrong in ("{}", text.replace('"natural"', '"pure"'), text.replace('"rounds":', '"round":')):
        with pytest.raises(rz.ResiduaError):
            natural.state_from_json(wrong)


def test_states_of_other_filters_are_refused() -> None:
    natural = rz.NaturalFilter(rz.pure_dp(1.0))
    with pytest.raises(rz.ArgumentError, match="another filter"):
        natural.decide(rz.NaturalFilter(rz.pure_dp(2.0)).initial(), rz.pure_dp(0.1))
