"""What is left of a budget, in the same form in Python, in JSON, on the command line and on pages.

A balance has four numbers that mean the same for every filter: the share of the capacity that is
left, the guarantee, the largest `eps` with an `eps`-DP query that is admitted now, and how many
more copies of the last query are. What is left in a filter's own units is under `details`.

**Share.** A filter has units in which what is spent and what is left add up to the capacity (`eps`,
`rho`, `mu²`, levels, planned queries). A share is the ratio of the two numbers that `details` show,
so it cannot contradict them. Of several units that are all needed it is the smallest share, of the
live components of a union the largest. The share of a filter without units is the `eps` of its
largest query now over that at the start. A share never increases as queries are admitted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from residua.errors import UnsupportedError
from residua.filters.amounts import shown
from residua.filters.counting import Count, count_copies
from residua.filters.noise import largest_eps
from residua.filters.query import Query, describe, directions, plain_pld
from residua.filters.wording import Amounts, few, number, rounded
from residua.mechanisms.black_boxes import PureDp
from residua.pld.families.symmetric import RandomizedResponse
from residua.pld.pld import Pld

if TYPE_CHECKING:
    from residua.filters.amounts import State
    from residua.filters.base import Filter

ONE_QUERY = "eps of one query"
"""The unit of a component of a union that has no unit: its largest query."""
RESERVES = ("delta for heavy tails", "delta for unbounded losses")
"""Units of what a target residue filter sets aside (reserves and slack).

They are shown beside the units of which a share is made, and do not count towards it.
"""


@dataclass(frozen=True)
class Detail:
    """What is left in one unit of a filter, or of a component of a union.

    `left` and `capacity` are rounded down to six digits, and `share` is their ratio, rounded down.
    """

    component: str
    unit: str
    left: float
    capacity: float
    share: float
    live: bool = True
    """Whether the component can still admit queries; a union stops components for good."""


@dataclass(frozen=True)
class Balance:
    """What is left of a budget at one moment."""

    share: float
    """The share of the capacity that is left, in [0, 1], rounded down to six digits."""
    guarantee: Pld
    """A PLD that is proven to dominate the whole interaction."""
    largest_eps: float
    """The largest `eps` with `PureDp(eps)` admitted now, rounded down to six digits; 0 if none."""
    more_like_last: int | None
    """How many more copies of the last admitted query fit now; None before the first one."""
    counting_ended: bool
    """Whether counting stopped at `more_like_last`, so that more may fit."""
    details: tuple[Detail, ...]
    """What is left by unit; empty if the filter has no unit or a parent budget allows less."""

    @property
    def text(self) -> str:
        """The same in words."""
        return balance_words(self)

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON data."""
        return {
            "share": self.share,
            "largest_eps": self.largest_eps,
            "more_like_last": self.more_like_last,
            "counting_ended": self.counting_ended,
            "guarantee": {**plain_pld(self.guarantee), "text": describe(self.guarantee)},
            "details": [asdict(one) for one in self.details],
            "text": self.text,
        }


def balance_of(
    filter: Filter, state: State, last: Query | None = None, relation: str | None = None
) -> Balance:
    """The balance of a filter in a state; `last` is the query that was admitted last."""
    largest = largest_pure_eps(filter, state, relation)
    share = share_of(filter, state, relation)
    copies = None if last is None else count_copies(filter, state, last, relation)
    return make_balance(share, filter.guarantee, largest, copies, filter.details_in(state))


def make_balance(
    share: float, guarantee: Pld, largest: float, copies: Count | None, details: Sequence[Detail]
) -> Balance:
    """A balance from its parts; `copies` is None before the first query."""
    more, ended = (None, False) if copies is None else copies
    return Balance(share, guarantee, largest, more, ended, tuple(details))


def share_of(filter: Filter, state: State, relation: str | None = None) -> float:
    """The share that is left in a state; without units, that of the largest query."""
    share = filter.share_in(state)
    if share is None:
        whole = largest_pure_eps(filter, filter.initial(), relation)
        share = ratio(largest_pure_eps(filter, state, relation), whole)
    return share


def largest_pure_eps(filter: Filter, state: State, relation: str | None = None) -> float:
    """The largest `eps` with `PureDp(eps)` admitted in a state, to six digits; 0 if none is."""
    return largest_eps(pure_admission_test(filter, state, relation), filter.most_eps)


def pure_admission_test(
    filter: Filter, state: State, relation: str | None
) -> Callable[[float], bool]:
    """A function of `eps` that says whether a filter admits an `eps`-DP query in a state."""

    def admits(eps: float) -> bool:
        try:
            return filter.admits(state, PureDp(eps), relation)
        except UnsupportedError:
            return False

    return admits


# -- shares -------------------------------------------------------------------------------


def make_detail(component: str, unit: str, left: Fraction, capacity: Fraction) -> Detail:
    """What is left in a unit, from exact amounts."""
    left_shown, capacity_shown = rounded(left), rounded(capacity)
    share = _ratio(left_shown, capacity_shown)
    return Detail(component, unit, float(left_shown), float(capacity_shown), share)


