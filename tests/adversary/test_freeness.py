"""When the natural filter is free: THEORY's numbers, four conditions, crossings and links."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest

import residua as rz
from adversary.amplification import amplification, kinks, regions
from adversary.games import query
from residua.adversary.finite import finite_atoms
from residua.adversary.freeness import triple_budget
from residua.adversary.rule import closure, natural_update
from residua.filters import from_json

R = rz.approximate_dp
HALF_SEEN = rz.from_pair([0.5, 0.5], [1.0, 0.0])
"""Half its mass at -ln 2, half at infinity: one finite loss."""
THIRD_SEEN = rz.from_pair([2 / 3, 1 / 3, 0.0], [2 / 3, 0.0, 1 / 3])


@pytest.mark.parametrize(
    ("queries", "rounds", "gap"),
    [
        ([rz.pure_dp(1.0), rz.pure_dp(1.2)], 3, 0.025),
        ([rz.pure_dp(0.3), rz.pure_dp(0.5)], 3, 0.013),
        ([rz.pure_dp(1.0), R(0.0, 0.2)], 2, 0.054),
        ([R(0.3, 0.5), HALF_SEEN, THIRD_SEEN], 2, 0.035),
    ],
)
def test_known_failures(queries: list[rz.Pld], rounds: int, gap: float) -> None:
    found = rz.is_universally_free(queries, rounds)
    assert not found and found.verdict is rz.Verdict.NO
    assert found.gap is not None and round(found.gap.gap, 3) == gap
    broken = rz.find_violation(queries, rounds)
    assert broken is not None
    assert broken.cost.verdict is rz.Verdict.NO
    assert broken.cost.violation == pytest.approx(found.gap.gap, abs=1e-9)
    first, *pair = broken.triple
    for after in pair:
        assert first + after <= broken.budget, "the natural filter admits either"
    assert broken.cost.strategy is not None
    assert broken.cost.strategy.loss == first


@pytest.mark.parametrize(
    ("queries", "rounds"),
    [
        ([rz.pure_dp(1.0), rz.pure_dp(1.2)], 2),
        ([rz.pure_dp(0.3), rz.pure_dp(0.5)], 2),
        ([rz.pure_dp(1.0), rz.pure_dp(2.0)], 3),
        ([rz.pure_dp(1.0), R(0.0, 0.2)], 1),
        ([HALF_SEEN, THIRD_SEEN], 3),
        ([R(0.3, 0.5)], 9),
        ([rz.laplace(2.0), 3 * rz.laplace(2.0)], None),
        ([rz.gaussian(mu=0.3), rz.gaussian(mu=1.0), rz.gaussian(sigma=3.0)], None),
        ([R(0.0, 0.2), R(0.0, 0.01), R(0.0, 0.5)], None),
    ],
)
def test_known_to_be_free(queries: list[rz.Pld], rounds: int | None) -> None:
    found = rz.is_universally_free(queries, rounds)
    assert found and found.verdict is rz.Verdict.YES and found.triple is None
    assert found.reason
    if rounds is not None:
        assert rz.find_violation(queries, rounds) is None


def test_a_gaussian_and_another_query() -> None:
    """Crossing curves of a Gaussian and a randomized response fail in two rounds, smooth or not."""
    queries = [rz.gaussian(mu=1.0), rz.pure_dp(0.9)]
    assert rz.is_universally_free(queries, 1)
    found = rz.is_universally_free(queries, 2)
    assert found.verdict is rz.Verdict.NO and found.gap is not None and found.gap.gap > 0.01


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: rz.is_universally_free([], 2), "catalogue must contain at least one query"),
        (lambda: rz.is_universally_free([rz.gaussian(mu=1.0)], 0), "rounds must be 1 or more"),
        (lambda: rz.is_universally_free([rz.pure_dp(1.0)], -2), "rounds must be"),
        (lambda: rz.find_violation([rz.pure_dp(1.0)], None), "rounds must be"),
        (lambda: rz.is_universally_free([HALF_SEEN, 0.5], 2), r"catalogue\[1\] must be a Pld"),
    ],
)
def test_bad_input_is_refused_by_name(call: object, said: str) -> None:
    with pytest.raises(rz.ResiduaError, match=said):
        call()


NOTHING: list[list[Any]] = [
    [rz.identity()],
    [rz.identity(), rz.identity()],
    [rz.mechanisms.PureDp(0.0)],
    [rz.identity(), rz.pure_dp(0.5)],
]


@pytest.mark.parametrize("queries", NOTHING, ids=str)
def test_a_query_without_loss_is_a_catalogue(queries: list[Any]) -> None:
    """What one function accepts the others accept, and they agree."""
    budget = rz.gaussian(mu=1.0)
    assert rz.is_universally_free(queries, 3)
    assert rz.find_violation(queries, 3) is None
    assert rz.find_violation(iter(queries), 3) is None
    for rounds in (None, 2):
        natural = rz.NaturalFilter(budget, rounds, queries)
        assert natural.free and natural.guarantee == budget
        assert natural.request(rz.identity()).admitted
        assert from_json(natural.to_json()) == natural
    assert rz.natural_cost(queries, budget, 2).violation == 0.0


def test_a_catalogue_of_nothing_admits_nothing_else() -> None:
    natural = rz.NaturalFilter(rz.gaussian(mu=1.0), 2, [rz.identity()])
    assert not natural.request(rz.pure_dp(0.01)).admitted


def test_any_rounds_of_an_unknown_family_is_undecided() -> None:
    found = rz.is_universally_free([rz.pure_dp(1.0), rz.pure_dp(1.2)], None)
    assert not found and found.verdict is rz.Verdict.UNDECIDED


def test_mechanisms_are_queries() -> None:
    noise = [rz.mechanisms.Gaussian(sigma=2.0), rz.mechanisms.Gaussian(sigma=3.0)]
    assert rz.is_universally_free(noise, None)


# -- the theorem: four conditions ------------------------------------------------------------


def _universally_free_by_hand(losses: list[rz.Pld], rounds: int) -> dict[str, bool]:
    """Each of the four conditions, over the budgets that could break any of them."""
    members = list(closure(losses, rounds).values())
    triples = [(first, a, c) for first in losses for a, c in combinations(members, 2)]
    budgets = list(dict.fromkeys(triple_budget(t) for t in triples))
    update = natural_update(losses, rounds)
    second = all((first + (a | c)) <= ((first + a) | (first + c)) for first, a, c in triples)
    first = third = fourth = True
    for budget in budgets:
        natural = rz.worst_case(rz.NaturalRule(losses, budget), rounds)
        first = first and natural.pld <= budget
        admitted = [loss for loss in losses if loss <= budget]
        third = third and all(update(budget, loss) + loss <= budget for loss in admitted)
        updated = rz.worst_case(rz.UpdateRule(budget, update, losses), rounds)
        fourth = fourth and updated.pld <= budget
    return {"natural": first, "commutes": second, "residue": third, "update": fourth}


@pytest.mark.parametrize("seed", range(14))
def test_four_conditions_agree(seed: int) -> None:
    chance = random.Random(seed)
    losses = [query(chance, 2) for _ in range(2)]
    if seed % 3 == 0:  # a pair in order, so that both answers occur
        losses[1] = losses[0] + losses[0]
    conditions = _universally_free_by_hand(losses, 2)
    assert len(set(conditions.values())) == 1, conditions
    assert bool(rz.is_universally_free(losses, 2)) == conditions["natural"]


def test_both_answers_occur_in_the_comparison() -> None:
    answers = set()
    for seed in range(14):
        chance = random.Random(seed)
        losses = [query(chance, 2) for _ in range(2)]
        if seed % 3 == 0:
            losses[1] = losses[0] + losses[0]
        answers.add(bool(rz.is_universally_free(losses, 2)))
    assert answers == {True, False}


def test_the_free_natural_filter_is_the_residue_filter() -> None:
    one = rz.from_pair([0.25, 0.75], [0.75, 0.25])
    losses, rounds = [one, 2 * one], 3
    assert rz.is_universally_free(losses, rounds)
    update = natural_update(losses, rounds)
    for budget in (one, 2 * one, 3 * one, 4 * one, rz.approximate_dp(2.0, 0.3)):
        natural, residue = rz.NaturalRule(losses, budget), rz.UpdateRule(budget, update, losses)
        pairs = [(natural.start, residue.start)]
        for _ in range(rounds):
            following = []
            for a, b in pairs:
                mine = {move.loss: move.state for move in natural.moves(a)}
                theirs = {move.loss: move.state for move in residue.moves(b)}
                assert mine.keys() == theirs.keys()
                following += [(mine[loss], theirs[loss]) for loss in mine]
            pairs = following


# -- gap amplification -----------------------------------------------------------------------


def test_degenerate_pair_amplifies_nothing() -> None:
    found = amplification(HALF_SEEN, THIRD_SEEN)
    assert found.degenerate == (True, True)
    assert not found.ordered
    assert found.crossings == (Fraction(3, 4),)
    assert found.link is None and found.gap is None


def test_crossings_of_pure_queries() -> None:
    found = amplification(rz.pure_dp(1.2), 2 * rz.pure_dp(1.0))
    assert len(found.crossings) == 2
    low, high = (float(x) for x in found.crossings)
    assert low * high == pytest.approx(1.0), "symmetric curves cross at x and 1/x"
    assert found.gap is not None and found.gap.gap > 0.02


@pytest.mark.parametrize("seed", range(60))
def test_unordered_pairs_link_and_open_a_gap(seed: int) -> None:
    chance = random.Random(seed)
    one, two = query(chance, 4), query(chance, 3)
    found = amplification(one, two)
    assert found.ordered == (one <= two or two <= one)
    if found.ordered:
        assert found.link is None
        return
    if not any(found.degenerate):
        assert found.link is not None
    if found.link is None:
        return
    link, asked = found.link, (one, two)[found.link.asked]
    own, first, second = (finite_atoms(pld, "above") for pld in (asked, one, two))
    assert {link.first_kink, link.second_kink} <= set(kinks(own))
    for kink, lower, upper in ((link.first_kink, first, second), (link.second_kink, second, first)):
        x = link.scale * kink
        assert lower.hockey_stick(x) < upper.hockey_stick(x)
    whole = finite_atoms(asked + (one | two), "above").hockey_stick(link.x)
    apart = max(finite_atoms(asked + pld, "above").hockey_stick(link.x) for pld in (one, two))
    assert whole > apart, "the curves part where the link says"
    assert found.gap is not None and found.gap.gap >= float(whole - apart) * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_regions_are_where_one_curve_is_lower(seed: int) -> None:
    chance = random.Random(1000 + seed)
    one, two = (finite_atoms(query(chance, 3), "above") for _ in range(2))
    lower, upper, _ = regions(one, two)
    for x in (Fraction(i, 12) for i in range(1, 60)):
        gap = one.hockey_stick(x) - two.hockey_stick(x)
        for spans, sign in ((lower, -1), (upper, 1)):
            inside = any(a < x and (b is None or x < b) for a, b in spans)
            assert inside == (gap * sign > 0)
