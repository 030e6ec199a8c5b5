"""What open holds set aside where the costs of a filter add up, or those of a part of it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple, cast

from residua.filters import amounts
from residua.filters.amounts import State
from residua.filters.base import AdditivePart, Filter
from residua.ledger.domain.described_query import DescribedQuery
from residua.mechanisms.mechanism import Mechanism
from residua.work_limit import remembered


class SetAside(NamedTuple):
    """What an open hold sets aside in an additive part of a filter."""

    place: int | None
    """The component of a union; None for a filter by itself."""
    takes: tuple[Fraction, ...]


Held = tuple[State, ...] | tuple[SetAside, ...]
"""For the first open holds: the state after each, or what each sets aside, all in one part."""


def without_hold(held: Held, place: int) -> Held:
    """What is known of the other holds without one: the states behind it are those with it."""
    if place < len(held) and isinstance(held[place], SetAside):
        return cast(Held, held[:place] + held[place + 1 :])
    return held[:place]


@remembered(maxsize=8192)
def _cost(
    filter: Filter, place: int | None, query: Any, relation: str
) -> tuple[Fraction, ...] | None:
    return filter.additive_cost(place, query, relation)


def set_aside_in(
    part: AdditivePart,
    holds: Sequence[DescribedQuery],
    relation: str,
    known: Sequence[SetAside] = (),
) -> tuple[SetAside, ...] | None:
    """What the holds set aside in a part of the filter; None if it cannot take them all."""
    found = list(known)
    for hold in holds[len(found) :]:
        takes = None
        if isinstance(hold.query, Mechanism):
            takes = _cost(part.filter, part.place, hold.query, relation)
        if takes is None:
            return None
        found.append(SetAside(part.place, takes))
    columns = zip(*[each.takes for each in found], strict=True)
    fit = all(map(amounts.have_room, part.left, columns))
    return tuple(found) if fit else None
