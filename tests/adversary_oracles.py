"""Slow and obviously correct: adversaries by brute force, in rationals.

A query is a list of outcomes `(p, q)`; masses at infinity are outcomes with `q = 0` or `p = 0`.
Nothing here merges histories, sorts atoms or builds suprema: the value of a game at a threshold is
the best over all that may be asked, recursively, and the law of a strategy is written out outcome
by outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache

import residua as rz

Outcome = tuple[Fraction, Fraction]
Law = tuple[Outcome, ...]


def law(pld: rz.Pld) -> Law:
    """The outcomes of a finite PLD with rational masses."""
    exact = pld._atoms.exact
    atoms = [
        (Fraction(p, exact.p_den), Fraction(q, exact.q_den))
        for p, q in zip(exact.p, exact.q, strict=True)
    ]
    rest = (1 - sum(p for p, _ in atoms), Fraction(0)), (Fraction(0), 1 - sum(q for _, q in atoms))
    return (*atoms, *rest)


def compose(first: Law, second: Law) -> Law:
    return tuple((p * a, q * b) for p, q in first for a, b in second)


def hockey_stick(outcomes: Law, x: Fraction) -> Fraction:
    return sum((max(p - x * q, Fraction(0)) for p, q in outcomes), Fraction(0))


def kinks(outcomes: Law) -> list[Fraction]:
    return [p / q for p, q in outcomes if p > 0 and q > 0]


def dominated(low: Law, high: Law) -> bool:
    """At every kink of either, and beyond the last one."""
    places = [*kinks(low), *kinks(high)]
    places += [max(places) * 2, min(places) / 2] if places else [Fraction(1)]
    return all(hockey_stick(low, x) <= hockey_stick(high, x) for x in places)


Allowed = Callable[[tuple[Law, ...]], Sequence[Law]]


def game_value(
    allowed: Allowed, rounds: int, x: Fraction, history: tuple[Law, ...] = ()
) -> Fraction:
    """The largest `h(x)` that any adversary of a rule reaches in so many rounds."""
    best = max(1 - x, Fraction(0))
    if rounds == 0:
        return best
    for query in allowed(history):
        reached = Fraction(0)
        for p, q in query:
            if p > 0 and q == 0:
                reached += p
            elif p > 0:
                reached += p * game_value(allowed, rounds - 1, x * q / p, (*history, query))
        best = max(best, reached)
    return best


def natural(catalogue: Sequence[Law], budget: Law) -> Allowed:
    """The natural rule as a function of the history."""

    @cache
    def fits(asked: tuple[int, ...]) -> bool:
        spent: Law = ((Fraction(1), Fraction(1)),)
        for i in asked:
            spent = compose(spent, catalogue[i])
        return dominated(spent, budget)

    def allowed(history: tuple[Law, ...]) -> list[Law]:
        past = [catalogue.index(query) for query in history]
        return [query for i, query in enumerate(catalogue) if fits(tuple(sorted([*past, i])))]

    return allowed


def strategy_law(strategy: rz.Strategy) -> Law:
    """Every outcome of a strategy over rational queries."""
    own = law(strategy.loss)
    if not strategy.then:
        return own
    finite, rest = own[: len(strategy.then)], own[len(strategy.then) :]
    out = list(rest)
    for (p, q), after in zip(finite, strategy.then, strict=True):
        follow = strategy_law(after)
        out += [(p * a, q * b) for a, b in follow]
    return tuple(out)
