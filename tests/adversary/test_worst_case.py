"""The value of a rule: against brute force, its sides, its limits."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction

import pytest

import adversary_oracles as oracles
import residua as rz
from adversary.games import catalogue
from residua.adversary.finite import coarsen, finite_atoms
from residua.adversary.rule import PlanRule, natural_update
from residua.adversary.worst_case import MOST_HISTORIES, MOST_ROUNDS
from residua.pld.constructors import from_exact

XS = [Fraction(1, 7), Fraction(2, 3), Fraction(1), Fraction(8, 5), Fraction(4)]


@pytest.mark.parametrize("seed", range(12))
def test_value_is_that_of_brute_force(seed: int) -> None:
    queries = catalogue(seed)
    one, two = queries
    budget = rz.supremum([one + one, one + two, two + two + one])
    worst = rz.worst_case(rz.NaturalRule(queries, budget), 3)
    laws = [oracles.law(q) for q in queries]
    allowed = oracles.natural(laws, oracles.law(budget))
    assert worst.exact
    value = worst.sides[0]
    for x in XS:
        expected = oracles.game_value(allowed, 3, x)
        assert value.hockey_stick(x) == expected
        assert Fraction(worst.hockey_stick_bounds(float(x)).hi) >= value.hockey_stick(
            Fraction(float(x))
        )


@pytest.mark.parametrize("seed", range(6))
def test_value_of_a_rule_given_by_history(seed: int) -> None:
    """A rule that forbids asking the same twice in a row."""
    one, two = catalogue(seed + 100, size=3)

    def allowed(history: tuple[rz.Pld, ...]) -> list[rz.Pld]:
        return [q for q in (one, two) if not history or history[-1] != q]

    names = {oracles.law(q): q for q in (one, two)}
    worst = rz.worst_case(rz.HistoryRule(allowed), 3)
    for x in XS:
        expected = oracles.game_value(
            lambda past: [oracles.law(q) for q in allowed(tuple(names[p] for p in past))], 3, x
        )
        assert worst.sides[0].hockey_stick(x) == expected


COIN = rz.from_pair([0.5, 0.5], [0.25, 0.75])
OTHER = rz.from_pair([0.75, 0.25], [0.5, 0.5])


class Counted:
    """A function of the history that says how often it was asked."""

    def __init__(self, allowed: Callable[[tuple[rz.Pld, ...]], list[rz.Pld]]):
        self.allowed, self.calls, self.longest = allowed, 0, 0

    def __call__(self, past: tuple[rz.Pld, ...]) -> list[rz.Pld]:
        self.calls += 1
        self.longest = max(self.longest, len(past))
        return self.allowed(past)


def test_histories_that_end_are_valued_to_the_end() -> None:
    allowed = Counted(lambda past: [COIN, OTHER] if len(past) < 4 else [])
    rule = rz.HistoryRule(allowed)
    whole = rz.worst_case(rule)
    assert (whole.unlimited, whole.rounds, whole.change) == (True, 4, 0.0)
    assert allowed.calls == 1 + 2 + 4 + 8 + 16
    assert whole.sides[0].same(rz.worst_case(rule, 4).sides[0])
    nothing = rz.worst_case(rz.HistoryRule(lambda past: []))
    assert nothing.unlimited and nothing.pld.is_identity


def test_a_first_query_below_the_tolerance_does_not_end_the_game() -> None:
    queries = [rz.pure_dp(1e-8), rz.pure_dp(1e-9), rz.pure_dp(1.0)]
    worst = rz.worst_case(rz.HistoryRule(lambda past: queries[len(past) : len(past) + 1]))
    assert (worst.unlimited, worst.rounds) == (True, 3)
    assert worst.hockey_stick_bounds(1.0).lo > 0.46


def test_histories_without_an_end_are_followed_to_the_tolerance() -> None:
    """A quarter as much each time: the seventh query has `h(1)` below 1e-4, and adds no more."""
    allowed = Counted(lambda past: [rz.pure_dp(0.25 * 4.0 ** -len(past))])
    worst = rz.worst_case(rz.HistoryRule(allowed), tolerance=1e-4)
    assert not worst.unlimited, "a statement about so many rounds"
    assert 0.0 < worst.change <= 1e-4
    assert worst.rounds <= 7 and allowed.calls <= MOST_ROUNDS + 1
    before = rz.worst_case(rz.HistoryRule(allowed.allowed), worst.rounds - 1)
    at = math.exp(0.2)
    moved = worst.hockey_stick_bounds(at).hi - before.hockey_stick_bounds(at).lo
    assert 0.0 <= moved <= worst.change + 1e-12
    assert worst.pld <= rz.pure_dp(1.0 / 3.0)


@pytest.mark.parametrize("queries", [[COIN, OTHER], [COIN, OTHER, COIN + OTHER]])
def test_histories_without_an_end_are_followed_to_a_limit(queries: list[rz.Pld]) -> None:
    allowed = Counted(lambda past: queries)
    worst = rz.worst_case(rz.HistoryRule(allowed))
    assert not worst.unlimited and worst.change > 1e-6
    assert allowed.calls <= MOST_HISTORIES
    assert worst.states <= MOST_HISTORIES < len(queries) * worst.states + 1
    assert allowed.longest == worst.rounds
    assert worst.sides[0].same(
        rz.worst_case(rz.HistoryRule(lambda past: queries), worst.rounds).sides[0]
    )


def test_one_history_without_an_end_is_followed_to_a_limit() -> None:
    allowed = Counted(lambda past: [COIN])
    worst = rz.worst_case(rz.HistoryRule(allowed), coarse=0.1)
    assert (worst.rounds, worst.unlimited) == (MOST_ROUNDS, False)
    assert allowed.calls == MOST_ROUNDS + 1


def test_too_many_queries_in_the_first_round_are_an_error() -> None:
    queries = [rz.from_pair([k / 99, 1 - k / 99], [0.5, 0.5]) for k in range(1, 49)]
    with pytest.raises(rz.TooLargeError, match=r"at least 49 states in 1 of 1 rounds.*limit of 10"):
        rz.worst_case(rz.HistoryRule(lambda past: queries), limit=10)


def test_natural_rules_merge_histories() -> None:
    queries = catalogue(1, count=3)
    everything = rz.approximate_dp(0.0, 1.0)
    rule = rz.NaturalRule(queries, everything)
    assert rz.worst_case(rule, 4).states == 35


def test_many_copies_are_written_out_as_they_merge() -> None:
    coin = rz.from_pair([0.25, 0.75], [0.75, 0.25])
    worst = rz.worst_case(rz.NaturalRule([30 * coin], rz.approximate_dp(0.0, 1.0)), 1)
    assert worst.exact and len(worst.sides[0]) == 31


def test_irrational_masses_have_two_sides() -> None:
    rule = rz.NaturalRule([rz.pure_dp(0.5), rz.approximate_dp(0.25, 0.01)], rz.gaussian(mu=2.0))
    worst = rz.worst_case(rule, 3)
    assert not worst.exact
    assert worst.below <= worst.pld
    for x in (0.4, 1.0, 1.9):
        bounds = worst.hockey_stick_bounds(x)
        assert 0.0 < bounds.width < 1e-15


def test_sides_of_one_query_enclose_it() -> None:
    for pld in (
        rz.pure_dp(0.5),
        rz.approximate_dp(1.5, 0.01),
        rz.gaussian(mu=0.7),
        rz.laplace(2.0),
    ):
        above, below = finite_atoms(pld, "above"), finite_atoms(pld, "below")
        for x in (0.05, 0.5, 0.9, 1.0, 1.3, 3.0, 9.0):
            true = pld.hockey_stick_bounds(x)
            assert below.hockey_stick(Fraction(x)) <= true.hi
            assert above.hockey_stick(Fraction(x)) >= true.lo
            width = above.hockey_stick(Fraction(x)) - below.hockey_stick(Fraction(x))
            assert 0 <= width < 2e-3


@pytest.mark.parametrize("share", [5e-3, 2e-2, 0.2])
@pytest.mark.parametrize("side", ["above", "below"])
def test_coarsening_stays_on_its_side_and_within_its_share(share: float, side: str) -> None:
    fine = finite_atoms(rz.gaussian(mu=1.0) + rz.approximate_dp(0.3, 0.01), "above", 1e-3)
    rough = coarsen(fine, side, share)
    assert len(rough) < len(fine)
    low, high = (fine, rough) if side == "above" else (rough, fine)
    assert from_exact(low) <= from_exact(high)
    for i in range(0, len(fine), 7):
        x = fine.kink(i)
        height = fine.hockey_stick(x)
        if Fraction(1, 10**6) < x < 10**6:
            excess = height - max(1 - x, Fraction(0))
            assert abs(rough.hockey_stick(x) - height) <= Fraction(share * 1.001) * excess


def test_coarse_values_enclose_the_exact_one() -> None:
    queries = catalogue(5, count=2, size=4)
    rule = rz.NaturalRule(queries, rz.approximate_dp(0.0, 1.0))
    exact = rz.worst_case(rule, 4)
    coarse = rz.worst_case(rule, 4, coarse=1e-2)
    assert exact.exact and not coarse.exact
    assert coarse.below <= exact.pld <= coarse.pld
    assert len(coarse.sides[0]) < len(exact.sides[0])
    for x in (0.3, 0.8, 1.0, 1.5, 5.0):
        true = float(exact.sides[0].hockey_stick(Fraction(x)))
        excess = true - max(0.0, 1.0 - x)
        bounds = coarse.hockey_stick_bounds(x)
        assert bounds.hi - true <= ((1.01) ** 4 - 1.0) * excess + 1e-15
        assert true - bounds.lo <= (1.0 - 0.99**4) * excess + 1e-15


def test_four_queries_of_three_atoms_in_six_rounds() -> None:
    queries = catalogue(8, count=4, size=3)
    seen: list[tuple[int, int]] = []
    worst = rz.worst_case(
        rz.NaturalRule(queries, rz.approximate_dp(20.0, 0.999)),
        6,
        progress=lambda done, whole: seen.append((done, whole)),
    )
    assert worst.exact
    assert worst.states <= 210
    assert seen[-1] == (worst.states, worst.states)
    assert [done for done, _ in seen] == list(range(1, worst.states + 1))


def test_any_number_of_rounds_ends_by_itself() -> None:
    plan = [rz.pure_dp(0.5), rz.pure_dp(0.5), rz.approximate_dp(0.0, 0.1)]
    worst = rz.worst_case(PlanRule(plan))
    assert worst.unlimited
    assert worst.rounds == 3
    whole = sum(plan[1:], plan[0])
    for x in (0.5, 1.0, 2.0):
        assert worst.hockey_stick_bounds(x).lo <= whole.hockey_stick_bounds(x).hi
        assert whole.hockey_stick_bounds(x).lo <= worst.hockey_stick_bounds(x).hi


def test_any_number_of_rounds_with_a_natural_rule() -> None:
    queries = [rz.pure_dp(0.4), rz.pure_dp(0.7)]
    unlimited = rz.worst_case(rz.NaturalRule(queries, rz.pure_dp(1.25)))
    assert unlimited.unlimited
    assert unlimited.rounds == 3
    assert unlimited.pld == rz.worst_case(rz.NaturalRule(queries, rz.pure_dp(1.25)), 7).pld


def test_a_rule_without_end_says_so() -> None:
    """The same query for ever: the value goes to no privacy at all, and never gets there."""

    class Endless(rz.Rule):
        @property
        def start(self) -> int:
            return 0

        def _allowed(self, state: int) -> list[tuple[rz.Pld, int]]:
            return [(rz.from_pair([0.25, 0.75], [0.75, 0.25]), 0)]

    short = rz.worst_case(Endless(), tolerance=0.2)
    assert not short.unlimited
    assert 0.0 < short.change <= 0.2
    longer = rz.worst_case(Endless(), tolerance=0.1)
    assert longer.rounds > short.rounds
    assert longer.pld >= short.pld


def test_a_rule_with_a_cycle_converges() -> None:
    """Silent moves between two states, and one query that ends: the fixed point is found."""
    end = rz.approximate_dp(0.0, 0.25)

    class Circles(rz.Rule):
        @property
        def start(self) -> str:
            return "left"

        def _allowed(self, state: str) -> list[tuple[rz.Pld, str]]:
            if state == "end":
                return []
            return [(rz.identity(), "right" if state == "left" else "left"), (end, "end")]

    worst = rz.worst_case(Circles())
    assert worst.unlimited
    assert worst.pld == end


def test_a_late_query_is_not_missed() -> None:
    """Nothing happens at the start for three rounds of a circle, then something does."""
    end = rz.approximate_dp(0.0, 0.25)

    class Late(rz.Rule):
        @property
        def start(self) -> int:
            return 0

        def _allowed(self, state: int) -> list[tuple[rz.Pld, int]]:
            if state == 9:
                return []
            on = [(rz.identity(), (state + 1) % 4)]
            return [*on, (end, 9)] if state == 3 else on

    worst = rz.worst_case(Late())
    assert worst.unlimited
    assert worst.pld == end


def test_too_many_states_are_counted() -> None:
    queries = catalogue(2, count=4)
    rule = rz.NaturalRule(queries, rz.approximate_dp(0.0, 1.0))
    with pytest.raises(
        rz.TooLargeError, match=r"at least \d+ states in \d of 8 rounds.*limit of 50"
    ):
        rz.worst_case(rule, 8, limit=50)
    with pytest.raises(rz.TooLargeError, match="any number of rounds"):
        rz.worst_case(rule, limit=50)


def test_too_many_atoms_are_counted() -> None:
    chance = random.Random(0)
    p, q = ([chance.random() + 0.1 for _ in range(200)] for _ in range(2))
    many = rz.from_pair([v / sum(p) for v in p], [v / sum(q) for v in q])
    rule = rz.NaturalRule([many], rz.approximate_dp(0.0, 1.0))
    with pytest.raises(rz.TooLargeError, match=r"at least \d+ atoms.*coarse="):
        rz.worst_case(rule, 3)
    coarse = rz.worst_case(rule, 3, coarse=0.05)
    assert coarse.below <= coarse.pld


def test_a_budget_that_admits_nothing_costs_nothing() -> None:
    cost = rz.natural_cost([rz.pure_dp(1.0)], rz.pure_dp(0.5), 3)
    assert cost.pld == rz.identity()
    assert cost.violation == 0.0 and cost.witness is None and cost.strategy is None


def test_update_rule_needs_no_residue_condition() -> None:
    """A rule that forgets what was spent is allowed here, and its cost is found."""
    coin = rz.from_pair([0.25, 0.75], [0.75, 0.25])
    generous = rz.UpdateRule(coin, lambda budget, loss: budget, [coin])
    assert rz.worst_case(generous, 3).pld == rz.from_pair(*(3 * coin).pair())
    strict = rz.UpdateRule(3 * coin, natural_update([coin], 3), [coin])
    assert rz.worst_case(strict, 3).pld <= 3 * coin


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: rz.worst_case("natural"), "rule must be a Rule, got 'natural'"),
        (lambda: rz.worst_case(rz.HistoryRule(lambda past: []), 0), "rounds must be 1 or more"),
        (lambda: rz.worst_case(rz.HistoryRule(lambda past: []), -1), "rounds must be"),
        (lambda: rz.worst_case(rz.HistoryRule(lambda past: []), 2.5), "rounds must be"),
        (lambda: rz.worst_case(rz.HistoryRule(lambda past: [1.0]), 1), "must allow Plds, got 1.0"),
        (lambda: rz.worst_case(rz.HistoryRule(lambda past: []), 1, coarse=0.0), "coarse must be"),
        (lambda: rz.HistoryRule(3), "allowed must be callable, got 3"),
        (lambda: rz.NaturalRule([], rz.pure_dp(1.0)), "catalogue must contain at least one"),
        (lambda: rz.NaturalRule([1.0], rz.pure_dp(1.0)), r"catalogue\[0\] must be a Pld"),
        (lambda: rz.NaturalRule([rz.pure_dp(1.0)], 1.0), "budget must be a Pld, got 1.0"),
        (lambda: rz.as_rule(rz.pure_dp(1.0), [rz.pure_dp(1.0)]), "filter must be a Filter"),
        (lambda: rz.as_rule(rz.PureFilter(1.0), rz.pure_dp(1.0)), "catalogue must be a sequence"),
        (lambda: rz.UpdateRule(rz.pure_dp(1.0), 1, [rz.pure_dp(1.0)]), "update must be callable"),
    ],
)
def test_bad_input_is_refused_by_name(call: object, said: str) -> None:
    with pytest.raises(rz.ResiduaError, match=said):
        call()
