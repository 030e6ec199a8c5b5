"""Count requests whose cost falls with what is left, without deciding every one.

Of one amount `s` a request takes `ĉ(s)`, within a relative `slack` above an exact cost `c(s)` that
does not increase with `s`. So where `k` requests lead from `s` to `s'`,

    k c(s)  <=  s - s'  <=  k c(s') (1 + slack),

and from a bracket `[a, b]` around what is left one jumps to the bracket `[a', b - k c(b)]` with any
`a'` such that `k c(a') (1 + slack) <= a - a'`. A round of several queries is one request: each
`s - c(s)` moves two states further apart, and so do their compositions. Jumps are as wide as keeps
the bracket within `share` of a request at the end; towards the end, where the cost moves, they are
single requests. The count is certain as soon as both ends of the bracket agree on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from residua.filters.base import DecreasingCost

Cost = Callable[[float], tuple[float, float] | None]

SLACK = 1e-9
"""How far a charge may be above the exact cost, relatively, for what is counted here."""
_SHARES = (0.5, 0.05, 0.005)
_PARTS = (1 / 4, 1 / 32, 1 / 256)
_ENOUGH = 10**5
"""With so many requests the last of these is not needed to tell the noise to six digits."""
_ULPS = 2.0**-50


def count(
    left: Fraction, costs: Sequence[DecreasingCost], most: int, slack: float = SLACK
) -> int | None:
    """How many requests of a repeating list are admitted; None where that is left open.

    Open as well where bounds of a cost are seen to be further apart than `slack`.
    """
    narrow = [_narrow(cost, slack) for cost in costs]
    try:
        for share in _SHARES:
            found = _counted(float(left), narrow, most, slack, share)
            if found is not None:
                return found
    except WideError:
        return None
    return None


def at_least(
    left: Fraction, costs: Sequence[DecreasingCost], n: int, slack: float = SLACK
) -> bool | None:
    """Whether `n` requests of a repeating list are admitted; None where that is left open.

    Either end of the bracket is followed for itself, and a jump takes a fixed part of what is left:
    as many jumps as `n` has digits, about, and what they are off by is about as many requests
    as a part is of the whole, for each. Raises `WideError` where bounds of a cost are seen to be
    further apart than `slack`.
    """
    narrow = [_narrow(cost, slack) for cost in costs]
    for part in _PARTS[: 2 if n >= _ENOUGH else 3]:
        if _reaches(float(left), narrow, n, slack, part):
            return True
        if not _may_reach(float(left), narrow, n, part):
            return False
    return None


def _reaches(left: float, costs: Sequence[Cost], n: int, slack: float, part: float) -> bool:
    """Whether the lower end is admitted so often."""
    low, done = _down(left), 0
    while done < n:
        turned = _turned(costs, done)
        # No state on the way is below `(1 - part) low`, where a round takes the most.
        taken = _most((1.0 - part) * low, turned, slack)
        if taken is not None:
            rounds = _rounds(part * low * (1.0 - _ULPS), taken, (n - done) // len(costs))
            if rounds > 1:
                low = _down(low - rounds * taken * (1.0 + _ULPS))
                done += rounds * len(costs)
                continue
        below = turned[0](low)
        if below is None:
            return False
        low = _down(low - below[1] * (1.0 + slack))
        done += 1
    return True


def _may_reach(left: float, costs: Sequence[Cost], n: int, part: float) -> bool:
    """Whether the upper end is."""
    high, done = _up(left), 0
    while done < n:
        turned = _turned(costs, done)
        least = _least(high, turned)
        if least is not None:
            rounds = _rounds(part * high, least, (n - done) // len(costs))
            if rounds > 1:
                high = _up(high - rounds * least * (1.0 - _ULPS))
                done += rounds * len(costs)
                continue
        above = turned[0](high)
        if above is None:
            return False
        high = _up(high - above[0])
        done += 1
    return True


def _turned(costs: Sequence[Cost], done: int) -> tuple[Cost, ...]:
    """The costs, from the one that comes next."""
    place = done % len(costs)
    return (*costs[place:], *costs[:place])


def _rounds(share: float, each: float, most: int) -> int:
    return most if each * most <= share else int(share / each)


class WideError(Exception):
    """Bounds are too far apart to count by."""


def _narrow(cost: DecreasingCost, slack: float) -> Cost:
    """The cost in floats, rounded outwards."""

    def checked(left: float) -> tuple[float, float] | None:
        bounds = cost(Fraction(left)) if left >= 0.0 else None
        if bounds is None:
            return None
        low, high = float(bounds[0]) * (1.0 - _ULPS), float(bounds[1]) * (1.0 + _ULPS)
        if not high <= low * (1.0 + slack):
            raise WideError
        return low, high

    return checked


def _counted(
    left: float, costs: Sequence[Cost], most: int, slack: float, share: float
) -> int | None:
    low, high = _down(left), _up(left)
    first = _least(high, costs)
    width = share * first / left if first else 0.0
    done, jump = 0, 1.0
    while done < most:
        turned = _turned(costs, done)
        rounds = min(int(jump), (most - done) // len(costs))
        least = _least(high, turned) if rounds else None
        if least is not None:
            # How far it may be: every round takes a little more than the first.
            at = _down(low - rounds * least * (1.0 + width + 4.0 * slack))
            taken = _most(at, turned, slack)
            if taken is not None and rounds * taken * (1.0 + _ULPS) <= low - at:
                grown = taken / least - 1.0 - 4.0 * slack if least else 0.0
                low = _down(low - rounds * taken * (1.0 + _ULPS))
                high = _up(high - rounds * least * (1.0 - _ULPS))
                done += rounds * len(costs)
                jump = rounds * (0.8 * width / grown if grown > 0.1 * width else 8.0) + 1.0
                continue
        if jump >= 2.0:
            jump = jump / 4.0
            continue
        above, below = turned[0](high), turned[0](low)
        if above is None:
            return done
        if below is None:
            return None
        low = _down(low - below[1] * (1.0 + slack))
        high = _up(high - above[0])
        if low < 0.0:
            return None
        done += 1
        jump = 1.0 if len(costs) > 1 else 0.0
    return most


def _least(high: float, costs: Sequence[Cost]) -> float | None:
    """The least cost of a round, from `high` or less; None if it is not admitted from there."""
    state, taken = high, 0.0
    for cost in costs:
        bounds = cost(state)
        if bounds is None:
            return None
        state, taken = _up(state - bounds[0]), taken + bounds[0]
    return taken * (1.0 - len(costs) * _ULPS)


def _most(low: float, costs: Sequence[Cost], slack: float) -> float | None:
    """The greatest cost of a round, from `low` or more; None if it is not admitted from there."""
    state, taken = low, 0.0
    for cost in costs:
        bounds = cost(state)
        if bounds is None:
            return None
        most = bounds[1] * (1.0 + slack)
        state, taken = _down(state - most), taken + most
    return taken * (1.0 + len(costs) * _ULPS)


def _down(x: float) -> float:
    return math.nextafter(x, -math.inf)


def _up(x: float) -> float:
    return math.nextafter(x, math.inf)
