"""Every filter we ship survives: its exact worst case is below its own guarantee."""

from __future__ import annotations

import math
import random

import pytest

import residua as rz
from residua.adversary import attack
from residua.adversary.finite import is_exact
from residua.filters import KINDS
from residua.filters.potential.renyi_commit import Commit

CATALOGUES = attack.catalogues()
ROUNDED = 1e-9
"""How far the upper side may reach above a guarantee where masses had to be rounded."""


def test_every_kind_is_attacked() -> None:
    assert set(KINDS) <= set(attack.EXAMPLES), "give a new kind of filter an example in attack.py"


@pytest.mark.parametrize("kind", KINDS)
def test_filter_survives(kind: str) -> None:
    moved = 0
    for attacked, name, found in attack.survivors((kind,)):
        assert attacked == kind
        rational = all(is_exact(query) for query in CATALOGUES[name])
        told = f"{kind} against {name}: {found}"
        assert found.verdict is not rz.Verdict.NO, told
        if rational and found.worst.exact:
            assert found.verdict is rz.Verdict.YES, told
        else:
            assert found.apart <= ROUNDED, told
        moved += found.worst.states > 1
    assert moved >= 2, f"{kind} admitted next to nothing, so nothing was tested"


def test_update_filter_survives_whatever_its_rule() -> None:
    """It checks the residue condition itself, so even a rule that forgets is harmless."""
    queries = CATALOGUES["pure"] + CATALOGUES["asymmetric"]
    budget = rz.approximate_dp(1.2, 0.05)
    rules = (lambda b, loss: b, lambda b, loss: rz.identity(), lambda b, loss: b & rz.pure_dp(0.6))
    for rule in rules:
        found = rz.attack_filter(rz.UpdateFilter(budget, rule), queries, 3)
        assert found.verdict is rz.Verdict.YES


def test_natural_filters_keep_what_they_say() -> None:
    """Over its own catalogue, free or not, the guarantee is met exactly."""
    for name in ("pure", "approximate", "asymmetric", "minus infinity", "gaussian-like"):
        queries = CATALOGUES[name]
        natural = rz.NaturalFilter(rz.approximate_dp(1.0, 0.05), 3, queries)
        assert rz.attack_filter(natural, queries, 3).verdict is rz.Verdict.YES


def test_commits_survive() -> None:
    """What is left may go to a batch or to another filter, chosen after the answers."""
    filter = rz.RenyiCommitFilter(1.5, 0.06)
    queries = (*CATALOGUES["pure"], *CATALOGUES["asymmetric"])
    batch = 2 * CATALOGUES["pure"][1]
    options = (Commit(batch), Commit(rz.PureFilter(0.55)), Commit(CATALOGUES["gaussian-like"][0]))
    found = rz.attack_filter(filter, (*queries, *options), 4)
    assert found.verdict is rz.Verdict.YES
    without = rz.attack_filter(filter, queries, 4)
    assert without.worst.pld < found.worst.pld, "the commit was used"


RANDOM = (
    *("pure", "basic", "renyi", "gdp", "gdp_residue", "approximate_gdp_residue", "renyi_commit"),
    "union",
)


@pytest.mark.parametrize("seed", range(5))
def test_random_catalogues(seed: int) -> None:
    """Small losses, masses at either infinity, one query in both directions."""
    chance = random.Random(seed)
    queries = [_random_query(chance) for _ in range(2)]
    queries.append(queries[0].reverse())
    for kind in RANDOM:
        if kind in KINDS:
            found = rz.attack_filter(attack.example(kind), queries, 3)
            assert found.verdict is rz.Verdict.YES, f"{kind} against {queries}: {found}"


def _random_query(chance: random.Random) -> rz.Pld:
    p = [chance.randint(20, 60) for _ in range(chance.choice([2, 2, 3]))]
    q = [max(1, round(v * math.exp(chance.uniform(-0.6, 0.6)))) for v in p]
    if chance.random() < 0.3:
        p, q = [*p, chance.randint(1, 3)], [*q, 0]
    if chance.random() < 0.3:
        p, q = [*p, 0], [*q, chance.randint(1, 3)]
    return rz.from_pair([v / sum(p) for v in p], [v / sum(q) for v in q])