def make_details(component: str, left: Amounts, capacity: Amounts) -> tuple[Detail, ...]:
    """The same for several units."""
    pairs = zip(left, capacity, strict=True)
    return tuple(make_detail(component, unit, part, whole) for (unit, part), (_, whole) in pairs)


def ratio(left: float, capacity: float) -> float:
    """The ratio of two numbers as they print, at most 1, rounded down to six digits."""
    return _ratio(Decimal(repr(left)), Decimal(repr(capacity)))


def _ratio(left: Decimal, capacity: Decimal) -> float:
    """The same for decimals; 0 if the capacity is 0."""
    if not capacity:
        return 0.0
    return float(rounded(min(Fraction(left) / Fraction(capacity), Fraction(1))))


def smallest_share(details: Iterable[Detail]) -> float | None:
    """The smallest share of the units that count and have a capacity; None without units.

    0 if no unit has a capacity.
    """
    details = non_reserve_details(details)
    shares = [one.share for one in details if one.capacity]
    return min(shares, default=0.0 if details else None)


def non_reserve_details(details: Iterable[Detail]) -> tuple[Detail, ...]:
    """The details that count towards the share: all but those of reserves."""
    return tuple(one for one in details if one.unit not in RESERVES)


# -- words --------------------------------------------------------------------------------


def balance_words(balance: Balance) -> str:
    """A balance in words: `81 % left; largest query eps 0.43; guarantee mu 1`."""
    parts = [f"{share_words(balance)} left"]
    if balance.largest_eps:
        parts.append(f"largest query eps {number(Decimal(repr(balance.largest_eps)))}")
    else:
        parts.append("no eps-DP query fits")
    if balance.more_like_last is not None:
        more = f"{balance.more_like_last:,}{'+' if balance.counting_ended else ''}"
        parts.append(f"{more} more like the last admitted one")
    return "; ".join([*parts, f"guarantee {guarantee_words(balance.guarantee)}"])


def share_words(balance: Balance) -> str:
    """`34 %`, `< 1 %`, or `34 % of mu²` if the shares of other needed units differ."""
    return _share_words(balance.share, balance.details)


def _share_words(share: float, details: Sequence[Detail]) -> str:
    details = non_reserve_details(details)
    text, shares = percent_words(share), {one.share for one in details if one.capacity}
    if len(shares) < 2 or not _are_all_needed(share, details):
        return text
    unit = next(one.unit for one in details if one.capacity and one.share == share)
    return f"{text} of {unit}"


def _are_all_needed(share: float, details: Sequence[Detail]) -> bool:
    """Whether a share is the smallest of one component's units, and not a union's largest."""
    return len({one.component for one in details}) == 1 and share == smallest_share(details)


def left_words(share: float, details: Sequence[Detail], left: str = "left") -> str:
    """What is left for the reason of a decision: `81 % left (mu² 0.81)`.

    The amounts in brackets are those of all needed units, or for a union those of the component
    with the largest share.
    """
    details = non_reserve_details(details)
    if _are_all_needed(share, details):
        amounts = [(one.unit, one.left) for one in details]
    else:
        best = next(one for one in details if one.live and one.share == share)
        several = len({one.component for one in details}) > 1
        amounts = [(f"{best.component} {best.unit}" if several else best.unit, best.left)]
    text = few([f"{unit} {number(Decimal(repr(amount)))}" for unit, amount in amounts])
    return f"{_share_words(share, details)} {left} ({text})"


def detail_words(details: Sequence[Detail]) -> tuple[str, ...]:
    """What is left by unit: `pure eps 0.9 of 1`, `gdp_residue stopped`."""
    several = len({one.component for one in details}) > 1
    found = []
    for one in details:
        unit = f"{one.component} {one.unit}" if several else one.unit
        left, capacity = (number(Decimal(repr(each))) for each in (one.left, one.capacity))
        found.append(f"{unit} {left} of {capacity}" if one.live else f"{one.component} stopped")
    return tuple(dict.fromkeys(found))


def percent_words(share: float) -> str:
    """A share in whole percent, rounded down: `34 %`, `< 1 %`, `0 %`."""
    whole = percent(share)
    return "< 1 %" if whole == 0 < share else f"{whole} %"


def percent(share: float) -> int:
    """A share in whole percent, rounded down as it is written."""
    return math.floor(100 * Fraction(repr(share)))


def guarantee_words(guarantee: Pld) -> str:
    """A guarantee in a few words: `(eps 1, delta 1e-06)`, `mu 1`."""
    if guarantee.is_identity:
        return "eps 0"
    parts = guarantee.gaussian.parts if guarantee.gaussian else ()
    match list(guarantee.terms.items()), list(parts):
        case [(RandomizedResponse(eps=eps, delta=delta), 1)], []:
            return f"(eps {eps:g}, delta {delta:g})" if delta else f"eps {eps:g}"
        case [], [(shift, sigma, 1)]:
            return f"mu {shown(shift / sigma, up=True)}"
    delta = 1e-6  # At which a guarantee without a short description is printed as an `eps`.
    eps = max(float(each.epsilon(delta)) for each in directions(guarantee))
    if not eps < math.inf:
        return "none below delta 1" if guarantee.is_infinite else describe(guarantee)
    return f"(eps {shown(eps, up=True)}, delta {delta:g})"
