"""The exact worst case of a rule: what an adaptive analyst can make of it.

Restricted-adversary lemma: with `Γ|_L` the rule after `L` was asked,

    pld(Γ) = sup { L ⊕ pld(Γ|_L) : L ∈ Γ() },

and one round is worth `sup Γ()`. On finite PLDs with rational masses `⊕` and `sup` are exact, so
the recursion is; each state is valued once for each number of rounds left. Passing changes nothing
(more rounds are never worth less), so it is only followed where it changes the state.

Where masses are irrational or losses continuous, two games are valued, one with every query
rounded up (`above`, a proven upper bound of the worst case: for guarantees) and one with every
query rounded down (`below`, a proven lower bound: for attacks). What may be asked is the rule's
own decision on the queries as given, the same in both.

Unlimited rounds: if no history comes back to a state it has been in, the game ends by itself and
its value is that of the longest history. Otherwise rounds are added until no state's value moves by
more than `tolerance`; unless no state's value moves at all, that is a statement about so many
rounds and not a bound for more, and the result says so (`unlimited` is False).

The states of a `HistoryRule` are histories, which never come back and need not end. If they end
within `MOST_ROUNDS` rounds and `MOST_HISTORIES` histories, so does the game. Otherwise rounds are
added until the value of the empty history moves by no more than `tolerance`, or one of these two
limits is met.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property, reduce
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypedDict

import numpy as np

from residua import checks
from residua.adversary.finite import ACCURACY, coarsen, finite_atoms, irrational_factors, is_exact
from residua.adversary.rule import Move, Rule, as_rounds
from residua.adversary.strategy import STOP, Strategy
from residua.bounds import Interval, float_down, float_up
from residua.errors import TooLargeError
from residua.pld.arithmetic.exact import EXACT_IDENTITY, ExactAtoms, Side
from residua.pld.constructors import from_exact
from residua.pld.lattice import exact_supremum
from residua.pld.pld import Pld

MOST_ROUNDS = 64
"""How many rounds are added, at most, where no number of them is given."""
MOST_HISTORIES = 1 << 12
"""How many histories of a `HistoryRule` are followed, at most, where no rounds are given."""

Progress = Callable[[int, int], None]
"""Called with the steps that are done, such as states valued, and all of them."""
Values = dict[tuple[Hashable, int], ExactAtoms]


class Settings(TypedDict, total=False):
    """How finely and how far a game is valued: keywords of `worst_case`."""

    accuracy: float
    coarse: float | None
    limit: int
    progress: Progress | None


@dataclass(frozen=True, eq=False)
class WorstCase:
    """The value of a rule: exact, or between two proven sides."""

    rounds: int
    """How many rounds it is the value of."""
    unlimited: bool
    """Whether it is the value of any number of rounds."""
    change: float
    """How far the last round moved the curve of any state, or of the empty history where states
    are histories (0.0 where rounds were given)."""
    states: int
    exact: bool
    """Whether both sides are the value itself."""
    _game: Game = field(repr=False)
    _above: Values = field(repr=False)
    _below: Values = field(repr=False)

    @cached_property
    def pld(self) -> Pld:
        """The worst case, from above: a PLD that dominates it; exactly it where `exact`."""
        return from_exact(self._above[self._root])

    @cached_property
    def below(self) -> Pld:
        """A PLD that the worst case dominates: some adversary attains each point of its curve."""
        return from_exact(self._below[self._root])

    def hockey_stick_bounds(self, x: Any) -> Interval:
        """Proven interval for the worst case at a point `x > 0`."""
        at = Fraction(checks.positive("x", x))
        return Interval(
            float_down(self._below[self._root].hockey_stick(at)),
            float_up(self._above[self._root].hockey_stick(at)),
        )

    def strategy(self, x: Any) -> Strategy:
        """The adversary that attains the lower side (the value itself where exact) at `x > 0`."""
        at = Fraction(checks.positive("x", x))
        return attaining(self._game, self._below, self.rounds, at)

    @property
    def sides(self) -> tuple[ExactAtoms, ExactAtoms]:
        """The upper and the lower side in rationals."""
        return self._above[self._root], self._below[self._root]

    @property
    def _root(self) -> tuple[Hashable, int]:
        return self._game.rule.start, self.rounds


def worst_case(
    rule: Rule,
    rounds: int | None = None,
    *,
    accuracy: float = ACCURACY,
    coarse: float | None = None,
    limit: int = 100_000,
    tolerance: float = 1e-6,
    progress: Progress | None = None,
) -> WorstCase:
    """The value `pld(Γ)` of a rule: the exact worst case over all adaptive analysts.

    Args:
        rule: what may be asked.
        rounds: how many queries may be asked. None means any number: rounds are added until the
            value moves by no more than `tolerance`, and at most `MOST_ROUNDS` (64); of a
            `HistoryRule`, at most `MOST_HISTORIES` (4,096) histories are followed.
        accuracy: that of queries which are not finite, in `eps`.
        coarse: merges atoms after each round, upwards and downwards, so that the excess of the
            curve over `(1-x)_+` is known within a factor `(1 ± coarse)^rounds`. None merges
            nothing, but within a tenth of `accuracy` where queries are not finite and atoms are
            many.
        limit: the most states that are valued.
        tolerance: how far the value may still move when rounds are no longer added.
        progress: called with the states valued so far and all of them.

    Returns:
        The value, exact or between two proven sides; `unlimited` and `change` say what was reached
        without `rounds`.

    Raises:
        TooLargeError: there are more states than `limit`, or too many atoms.
    """
    checks.instance("rule", rule, Rule, "a Rule")
    accuracy = checks.between("accuracy", accuracy, 1e-6, 1.0)
    if coarse is not None:
        coarse = checks.between("coarse", coarse, 1e-9, 0.5)
    limit = checks.count("limit", limit)
    tolerance = checks.between("tolerance", tolerance, 0.0, 1.0)
    if rounds is not None:
        return _solve_rounds(Game(rule, accuracy, coarse, limit, progress), as_rounds(rounds))
    if rule.keeps_history:
        few = min(limit, MOST_HISTORIES)
        return _solve_histories(Game(rule, accuracy, coarse, few, progress), tolerance)
    return _solve_any_rounds(Game(rule, accuracy, coarse, limit, progress), tolerance)


@dataclass(frozen=True, eq=False)
class Game:
    """A rule with the way its queries are rounded."""

    rule: Rule
    accuracy: float
    coarse: float | None
    limit: int
    progress: Progress | None = None
    _moves: dict[Hashable, tuple[Move, ...]] = field(default_factory=dict)

    def moves(self, state: Hashable) -> tuple[Move, ...]:
        """What changes anything in a state."""
        if state not in self._moves:
            found = dict.fromkeys(self.rule.moves(state))
            self._moves[state] = tuple(
                m for m in found if not (m.loss.is_identity and m.state == state)
            )
        return self._moves[state]

    def atoms(self, loss: Pld, side: Side) -> ExactAtoms:
        return EXACT_IDENTITY if loss.is_identity else finite_atoms(loss, side, self.accuracy)

    @cached_property
    def met(self) -> frozenset[Pld]:
        """Every query that was met; to be asked for when all states are known."""
        return frozenset(move.loss for moves in self._moves.values() for move in moves)

    @property
    def exact(self) -> bool:
        """Whether every query is valued without rounding."""
        return self.coarse is None and all(is_exact(loss) for loss in self.met)

    @cached_property
    def continuous(self) -> bool:
        """Whether some query takes more than finitely many losses."""
        return not all(loss.is_finite for loss in self.met)

    def layers(self, rounds: int) -> list[list[Hashable]]:
        """The states met after 0, 1, … rounds."""
        layers: list[list[Hashable]] = [[self.rule.start]]
        count = 1
        while len(layers) <= rounds and layers[-1]:
            found: dict[Hashable, None] = {}
            for state in layers[-1]:
                found.update(dict.fromkeys(move.state for move in self.moves(state)))
                if count + len(found) > self.limit:
                    self._too_many(count + len(found), f"in {len(layers)} of {rounds} rounds")
            count += len(found)
            layers.append(list(found))
        return layers

    def reachable_states(self) -> list[Hashable]:
        """Every state that can be met."""
        found = dict.fromkeys([self.rule.start])
        waiting = [self.rule.start]
        while waiting:
            for move in self.moves(waiting.pop()):
                if move.state not in found:
                    found[move.state] = None
                    waiting.append(move.state)
            if len(found) > self.limit:
                self._too_many(len(found), "in any number of rounds")
        return list(found)

    def add_round(
        self, values: Values, states: list[Hashable], rounds: int, side: Side, total: int = 0
    ) -> None:
        """Value states with so many rounds left, from values with one less.

        Reports progress towards `total` states, if it is given.
        """
        for state in states:
            values[state, rounds] = (
                self.value(state, side, lambda move: values[move.state, rounds - 1])
                if rounds > 0
                else EXACT_IDENTITY
            )
            if total and self.progress is not None:
                self.progress(len(values), total)

    def _too_many(self, count: int, when: str) -> None:
        raise TooLargeError(
            f"the rule has at least {count} states {when}, more than the limit of {self.limit};"
            " use fewer rounds or queries, or raise limit"
        )

    def value(self, state: Hashable, side: Side, after: Callable[[Move], ExactAtoms]) -> ExactAtoms:
        """`sup { L ⊕ V : L allowed }`, where `V` is the value after each move."""
        members = []
        for move in self.moves(state):
            first, rest = self.atoms(move.loss, side), after(move)
            size, most = len(first) * len(rest), 1 << 17
            if size > most:
                raise TooLargeError(
                    f"the worst case has at least {size} atoms, more than the limit of {most};"
                    " use fewer rounds, or merge atoms with coarse="
                )
            members.append(first.compose(rest))
        found = reduce(exact_supremum, members, EXACT_IDENTITY)
        if self.coarse is not None:
            return coarsen(found, side, self.coarse)
        if self.continuous and len(found) > 2048:
            return coarsen(found, side, self.accuracy / 10.0)
        return found

    def values(self, layers: list[list[Hashable]], rounds: int, side: Side) -> Values:
        """The value of each state met, by the rounds that are left."""
        values: Values = {}
        for depth in reversed(range(len(layers))):
            self.add_round(values, layers[depth], rounds - depth, side, sum(map(len, layers)))
        return values


def _solve_rounds(game: Game, rounds: int) -> WorstCase:
    layers = game.layers(rounds)
    above = game.values(layers, rounds, "above")
    exact = game.exact
    below = above if exact else game.values(layers, rounds, "below")
    return WorstCase(rounds, False, 0.0, len(above), exact, game, above, below)


def _solve_any_rounds(game: Game, tolerance: float) -> WorstCase:
    states = game.reachable_states()
    with suppress(CycleError):
        longest: dict[Hashable, int] = {}
        following = {state: [move.state for move in game.moves(state)] for state in states}
        for state in TopologicalSorter(following).static_order():
            longest[state] = max((1 + longest[after] for after in following[state]), default=0)
        return replace(_solve_rounds(game, max(longest[game.rule.start], 1)), unlimited=True)
    above: Values = {(state, 0): EXACT_IDENTITY for state in states}
    below = above if game.exact else dict(above)
    rounds = 0
    while rounds < MOST_ROUNDS:
        try:
            game.add_round(above, states, rounds + 1, "above")
            if below is not above:
                game.add_round(below, states, rounds + 1, "below")
        except TooLargeError:
            if not rounds:
                raise
            break
        rounds += 1
        if game.progress is not None:
            game.progress(rounds * len(states), MOST_ROUNDS * len(states))
        # A state whose value rests may still lead to one whose value does not.
        moved = [s for s in states if not above[s, rounds].same(above[s, rounds - 1])]
        change = max(
            (_curve_distance(above[s, rounds - 1], above[s, rounds]) for s in moved), default=0.0
        )
        if not moved or change <= tolerance:
            break
    return WorstCase(rounds, not moved, change, len(states), below is above, game, above, below)


def _solve_histories(game: Game, tolerance: float) -> WorstCase:
    """The same where states are histories: by the value of the empty one."""
    longest: int | None = None
    with suppress(TooLargeError):
        layers = game.layers(MOST_ROUNDS + 1)
        longest = None if layers[-1] else max(len(layers) - 2, 1)
    if longest is not None:
        return replace(_solve_rounds(game, longest), unlimited=True)
    found: WorstCase | None = None
    before = EXACT_IDENTITY
    for rounds in range(1, MOST_ROUNDS + 1):
        try:
            longer = _solve_rounds(game, rounds)
        except TooLargeError:
            if found is None:
                raise
            return found
        value = longer.sides[0]
        found, before = replace(longer, change=_curve_distance(before, value)), value
        if found.change <= tolerance:
            break
    assert found is not None
    return found


def _curve_distance(old: ExactAtoms, new: ExactAtoms) -> float:
    """The largest distance between two curves, one above the other: at a kink of either."""
    gaps = [new.hockey_stick(new.kink(i)) - old.hockey_stick(new.kink(i)) for i in range(len(new))]
    kinks = [old.kink(i) for i in range(len(old))]
    gaps += [new.hockey_stick(x) - old.hockey_stick(x) for x in kinks]
    ends = Fraction(new.p_inf, new.p_den) - Fraction(old.p_inf, old.p_den)
    return float(np.max([float(gap) for gap in [*gaps, ends]]))


def attaining(game: Game, values: Values, rounds: int, x: Fraction) -> Strategy:
    """The strategy of a game that attains its lower side at the threshold `x`.

    Exactly so for rational queries; with irrational ones, up to a few times 2^-64.
    """

    @cache
    def best(state: Hashable, left: int, at: Fraction) -> Strategy:
        moves = game.moves(state) if left > 0 else ()
        found, height = None, max(1 - at, Fraction(0))
        for move in moves:
            own, rest = game.atoms(move.loss, "below"), values[move.state, left - 1]
            reached = Fraction(own.p_inf, own.p_den) + sum(
                Fraction(own.p[i], own.p_den) * rest.hockey_stick(at / own.kink(i))
                for i in range(len(own))
            )
            if reached > height:
                found, height = (move, own), reached
        if found is None:
            return STOP
        move, own = found
        if move.loss.is_identity:
            return best(move.state, left - 1, at)
        then = tuple(best(move.state, left - 1, at / own.kink(i)) for i in range(len(own)))
        if all(after.stops for after in then):
            return Strategy(move.loss)
        seen = None if irrational_factors(move.loss) is not None else from_exact(own)
        return Strategy(move.loss, then, seen)

    return best(game.rule.start, rounds, x)
