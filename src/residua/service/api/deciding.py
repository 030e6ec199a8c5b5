"""From a request to the ledger's decision, and to the answer.

What a closed form decides, or is known to be quick, is decided by one of many threads, and the
ledger commits those that wait together. Any other decision may take long, and so may saying what is
left: a worker of the pool computes these.

The ledger lists open reservations alone, and a commit that is repeated gets its receipt again; so
the owner of a reservation, which a scope is compared with, is looked up among all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import select
from starlette.requests import Request

from residua.errors import TooExpensive
from residua.ledger.api.ledger import Ledger
from residua.ledger.domain.closed_forms import is_closed_form, leaves_closed_form
from residua.ledger.domain.described_query import Asked, asked, from_text
from residua.ledger.domain.receipts import (
    Answer,
    Receipt,
    Reservation,
    Standings,
    standings_of,
    with_remainder,
)
from residua.ledger.operations.early_rulings import Compute
from residua.ledger.storage.schema import holds
from residua.records import canonical
from residua.service.api import values
from residua.service.auth import Caller
from residua.service.context import Office, within_limit
from residua.service.problems import Problem

T = TypeVar("T")


async def settle(request: Request, office: Office, caller: Caller, ask: Callable[[Ledger], T]) -> T:
    """A ledger's answer to a caller about a query or a reservation."""
    ledger = office.ledger.as_principal(caller.principal)
    return await office.spend(request, caller, lambda compute: ask(ledger.with_compute(compute)))


async def shown_slowly(
    request: Request,
    office: Office,
    caller: Caller,
    receipt: Receipt | Reservation,
    to_dict: Callable[[Any], dict[str, Any]],
) -> dict[str, Any]:
    """A receipt as data, where what is left takes time to say. It is durable, so it is answered.

    Where what is left cannot be worked out now, it says so in place of that.
    """
    standings = standings_of(receipt)
    alone = with_remainder(receipt, standings)

    def work(compute: Compute) -> dict[str, Any]:
        return compute(within_limit, to_dict, alone)

    try:
        return await office.compute_slowly(request, caller, work)
    except (Problem, TooExpensive) as problem:
        late = isinstance(problem, TooExpensive) or problem.status == 503
        if not late or not isinstance(standings, Standings):
            raise
    unknown = {"kind": "unknown", "text": "not worked out in time: ask for the budget"}
    left = unknown if standings.one else dict.fromkeys(standings.named, unknown)
    return to_dict(with_remainder(receipt, values.Said(left)))


def query_of(mechanism: Mapping[str, Any]) -> Asked:
    """A query from its description; a repeated description is parsed once."""
    try:
        text = canonical(mechanism)
    except ValueError:  # A number beyond all floats: the mechanism says which field it is in.
        return asked(mechanism)
    return from_text(text)


def is_quick(receipt: Answer | Receipt | Reservation) -> bool:
    """Whether what is left, and where it was refused what would fit, takes no time to say."""
    standings = standings_of(receipt)
    if not isinstance(standings, Standings):
        return False
    every = standings.all.values()
    if not receipt.admitted and not all(is_closed_form(one, standings.asked) for one in every):
        return False
    return all(
        leaves_closed_form(standings.all[name] for name in line)
        for line in standings.lines.values()
    )


class HoldOwner(NamedTuple):
    """The principal that made a reservation, and the budgets that it holds from."""

    principal: str
    budgets: tuple[str, ...]


def hold_of(ledger: Ledger, id: str) -> HoldOwner | None:
    """The owner of a reservation, by its id; None where there is no such reservation."""
    wanted = select(holds.c.principal, holds.c.members).where(holds.c.id == id)
    with ledger.store.reading() as connection:
        row = connection.execute(wanted).one_or_none()
    return None if row is None else HoldOwner(row.principal, tuple(row.members.split("\n")))
