"""The verbs of the ledger as calls of the service: the one definition that both clients share.

A verb is a generator: it yields calls, is sent what each of them brought, and returns the result.
One client waits for each call and the other awaits it. Names and arguments are those of `Ledger`,
so that code moves from a database to a service by changing one line.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import IO, Any, TypeVar

from residua import checks
from residua.errors import OutcomeUnknown
from residua.filters.base import Filter
from residua.filters.codec import from_json as filter_from_json
from residua.ledger.api.views import Budget
from residua.ledger.domain import arguments
from residua.ledger.domain.described_query import asked
from residua.ledger.domain.receipts import Answer, Hold, Receipt
from residua.ledger.recovery.export_file import write_lines
from residua.records import Record
from residua.service.api import values
from residua.service.client.calls import Call, segment

T = TypeVar("T")
Verb = Generator[Call[Any], Any, T]

PAGE = 500


def create_budget(name: str, filter: Any, **fields: Any) -> Verb[Budget]:
    made = filter if isinstance(filter, Filter) else filter_from_json(filter)
    given = {name: value for name, value in fields.items() if value not in (None, False)}
    body = {"name": arguments.label("name", name), "filter": made.to_dict(), **given}
    found: Budget = yield _once("/v1/budgets", values.budget_from, body)
    return found


def budget(name: str) -> Verb[Budget]:
    found: Budget = yield Call("GET", _budget(name), values.budget_from)
    return found


def budgets() -> Verb[tuple[Budget, ...]]:
    found: list[Budget] = []
    after: str | None = None
    while True:
        params = {"limit": PAGE, **({} if after is None else {"after": after})}
        page = yield Call("GET", "/v1/budgets", _page(values.budget_from), params=params)
        found += page[0]
        after = page[1]
        if after is None:
            return tuple(found)


def check(names: Any, query: Any, assumed: bool) -> Verb[Answer]:
    path, body = _ask(names, query, assumed)
    found: Answer = yield Call("POST", f"{path}/check", values.answer_from, body)
    return found


def spend(names: Any, query: Any, key: str | None, assumed: bool) -> Verb[Receipt]:
    path, body = _ask(names, query, assumed)
    under = arguments.key(key)
    receipt: Receipt = yield _keyed(f"{path}/spend", values.receipt_from, body, under)
    return receipt


def reserve(
    names: Any, query: Any, key: str | None, ttl: float, assumed: bool, read: Callable[[Any], T]
) -> Verb[T]:
    path, body = _ask(names, query, assumed)
    under = arguments.key(key)
    body |= {"ttl": checks.positive("ttl", ttl)}
    made: T = yield _keyed(f"{path}/reserve", read, body, under)
    return made


def commit(hold: str, key: str | None) -> Verb[Receipt]:
    # Without a key the hold itself is one: committed again it gives the same receipt, replayed.
    body = {} if key is None else {"key": arguments.key(key)}
    path = f"/v1/holds/{segment(arguments.label('hold', hold))}/commit"
    named = key or f"of hold {hold}"
    receipt: Receipt = yield Call(
        "POST", path, values.receipt_from, body, key=named, writes=True
    )  # fmt: skip
    return receipt


def cancel(hold: str, reason: str) -> Verb[None]:
    path = f"/v1/holds/{segment(arguments.label('hold', hold))}/cancel"
    yield _once(path, _nothing, {"reason": arguments.reason(reason)})


def holds() -> Verb[tuple[Hold, ...]]:
    def read(data: Any) -> tuple[Hold, ...]:
        return tuple(values.hold_from(one) for one in data["items"])

    found: tuple[Hold, ...] = yield Call("GET", "/v1/holds", read)
    return found


def history(name: str, after: int | None, limit: int | None) -> Verb[tuple[Record, ...]]:
    found: list[Record] = []
    path = f"{_budget(name)}/history"
    while limit is None or len(found) < limit:
        rest = PAGE if limit is None else limit - len(found)
        params = {"limit": max(1, min(rest, PAGE))}
        if after is not None:
            params["after"] = checks.count("after", after)
        page, after = yield Call("GET", path, _page(values.record_from), params=params)
        found += page
        if after is None:
            break
    return tuple(found)


def retire(name: str, reason: str) -> Verb[None]:
    yield _once(f"{_budget(name)}/retire", _nothing, {"reason": arguments.reason(reason)})


def refresh(name: str) -> Verb[Budget]:
    found: Budget = yield _once(f"{_budget(name)}/refresh", values.budget_from, None)
    return found


def status() -> Verb[Any]:
    found = yield Call("GET", "/v1/status", lambda data: data)
    return found


def exported() -> Verb[str]:
    """The text of an export."""
    text: str = yield Call("GET", "/v1/export", lambda text: text, text=True)
    return text


def export(to: str | Path | IO[str]) -> Verb[int]:
    text = yield from exported()
    return write_lines(to, text.splitlines(keepends=True))


def _once(path: str, read: Callable[[Any], Any], body: dict[str, Any] | None) -> Call[Any]:
    """A call that writes without a key: it must not be sent twice."""
    return Call("POST", path, read, body, repeatable=False, writes=True)


def _keyed(path: str, read: Callable[[Any], Any], body: dict[str, Any], key: str) -> Call[Any]:
    """A call that writes once, however often it is sent."""
    return Call("POST", path, _own(key, read), {**body, "key": key}, key=key, writes=True)


def _page(read: Callable[[Any], Any]) -> Callable[[Any], tuple[list[Any], Any]]:
    return lambda data: ([read(one) for one in data["items"]], data["next"])


def _nothing(data: Any) -> None:
    return None


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
