"""The verbs of the ledger as calls of the service: what both clients share.

Names and arguments are those of `Ledger`, so that code moves from a database to a service by
changing one line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from residua import checks
from residua.errors import OutcomeUnknown
from residua.filters.base import Filter
from residua.filters.codec import from_json as filter_from_json
from residua.ledger.api.views import Budget
from residua.ledger.domain import arguments
from residua.ledger.domain.described_query import asked
from residua.ledger.domain.receipts import Answer, Hold, Receipt
from residua.records import Record
from residua.service.api import values
from residua.service.client.calls import Call, segment

PAGE = 500


def create_budget(name: str, filter: Any, **fields: Any) -> Call[Budget]:
    made = filter if isinstance(filter, Filter) else filter_from_json(filter)
    given = {name: value for name, value in fields.items() if value not in (None, False)}
    body = {"name": arguments.label("name", name), "filter": made.to_dict(), **given}
    return Call("POST", "/v1/budgets", values.budget_from, body, repeatable=False)


def budget(name: str) -> Call[Budget]:
    return Call("GET", _budget(name), values.budget_from)


def budgets(after: str | None) -> Call[tuple[list[Budget], str | None]]:
    def read(data: Any) -> tuple[list[Budget], str | None]:
        return [values.budget_from(one) for one in data["items"]], data["next"]

    params = {"limit": PAGE, **({} if after is None else {"after": after})}
    return Call("GET", "/v1/budgets", read, params=params)


def check(names: Any, query: Any, assumed: bool) -> Call[Answer]:
    path, body = _ask(names, query, assumed)
    return Call("POST", f"{path}/check", values.answer_from, body)


def spend(names: Any, query: Any, key: str | None, assumed: bool) -> Call[Receipt]:
    path, body = _ask(names, query, assumed)
    under = arguments.key(key)
    read = _own(under, values.receipt_from)
    return Call("POST", f"{path}/spend", read, {**body, "key": under}, key=under)


def reserve(
    names: Any, query: Any, key: str | None, ttl: float, assumed: bool, read: Callable[[Any], Any]
) -> Call[Any]:
    path, body = _ask(names, query, assumed)
    under = arguments.key(key)
    body |= {"key": under, "ttl": checks.positive("ttl", ttl)}
    return Call("POST", f"{path}/reserve", _own(under, read), body, key=under)


def commit(hold: str, key: str | None) -> Call[Receipt]:
    # Without a key the hold itself is one: committed again it gives the same receipt, replayed.
    body = {} if key is None else {"key": arguments.key(key)}
    path = f"/v1/holds/{segment(arguments.label('hold', hold))}/commit"
    return Call("POST", path, values.receipt_from, body, key=key or f"of hold {hold}")


def cancel(hold: str, reason: str) -> Call[None]:
    path = f"/v1/holds/{segment(arguments.label('hold', hold))}/cancel"
    body = {"reason": arguments.reason(reason)}
    return Call("POST", path, lambda data: None, body, repeatable=False)


def holds() -> Call[tuple[Hold, ...]]:
    return Call(
        "GET", "/v1/holds", lambda data: tuple(values.hold_from(one) for one in data["items"])
    )


def history(
    name: str, after: int | None, limit: int | None
) -> Call[tuple[list[Record], int | None]]:
    def read(data: Any) -> tuple[list[Record], int | None]:
        return [values.record_from(one) for one in data["items"]], data["next"]

    params = {"limit": PAGE if limit is None else max(1, min(limit, PAGE))}
    if after is not None:
        params["after"] = checks.count("after", after)
    return Call("GET", f"{_budget(name)}/history", read, params=params)


def retire(name: str, reason: str) -> Call[None]:
    body = {"reason": arguments.reason(reason)}
    return Call("POST", f"{_budget(name)}/retire", lambda data: None, body, repeatable=False)


def refresh(name: str) -> Call[Budget]:
    return Call("POST", f"{_budget(name)}/refresh", values.budget_from, repeatable=False)


def status() -> Call[Any]:
    return Call("GET", "/v1/status", lambda data: data)


def export() -> Call[str]:
    return Call("GET", "/v1/export", lambda text: text, text=True)


def _budget(name: str) -> str:
    return f"/v1/budgets/{segment(arguments.label('name', name))}"


def _own(key: str, read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Read an answer, and refuse one that is another's: it permits nothing here."""

    def reading(data: Any) -> Any:
        found = read(data)
        if found.key != key:
            raise OutcomeUnknown(
                f"the answer is to another request, of key {found.key!r};"
                f" ask again with the key {key!r}"
            )
        return found

    return reading


def _ask(names: Any, query: Any, assumed: bool) -> tuple[str, dict[str, Any]]:
    found, _ = arguments.names(names)
    body: dict[str, Any] = {"mechanism": asked(query).plain}
    if len(found) > 1:
        body["also"] = list(found[1:])
    if checks.flag("assume_budget_relation", assumed):
        body["assume_budget_relation"] = True
    return _budget(found[0]), body
