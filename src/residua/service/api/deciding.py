"""From a request to a decision of the ledger, away from the event loop.

A decision that is known to be quick is made by one of many threads, and the ledger commits those
that wait together. Any other may take long, and so may saying what is left: these are done by few
threads, of which each caller has a part, so that quick decisions do not wait for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from residua.filters.additive.base import Additive
from residua.ledger.api.ledger import Ledger
from residua.ledger.domain.described_query import Asked, asked, from_text
from residua.ledger.domain.receipts import Receipt, Reservation, Standings, standings_of
from residua.records import canonical
from residua.service.auth.access import Caller
from residua.service.context import Office

T = TypeVar("T")


async def decide(
    office: Office,
    caller: Caller,
    budgets: str | list[str],
    mechanism: Mapping[str, Any],
    ask: Callable[[Ledger, Asked], T],
) -> T:
    """What a ledger answers to a caller about a mechanism."""
    ledger = office.ledger.as_principal(caller.principal)

    def now_if_quick() -> tuple[Asked, bool, T | None]:
        query = query_of(mechanism)
        quick = ledger.decides_quickly(budgets, query)
        return query, quick, ask(ledger, query) if quick else None

    query, done, answer = await office.spending.run(now_if_quick)
    if done:
        return answer  # type: ignore[return-value]
    return await office.deciding.run_for(caller.name, ask, ledger, query)


async def settle(office: Office, caller: Caller, ask: Callable[[Ledger], T]) -> T:
    """What a ledger answers to a caller about a reservation."""
    return await office.spending.run(ask, office.ledger.as_principal(caller.principal))


def query_of(mechanism: Mapping[str, Any]) -> Asked:
    """A query from its description; a repeated description is parsed once."""
    try:
        text = canonical(mechanism)
    except ValueError:  # A number beyond all floats: the mechanism says which field it is in.
        return asked(mechanism)
    return from_text(text)


def is_quick(receipt: Receipt | Reservation) -> bool:
    """Whether what is left can be worked out in no time, and there is nothing else to."""
    if not receipt.admitted:
        return False
    standings = standings_of(receipt)
    return isinstance(standings, Standings) and all(
        isinstance(one.filter, Additive) and not one.holds for one in standings.all.values()
    )
