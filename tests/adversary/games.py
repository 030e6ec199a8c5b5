"""Small random games over rational queries, the same every time."""

from __future__ import annotations

import random

import residua as rz


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
