"""Small random games over rational queries, the same every time."""

from __future__ import annotations

import random
from collections.abc import Sequence

import residua as rz
from residua.adversary.strategy import STOP


def query(chance: random.Random, size: int = 3, infinite: bool = True) -> rz.Pld:
    """A finite PLD with small integer weights, sometimes with mass at an infinity."""
    p = [chance.randint(1, 9) for _ in range(size)]
    q = [chance.randint(1, 9) for _ in range(size)]
    if infinite and chance.random() < 0.3:
        q[0] = 0
    if infinite and chance.random() < 0.3:
        p[-1] = 0
    return rz.from_pair([v / sum(p) for v in p], [v / sum(q) for v in q])


def catalogue(seed: int, count: int = 2, size: int = 2) -> list[rz.Pld]:
    """A few queries."""
    chance = random.Random(seed)
    return [query(chance, size) for _ in range(count)]


def sequence(queries: Sequence[rz.Pld]) -> rz.Strategy:
    """Ask these queries one after another, whatever the answers."""
    if not queries:
        return STOP
    first, after = rz.Strategy(queries[0]), sequence(queries[1:])
    if after is STOP:
        return first
    if not first.loss.is_finite:
        return rz.Strategy(sum(queries[1:], first.loss))
    return rz.Strategy(queries[0], (after,) * len(first.outcomes("below")))
